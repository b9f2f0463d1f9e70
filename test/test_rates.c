/* links: modelcase */
/* Shares of the learning rate (run/rates.h): a frozen parameter keeps its bits, its moments stay 0
 * and its gradient is not there; a share multiplies what Adam does; inside of the backward as after
 * it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "close.h"
#include "graph/op.h"
#include "model_case.h"
#include "run/rates.h"

static void assert_ok(fth_err err) {
    if (err != FTH_OK) fail_msg("%s", fth_error_message());
}

/* ---- patterns ---- */

static void patterns_mean_parts_of_names(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *name;
        bool is;
    } cases[] = {
        {"encoder.layers.0-5", "encoder.layers.5.fc1.weight", true},
        {"encoder.layers.0-5", "encoder.layers.6.fc1.weight", false},
        {"encoder.layers.0-5", "encoder.layers.05.fc1.weight", true},
        {"encoder.layers.1", "encoder.layers.1.fc1.weight", true},
        {"encoder.layers.1", "encoder.layers.11.fc1.weight", false},
        {"encoder.layers.2-1", "encoder.layers.2.fc1.weight", false},
        {"encoder.layers.0-5", "decoder.layers.1.fc1.weight", false},
        {"encoder", "encoder.cls_token", true},
        {"enc", "encoder.cls_token", false},
        {"*", "embed_tokens.weight", true},
        {"*.layers.*.self_attn.*_proj.bias", "encoder.layers.3.self_attn.q_proj.bias", true},
        {"*.layers.*.self_attn.*_proj.bias", "encoder.layers.3.self_attn.q_proj.weight", false},
        {"encoder.layers.*.fc*", "encoder.layers.7.fc2.weight", true},
        {"encoder.layers.*.*_layer_norm", "encoder.layers.7.final_layer_norm.bias", true},
        {"head.dense.weight.more", "head.dense.weight", false},
        {"", "head.dense.weight", false},
        {"encoder..layers", "encoder.layers.0.fc1.weight", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (fth_rates_match(cases[i].pattern, cases[i].name) != cases[i].is)
            fail_msg("%s and %s", cases[i].pattern, cases[i].name);
}

static float share_of(const fth_model *m, const char *name) {
    const int32_t i = fth_params_find(&m->params, name);
    assert_true(i >= 0);
    return m->params.param[i].share;
}

static void the_rate_falls_from_the_top(void **state) {
    (void)state;
    const fth_rates rates = {.layer_decay = 0.5};
    fth_config c = model_case_config("preln", FTH_ENCDEC);
    fth_model m;
    fth_str said = {0};
    c.decoder_layers = 3;
    assert_ok(fth_model_init(&m, &c));
    assert_ok(fth_rates_set(&rates, &m, &said));
    assert_true(share_of(&m, "encoder.layers.1.fc1.weight") == 0.5F);
    assert_true(share_of(&m, "encoder.layers.0.final_layer_norm.bias") == 0.25F);
    assert_true(share_of(&m, "decoder.layers.0.encoder_attn.q_proj.weight") == 0.125F);
    assert_true(share_of(&m, "decoder.layer_norm.weight") == 1);
    assert_true(share_of(&m, "embed_tokens.weight") == 0.0625F); /* of the deeper stack */
    assert_non_null(strstr(said.text, "falls by 0.5 from layer to layer"));
    fth_str_fini(&said);
    const fth_rates none = {0};
    assert_ok(fth_rates_set(&none, &m, &said));
    assert_int_equal(said.length, 0);
    assert_true(share_of(&m, "embed_tokens.weight") == 1);
    fth_model_fini(&m);
}

static void what_cannot_be_frozen_is_said(void **state) {
    (void)state;
    static const char *const all[] = {"*"}, *const unknown[] = {"encoder.layers.0",
                                                                "encoder.lyers"};
    fth_config c = model_case_config("postln", FTH_ENC);
    fth_model m;
    assert_ok(fth_model_init(&m, &c));
    assert_int_equal(fth_rates_set(&(fth_rates){.freeze = all, .n_freeze = 1}, &m, NULL),
                     FTH_USAGE);
    assert_non_null(strstr(fth_error_message(), "--freeze *: nothing is left to train"));
    assert_int_equal(fth_rates_set(&(fth_rates){.freeze = unknown, .n_freeze = 2}, &m, NULL),
                     FTH_USAGE);
    assert_non_null(strstr(fth_error_message(), "--freeze encoder.lyers: no parameter"));
    fth_model_fini(&m);
}

/* ---- updates ---- */

enum { UPDATES = 3, KINDS = 3 };

/* Parameters and both moments after so many updates, [KINDS, params.size]; *ops: operations of the
 * program. */
static float *train(const fth_config *c, const char *device, bool early, int n_batches,
                    const fth_rates *rates, int updates, double *gnorm, int32_t *ops) {
    model_case m;
    model_case_init(&m, c, device, 2, 0.05, 0);
    fth_recipe recipe = m.trainer.recipe;
    recipe.weight_decay = 0.1;
    const fth_trainer_spec size = {.src_tokens = 9,
                                   .tgt_tokens = 8,
                                   .max_len = 9,
                                   .batches = n_batches,
                                   .inline_updates = early};
    fth_trainer_fini(&m.trainer);
    assert_ok(fth_rates_set(rates, &m.model, NULL));
    assert_ok(fth_trainer_init(&m.trainer, &m.model, m.device, &recipe, &size));
    assert_ok(fth_arenas_load(m.device, &m.trainer.arenas, m.flat));
    const fth_batch *batches[2] = {&m.store.batch, &m.store.batch};
    for (int64_t t = 1; t <= updates; t++) {
        fth_update u;
        assert_ok(fth_trainer_update(&m.trainer, t, batches, n_batches, &u));
        assert_true(u.finite);
        *gnorm = u.gnorm;
    }
    if (ops) *ops = fth_program_graph(m.trainer.program)->n_ops;
    const int64_t n = m.model.params.size;
    float *out = malloc(sizeof *out * KINDS * (size_t)n);
    void *const arenas[] = {m.trainer.arenas.master, m.trainer.arenas.m, m.trainer.arenas.v};
    for (int k = 0; k < KINDS; k++) assert_ok(fth_arena_get(m.device, arenas[k], n, out + k * n));
    model_case_fini(&m);
    return out;
}

/* The start, as train has it. */
static float *begin(const fth_config *c) {
    model_case m;
    model_case_init(&m, c, "ref", 1, 0.05, 0);
    float *flat = m.flat;
    m.flat = NULL;
    model_case_fini(&m);
    return flat;
}

static void check_frozen(const fth_config *c, const char *device, bool early, int n_batches,
                         const char *pattern) {
    const fth_rates all = {0}, rates = {.freeze = &pattern, .n_freeze = 1};
    double gnorm[2];
    float *start = begin(c),
          *now = train(c, device, early, n_batches, &rates, UPDATES, gnorm, NULL);
    float *free_one = train(c, device, early, n_batches, &all, 1, gnorm + 1, NULL);
    float *one = train(c, device, early, n_batches, &rates, 1, gnorm, NULL);
    fth_model m;
    assert_ok(fth_model_init(&m, c));
    int32_t frozen = 0;
    for (int32_t i = 0; i < m.params.n; i++) {
        const fth_param *p = &m.params.param[i];
        const size_t bytes = sizeof *now * (size_t)fth_param_size(p);
        const float *at = now + p->offset, *moments = at + m.params.size;
        if (!fth_rates_match(pattern, p->name)) {
            if (memcmp(one + p->offset, free_one + p->offset, bytes) != 0)
                fail_msg("%s on %s: %s moves otherwise when %s is frozen", c->method, device,
                         p->name, pattern);
            continue;
        }
        frozen++;
        if (memcmp(at, start + p->offset, bytes) != 0)
            fail_msg("%s on %s: frozen %s has moved", c->method, device, p->name);
        for (int64_t k = 0; k < fth_param_size(p); k++)
            assert_true(moments[k] == 0 && moments[m.params.size + k] == 0);
    }
    assert_true(frozen > 0 && frozen < m.params.n);
    assert_true(gnorm[0] < gnorm[1] && gnorm[0] > 0); /* the norm is that of the others */
    fth_model_fini(&m);
    free(start);
    free(now);
    free(one);
    free(free_one);
}

static void frozen_parameters_stay(void **state) {
    (void)state;
    static const char *const patterns[] = {"encoder.layers.0", "embed_tokens",
                                           "*.layers.*.self_attn.k_proj",
                                           "*.layers.*.fc1.weight"}; /* its bias is trained */
    static const char *const devices[] = {"ref", "cpu", "cpu-bf16"};
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++)
        for (int d = 0; d < 3; d++)
            for (int way = 0; way < 3; way++) {
                fth_config c = model_case_config("branchnorm", FTH_ENCDEC);
                c.dropout = 0.2;
                check_frozen(&c, devices[d], way == 1, way == 2 ? 2 : 1, patterns[p]);
            }
    for (const fth_method *const *m = fth_methods(); *m; m++) {
        fth_config c = model_case_config((*m)->id, FTH_ENC);
        check_frozen(&c, "cpu", true, 1, "encoder.layers.0");
    }
}

/* Below frozen layers there is no backward at all. */
static void nothing_is_computed_for_what_is_frozen(void **state) {
    (void)state;
    static const char *const low[] = {"encoder.embed_tokens", "encoder.layers.0-4"};
    fth_config c = model_case_config("preln", FTH_ENC);
    c.share = FTH_SHARE_NONE;
    c.encoder_layers = 6;
    const fth_rates all = {0}, rates = {.freeze = low, .n_freeze = 2};
    double gnorm;
    int32_t ops[2];
    free(train(&c, "cpu", false, 1, &all, 1, &gnorm, &ops[0]));
    free(train(&c, "cpu", false, 1, &rates, 1, &gnorm, &ops[1]));
    assert_true(ops[1] < ops[0] * 6 / 10); /* the forward, and a layer's backward */
}

/* Without decay of weights, Adam's change is in proportion to the rate, and the moments are the
 * same after the first update. */
static void a_share_multiplies_the_change(void **state) {
    (void)state;
    static const char *const devices[] = {"ref", "cpu", "cpu-bf16"};
    const fth_rates all = {0}, rates = {.layer_decay = 0.5};
    for (int d = 0; d < 3; d++)
        for (int early = 0; early < 2; early++) {
            fth_config c = model_case_config("preln", FTH_ENCDEC);
            double gnorm[2];
            float *start = begin(&c);
            float *whole = train(&c, devices[d], early, 1, &all, 1, &gnorm[0], NULL);
            float *part = train(&c, devices[d], early, 1, &rates, 1, &gnorm[1], NULL);
            fth_model m;
            assert_ok(fth_model_init(&m, &c));
            assert_ok(fth_rates_set(&rates, &m, NULL));
            assert_true(gnorm[0] == gnorm[1]);
            for (int32_t i = 0; i < m.params.n; i++) {
                const fth_param *p = &m.params.param[i];
                for (int64_t k = p->offset; k < p->offset + fth_param_size(p); k++) {
                    const double moved = (double)whole[k] - (double)start[k];
                    assert_close((double)part[k] - (double)start[k], moved * (double)p->share,
                                 2e-7 + 1e-6 * fabs((double)start[k]));
                    assert_true(part[k + m.params.size] == whole[k + m.params.size]);
                }
            }
            fth_model_fini(&m);
            free(start);
            free(whole);
            free(part);
        }
}

static void bits_are_the_same_inside_of_the_backward(void **state) {
    (void)state;
    static const char *const frozen[] = {"encoder.layers.1.fc1"};
    const fth_rates rates = {.layer_decay = 0.7, .freeze = frozen, .n_freeze = 1};
    for (const fth_method *const *m = fth_methods(); *m; m++) {
        fth_config c = model_case_config((*m)->id, FTH_ENCDEC);
        double gnorm[2];
        c.dropout = 0.2;
        float *late = train(&c, "cpu", false, 1, &rates, UPDATES, &gnorm[0], NULL);
        float *early = train(&c, "cpu", true, 1, &rates, UPDATES, &gnorm[1], NULL);
        fth_model model;
        assert_ok(fth_model_init(&model, &c));
        if (memcmp(late, early, sizeof *late * KINDS * (size_t)model.params.size) != 0)
            fail_msg("%s: early updates have other bits", c.method);
        assert_close(gnorm[0], gnorm[1], 1e-6 * gnorm[0]);
        fth_model_fini(&model);
        free(late);
        free(early);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_mean_parts_of_names),
        cmocka_unit_test(the_rate_falls_from_the_top),
        cmocka_unit_test(what_cannot_be_frozen_is_said),
        cmocka_unit_test(frozen_parameters_stay),
        cmocka_unit_test(nothing_is_computed_for_what_is_frozen),
        cmocka_unit_test(a_share_multiplies_the_change),
        cmocka_unit_test(bits_are_the_same_inside_of_the_backward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
