/* links: modelcase run */
/* Folds to plain Post-LN and Pre-LN keep the outputs; the profiling pass sets Admin's scales. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "close.h"
#include "model/fold.h"
#include "model_case.h"
#include "train/profile.h"

static double *logits_of(const fth_model *model, const float *flat, const fth_batch *batch,
                         int64_t *n) {
    fth_device *dev = NULL;
    fth_arenas arenas;
    fth_graph g;
    fth_outputs o;
    fth_program *p = NULL;
    fth_graph_spec what = {.logits = true};
    assert_int_equal(fth_device_open("cpu", "fp32", 1, &dev), FTH_OK);
    assert_int_equal(fth_arenas_new(dev, model->params.size, 0, 0, &arenas), FTH_OK);
    assert_int_equal(fth_arenas_load(dev, &arenas, flat), FTH_OK);
    fth_program_spec how = {.arenas = &arenas};
    fth_trainer_spec size = {.src_tokens = 9, .tgt_tokens = 8, .max_len = 9};
    fth_capacities(&size, how.capacity);
    assert_int_equal(fth_model_graph(model, &what, &g, &o), FTH_OK);
    assert_int_equal(fth_program_new(dev, &g, &how, &p), FTH_OK);
    fth_step step = {.update = 1};
    fth_method_step(&model->method, model->config.step, step.slots);
    assert_int_equal(fth_program_run(p, batch, &step), FTH_OK);
    *n = fth_program_rows(p, o.logits) * fth_config_output_vocab(&model->config);
    double *out = malloc(sizeof *out * (size_t)*n);
    assert_int_equal(fth_program_read(p, o.logits, out), FTH_OK);
    fth_program_free(p);
    fth_arenas_free(dev, &arenas);
    fth_device_close(dev);
    return out;
}

/* Trains a little, folds, and compares the logits. */
static void check_fold(fth_config c) {
    model_case m;
    model_case_init(&m, &c, "cpu", 1, 0.1, 0);
    const fth_batch *batch = &m.store.batch;
    fth_update u;
    for (int t = 1; t <= 20; t++)
        assert_int_equal(fth_trainer_update(&m.trainer, t, &batch, 1, &u), FTH_OK);
    assert_int_equal(fth_arena_get(m.device, m.trainer.arenas.master, m.model.params.size, m.flat),
                     FTH_OK);
    m.model.config.step = 20;
    fth_model folded;
    float *flat = NULL;
    int64_t n, k;
    if (fth_model_fold(&m.model, m.flat, &folded, &flat) != FTH_OK)
        fail_msg("%s: %s", c.method, fth_error_message());
    assert_string_equal(folded.config.method, strcmp(c.method, "lns") == 0 ? "preln" : "postln");
    double *a = logits_of(&m.model, m.flat, batch, &n), *b = logits_of(&folded, flat, batch, &k);
    assert_int_equal(n, k);
    for (int64_t i = 0; i < n; i++)
        if (!is_close(a[i], b[i], 1e-4))
            fail_msg("%s: logit off by %g", c.method, fabs(a[i] - b[i]));
    free(a);
    free(b);
    free(flat);
    fth_model_fini(&folded);
    model_case_fini(&m);
}

static void folds_keep_the_outputs(void **state) {
    (void)state;
    static const char *const ids[] = {"deepnorm", "branchnorm", "admin", "postln-init",
                                      "dsinit",   "postln",     "lns"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        for (int arch = FTH_ENCDEC; arch <= FTH_DEC; arch++) {
            fth_config c = model_case_config(ids[i], (fth_arch)arch);
            if (strcmp(ids[i], "branchnorm") == 0) model_case_option(&c, "steps", NULL, 50);
            check_fold(c);
            c.positions = FTH_LEARNED;
            c.share = arch == FTH_ENCDEC ? FTH_SHARE_DEC : FTH_SHARE_NONE;
            check_fold(c);
        }
}

static void others_are_refused(void **state) {
    (void)state;
    int refused = 0;
    for (const fth_method *const *m = fth_methods(); *m; m++) {
        if ((*m)->fold) continue;
        fth_config c = model_case_config((*m)->id, FTH_ENCDEC);
        model_case from;
        model_case_init(&from, &c, "cpu", 1, 0, 0);
        fth_model to;
        float *flat;
        assert_int_equal(fth_model_fold(&from.model, from.flat, &to, &flat), FTH_BAD_CONFIG);
        assert_non_null(strstr(fth_error_message(), (*m)->id));
        model_case_fini(&from);
        refused++;
    }
    assert_int_equal(refused, 15);
}

static void an_omega_of_0_is_named(void **state) {
    (void)state;
    static const char *const names[] = {"decoder.layers.1.encoder_attn_skip",
                                        "encoder.layers.0.self_attn_skip",
                                        "decoder.layers.0.ffn_skip"};
    for (int i = 0; i < 3; i++) {
        fth_config c = model_case_config("admin", FTH_ENCDEC);
        model_case from;
        model_case_init(&from, &c, "cpu", 1, 0.1, 0);
        const fth_params *p = &from.model.params;
        from.flat[p->param[fth_params_find(p, names[i])].offset + 3] = 0;
        fth_model to;
        float *flat;
        char says[80];
        snprintf(says, sizeof says, "%s[3] is 0", names[i]);
        assert_int_equal(fth_model_fold(&from.model, from.flat, &to, &flat), FTH_BAD_INPUT);
        assert_non_null(strstr(fth_error_message(), says));
        model_case_fini(&from);
    }
}

/* ---- the profiling pass ---- */

static void profile_case(const char *device, double dropout, float *omega, int *n) {
    fth_config c = model_case_config("admin", FTH_ENCDEC);
    c.dropout = dropout;
    model_case m;
    int64_t capacity[FTH_N_EXTENTS];
    fth_trainer_spec size = {.src_tokens = 9, .tgt_tokens = 8, .max_len = 9};
    fth_capacities(&size, capacity);
    model_case_init(&m, &c, device, 2, 0, 0);
    assert_true(fth_profile_wanted(&m.model));
    assert_int_equal(fth_profile(&m.trainer, &m.store.batch, capacity), FTH_OK);
    float *after = malloc(sizeof *after * (size_t)m.model.params.size);
    assert_int_equal(fth_arena_get(m.device, m.trainer.arenas.master, m.model.params.size, after),
                     FTH_OK);
    *n = 0;
    for (int32_t i = 0; i < m.model.params.n; i++) {
        const fth_param *p = &m.model.params.param[i];
        if (p->role == FTH_ROLE_EXTRA) {
            for (int64_t k = 0; k < 8; k++) /* all entries are equal */
                assert_true(after[p->offset + k] == after[p->offset]);
            omega[(*n)++] = after[p->offset];
        } else { /* nothing else moves */
            assert_memory_equal(after + p->offset, m.flat + p->offset,
                                sizeof *after * (size_t)fth_param_size(p));
        }
    }
    free(after);
    model_case_fini(&m);
}

static void profiling(void **state) {
    (void)state;
    float a[16], b[16], ref[16];
    int n, m;
    profile_case("cpu", 0.1, a, &n);
    profile_case("cpu", 0.1, b, &m);
    profile_case("ref", 0.1, ref, &m);
    assert_int_equal(n, 2 * 2 + 2 * 3);
    assert_memory_equal(a, b, sizeof(float) * (size_t)n);
    assert_true(a[0] == 1 && a[4] == 1); /* each stack starts at 1 */
    for (int i = 2; i < n; i++)          /* LN outputs have unit variance: it only grows */
        if (i != 4 && i != 5) assert_true(a[i] >= a[i - 1]);
    for (int i = 0; i < n; i++) assert_close(a[i], ref[i], 1e-5);
    fth_config c = model_case_config("admin", FTH_ENCDEC);
    model_case_option(&c, "mode", "const", 0);
    fth_model constant;
    assert_int_equal(fth_model_init(&constant, &c), FTH_OK);
    assert_false(fth_profile_wanted(&constant));
    fth_model_fini(&constant);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folds_keep_the_outputs),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(an_omega_of_0_is_named),
        cmocka_unit_test(profiling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
