/* links: modelcase run */
/* Whole models: signed finite differences through every parameter of every method and
 * architecture, the reductions, identity at the start, statistics and constants. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/philox.h"
#include "close.h"
#include "model_case.h"

/* ---- finite differences, in double, on ref ---- */

static double loss_at(model_case *m, int64_t t) {
    return model_case_gradients(m, t, NULL).loss;
}

/* Compares the derivative along one random direction within a parameter; grad: the parameter's. */
static void check_direction(model_case *m, int64_t t, const fth_param *p, const double *grad,
                            fth_rng *rng, const char *what) {
    double *master = (double *)m->trainer.arenas.master + p->offset;
    int64_t n = fth_param_size(p);
    double *old = malloc(sizeof *old * (size_t)n), *way = malloc(sizeof *way * (size_t)n);
    double length = 0, expected = 0;
    for (int64_t i = 0; i < n; i++) {
        old[i] = master[i];
        way[i] = fth_rng_normal(rng);
        length += way[i] * way[i];
    }
    length = sqrt(length);
    for (int64_t i = 0; i < n; i++) expected += grad[i] * way[i] / length;
    const double h = 1e-5;
    double loss[2];
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < n; i++) master[i] = old[i] + (side ? h : -h) * way[i] / length;
        loss[side] = loss_at(m, t);
    }
    memcpy(master, old, sizeof *old * (size_t)n);
    double measured = (loss[1] - loss[0]) / (2 * h);
    if (!is_close(measured, expected, 1e-5 * fmax(fabs(expected), 1e-2)))
        fail_msg("%s, %s: derivative %.9g, gradient says %.9g", what, p->name, measured, expected);
    free(old);
    free(way);
}

#if defined(__SANITIZE_ADDRESS__)
enum { DIRECTIONS = 1 }; /* of each parameter: all of them go the same way through memory */
#else
enum { DIRECTIONS = 2 };
#endif

static void check_gradients(const fth_config *c, int64_t t, const char *what) {
    model_case m;
    fth_rng rng;
    fth_rng_init(&rng, 11, 0);
    model_case_init(&m, c, "ref", 1, 0.15, 0);
    const size_t bytes = sizeof(double) * (size_t)m.model.params.size;
    double *grad = malloc(bytes); /* the trainer's becomes that of the points around */
    model_case_gradients(&m, t, NULL);
    memcpy(grad, m.trainer.arenas.grad, bytes);
    for (int32_t i = 0; i < m.model.params.n; i++) {
        const fth_param *p = &m.model.params.param[i];
        for (int k = 0; k < DIRECTIONS; k++)
            check_direction(&m, t, p, grad + p->offset, &rng, what);
    }
    free(grad);
    model_case_fini(&m);
}

static void gradients_of_every_method(void **state) {
    (void)state;
    for (const fth_method *const *m = fth_methods(); *m; m++)
        for (int arch = FTH_ENCDEC; arch <= FTH_DEC; arch++) {
            fth_config c = model_case_config((*m)->id, (fth_arch)arch);
            check_gradients(&c, 100, (*m)->id);
        }
}

static const struct variant {
    const char *method, *key, *text;
    double number;
} variants[] = {
    {"branchnorm", "growth", "exp", 0},
    {"branchnorm", "growth", "sigmoid", 0},
    {"branchnorm", "end", NULL, 0.5},
    {"deepnorm", "alpha_scale", NULL, 2},
    {"rezero", "per_sublayer", "true", 0},
    {"normformer", "head_scale", "post", 0},
    {"normformer", "residual_scale", "true", 0},
    {"normformer", "encoder", "false", 0},
    {"realformer", "mode", "mean", 0},
    {"b2t-noln", "final_ln", "true", 0},
    {"b2t", "skip_last", "true", 0},
    {"admin", "mode", "const", 0},
    {"keel", "alpha", NULL, 1.5},
    {"periln", "embed_norm", "true", 0},
    {"mixln", "post_share", NULL, 0.5},
};

static void gradients_of_options(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        const struct variant *v = &variants[i];
        fth_config c = model_case_config(v->method, FTH_ENCDEC);
        model_case_option(&c, v->key, v->text, v->number);
        check_gradients(&c, 1000, v->key);
    }
}

/* Dropouts are counted, so the loss is a smooth function with them on. */
static void gradients_of_architecture(void **state) {
    (void)state;
    fth_config c = model_case_config("preln", FTH_ENCDEC);
    c.activation = FTH_GELU;
    c.positions = FTH_LEARNED;
    c.share = FTH_SHARE_NONE;
    c.dropout = 0.2;
    c.attention_dropout = 0.2;
    c.activation_dropout = 0.1;
    c.word_dropout = 0.2;
    check_gradients(&c, 3, "dropouts, GELU, learned positions, untied");
    c = model_case_config("branchnorm", FTH_ENCDEC);
    c.share = FTH_SHARE_DEC;
    c.heads = 1;
    c.dropout = 0.3;
    check_gradients(&c, 3, "tied decoder, one head");
}

/* ---- reductions ---- */

/* Loss of a method with the parameters of Post-LN (or Pre-LN) where the names are the same. */
static double changed_loss_with_weights_of(const char *base, const fth_config *c, int64_t t,
                                           void (*change)(fth_graph *)) {
    fth_config plain = *c;
    snprintf(plain.method, sizeof plain.method, "%s", base);
    plain.n_options = 0;
    model_case a, b;
    model_case_init(&a, &plain, "ref", 1, 0.15, 0);
    model_case_init(&b, c, "ref", 1, 0, 0);
    for (int32_t i = 0; i < a.model.params.n; i++) {
        const fth_param *p = &a.model.params.param[i];
        int32_t at = fth_params_find(&b.model.params, p->name);
        if (at < 0) continue;
        memcpy(b.flat + b.model.params.param[at].offset, a.flat + p->offset,
               sizeof *a.flat * (size_t)fth_param_size(p));
    }
    assert_int_equal(fth_arenas_load(b.device, &b.trainer.arenas, b.flat), FTH_OK);
    if (change) change((fth_graph *)fth_program_graph(b.trainer.program));
    double loss = loss_at(&b, t), expected = loss_at(&a, t);
    model_case_fini(&a);
    model_case_fini(&b);
    return fabs(loss - expected);
}

static double loss_with_weights_of(const char *base, const fth_config *c, int64_t t) {
    return changed_loss_with_weights_of(base, c, t, NULL);
}

static void reductions(void **state) {
    (void)state;
    for (int arch = FTH_ENCDEC; arch <= FTH_DEC; arch++) {
        fth_config c = model_case_config("deepnorm", (fth_arch)arch);
        model_case_option(&c, "alpha", NULL, 1);
        assert_true(loss_with_weights_of("postln", &c, 1) < 1e-6);
        c = model_case_config("branchnorm", (fth_arch)arch);
        assert_true(loss_with_weights_of("postln", &c, 4000) < 1e-6);
        assert_true(loss_with_weights_of("postln", &c, 2000) > 1e-4); /* and not before */
        c = model_case_config("admin", (fth_arch)arch);
        assert_true(loss_with_weights_of("postln", &c, 1) < 1e-6);
        c = model_case_config("realformer", (fth_arch)arch);
        c.encoder_layers = arch == FTH_DEC ? 0 : 1;
        c.decoder_layers = arch == FTH_ENC ? 0 : 1;
        assert_true(loss_with_weights_of("postln", &c, 1) < 1e-6);
        c = model_case_config("postln-init", (fth_arch)arch);
        assert_true(loss_with_weights_of("postln", &c, 1) < 1e-6);
        c = model_case_config("dsinit", (fth_arch)arch);
        assert_true(loss_with_weights_of("postln", &c, 1) < 1e-6);
    }
}

/* The coefficient of every third term becomes 0. */
static void drop_third_terms(fth_graph *g) {
    int dropped = 0;
    for (int32_t i = 0; i < g->n_ops; i++) {
        fth_op *op = &g->op[i];
        if (op->kind != FTH_KIND_join_norm || !op->in[JOIN_E]) continue;
        op->u.join.c = fth_const(0);
        dropped++;
    }
    assert_true(dropped > 0);
}

static void b2t_without_the_layer_input(void **state) {
    (void)state;
    for (int arch = FTH_ENCDEC; arch <= FTH_DEC; arch++) {
        fth_config c = model_case_config("b2t", (fth_arch)arch);
        assert_true(changed_loss_with_weights_of("postln", &c, 1, drop_third_terms) < 1e-6);
        assert_true(loss_with_weights_of("postln", &c, 1) > 1e-4); /* and only without it */
    }
}

/* The parts of NormFormer that stay with its encoder off and no decoder are Pre-LN's. */
static void normformer_without_parts(void **state) {
    (void)state;
    fth_config c = model_case_config("normformer", FTH_ENC);
    model_case_option(&c, "encoder", "false", 0);
    assert_true(loss_with_weights_of("preln", &c, 1) < 1e-6);
}

/* dlcl-post with one-hot rows is Post-LN, up to an LN of an LN. */
static void dlcl_with_one_hot_rows(void **state) {
    (void)state;
    fth_config plain = model_case_config("postln", FTH_DEC),
               c = model_case_config("dlcl-post", FTH_DEC);
    model_case a, b;
    model_case_init(&a, &plain, "ref", 1, 0, 0);
    model_case_init(&b, &c, "ref", 1, 0, 0);
    const fth_param *w =
        &b.model.params.param[fth_params_find(&b.model.params, "decoder.history.weight")];
    for (int64_t i = 0; i < fth_param_size(w); i++)
        b.flat[w->offset + i] = i / w->shape[1] == i % w->shape[1];
    assert_int_equal(fth_arenas_load(b.device, &b.trainer.arenas, b.flat), FTH_OK);
    assert_close(loss_at(&a, 1), loss_at(&b, 1), 1e-4);
    model_case_fini(&a);
    model_case_fini(&b);
}

/* With branches at 0, only embeddings and output remain: the same loss as with no effect of
 * any layer weight. */
static void identity_at_start(void **state) {
    (void)state;
    static const char *const ids[] = {"rezero", "rfixup"};
    for (int i = 0; i < 2; i++) {
        fth_config c = model_case_config(ids[i], FTH_ENCDEC);
        model_case m;
        model_case_init(&m, &c, "ref", 1, 0, 0);
        double before = loss_at(&m, 1);
        for (int32_t k = 0; k < m.model.params.n; k++) { /* inner weights may be anything */
            const fth_param *p = &m.model.params.param[k];
            if (p->role == FTH_ROLE_Q || p->role == FTH_ROLE_V || p->role == FTH_ROLE_FC1)
                for (int64_t j = 0; j < fth_param_size(p); j++) m.flat[p->offset + j] *= 3;
        }
        assert_int_equal(fth_arenas_load(m.device, &m.trainer.arenas, m.flat), FTH_OK);
        assert_true(loss_at(&m, 1) == before);
        model_case_fini(&m);
    }
    fth_config c = model_case_config("rfixup", FTH_ENCDEC);
    c.share = FTH_SHARE_NONE;
    model_case m;
    model_case_init(&m, &c, "ref", 1, 0, 0);
    assert_close(loss_at(&m, 1), log(11), 1e-6);
    model_case_fini(&m);
}

/* ---- statistics of initial values ---- */

static void initial_statistics(void **state) {
    (void)state;
    for (const fth_method *const *id = fth_methods(); *id; id++) {
        fth_config c = model_case_config((*id)->id, FTH_ENCDEC);
        c.d_model = 256;
        c.ffn_dim = 512;
        c.heads = 4;
        c.src_vocab = c.tgt_vocab = 300;
        fth_model m;
        assert_int_equal(fth_model_init(&m, &c), FTH_OK);
        float *flat = malloc(sizeof *flat * (size_t)m.params.size);
        fth_model_draw(&m, 1, flat);
        for (int32_t i = 0; i < m.params.n; i++) {
            const fth_param *p = &m.params.param[i];
            if (!fth_role_is_matrix(p->role)) continue;
            double squares = 0, std = fth_init_std(p);
            for (int64_t k = 0; k < fth_param_size(p); k++)
                squares += (double)flat[p->offset + k] * flat[p->offset + k];
            double sample = sqrt(squares / (double)fth_param_size(p));
            if (!is_close(sample, std, 0.03 * std))
                fail_msg("%s: %s has std %g, its rule says %g", c.method, p->name, sample, std);
        }
        free(flat);
        fth_model_fini(&m);
    }
}

/* One seed gives the same base draw to methods that differ by a scale. */
static void draws_are_shared(void **state) {
    (void)state;
    fth_config a = model_case_config("postln", FTH_ENCDEC),
               b = model_case_config("dsinit", FTH_ENCDEC);
    fth_model ma, mb;
    assert_int_equal(fth_model_init(&ma, &a), FTH_OK);
    assert_int_equal(fth_model_init(&mb, &b), FTH_OK);
    float *fa = malloc(sizeof *fa * (size_t)ma.params.size),
          *fb = malloc(sizeof *fb * (size_t)mb.params.size);
    fth_model_draw(&ma, 9, fa);
    fth_model_draw(&mb, 9, fb);
    int32_t i = fth_params_find(&ma.params, "decoder.layers.1.fc1.weight");
    const fth_param *p = &ma.params.param[i];
    for (int64_t k = 0; k < fth_param_size(p); k++)
        assert_close(fb[p->offset + k], fa[p->offset + k] / sqrt(2.0), 1e-6);
    free(fa);
    free(fb);
    fth_model_fini(&ma);
    fth_model_fini(&mb);
}

/* ---- the schedule ---- */

static double alpha_at(const char *growth, double end, int64_t t) {
    fth_config c = model_case_config("branchnorm", FTH_DEC);
    model_case_option(&c, "growth", growth, 0);
    model_case_option(&c, "steps", NULL, 100);
    model_case_option(&c, "end", NULL, end);
    fth_method_state s;
    double slots[FTH_STEP_SLOTS];
    assert_int_equal(fth_method_resolve(&c, &s), FTH_OK);
    fth_method_step(&s, t, slots);
    return slots[0];
}

static void branch_schedule(void **state) {
    (void)state;
    static const struct {
        const char *growth;
        int64_t t;
        double alpha;
    } rows[] = {{"linear", 1, 0.01},   {"linear", 50, 0.5},        {"linear", 100, 1},
                {"linear", 101, 1},    {"exp", 10, 0.00917615},    {"exp", 25, 0.0320586},
                {"exp", 50, 0.119203}, {"exp", 75, 0.356086},      {"exp", 90, 0.664169},
                {"exp", 101, 1},       {"sigmoid", 10, 0.0114466}, {"sigmoid", 25, 0.0701037},
                {"sigmoid", 50, 0.5},  {"sigmoid", 75, 0.929896},  {"sigmoid", 90, 0.988553},
                {"sigmoid", 5000, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double alpha = alpha_at(rows[i].growth, 1, rows[i].t);
        if (!is_close(alpha, rows[i].alpha, 5e-7 * fmax(1, rows[i].alpha)))
            fail_msg("%s at %lld: %.9g", rows[i].growth, (long long)rows[i].t, alpha);
        assert_close(alpha_at(rows[i].growth, 3, rows[i].t), 3 * alpha, 1e-12);
    }
    assert_true(alpha_at("linear", 1, 0) == 0.01); /* a fresh model is used as at update 1 */
}

/* ---- bad options ---- */

static void bad_options(void **state) {
    (void)state;
    static const struct {
        const char *method, *key, *text;
        double number;
        const char *says;
    } rows[] = {{"branchnorm", "steps", NULL, 0, "steps 0"},
                {"branchnorm", "growth", "cubic", 0, "cubic"},
                {"branchnorm", "growth", NULL, 3, "growth"},
                {"branchnorm", "alpha", NULL, 3, "alpha"},
                {"postln", "steps", NULL, 10, "steps"},
                {"rezero", "per_sublayer", "maybe", 0, "maybe"},
                {"deepnrom", "alpha", NULL, 1, "deepnorm"},
                {"b2t", "init_scale", "number", 0, "number"},
                {"b2t", "init_scale", "number|auto", 0, "number|auto"},
                {"b2t", "init_scale", "|auto", 0, "|auto"},
                {"branchnorm", "growth", "linear|exp", 0,
                 "is \"linear|exp\", must be one of linear, exp, sigmoid"},
                {"realformer", "mode", "sum|mean", 0, "sum|mean"},
                {"realformer", "mode", "", 0, "mode"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fth_config c = model_case_config(rows[i].method, FTH_ENCDEC);
        model_case_option(&c, rows[i].key, rows[i].text, rows[i].number);
        fth_method_state s;
        assert_int_equal(fth_method_resolve(&c, &s), FTH_BAD_CONFIG);
        if (!strstr(fth_error_message(), rows[i].says))
            fail_msg("\"%s\" does not name %s", fth_error_message(), rows[i].says);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_every_method),
        cmocka_unit_test(gradients_of_options),
        cmocka_unit_test(gradients_of_architecture),
        cmocka_unit_test(reductions),
        cmocka_unit_test(b2t_without_the_layer_input),
        cmocka_unit_test(normformer_without_parts),
        cmocka_unit_test(dlcl_with_one_hot_rows),
        cmocka_unit_test(identity_at_start),
        cmocka_unit_test(initial_statistics),
        cmocka_unit_test(draws_are_shared),
        cmocka_unit_test(branch_schedule),
        cmocka_unit_test(bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
