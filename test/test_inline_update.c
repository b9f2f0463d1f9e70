/* links: modelcase */
/* Matrices that are updated inside of the backward (graph/inline_update.h): the same bits, nothing
 * reads them behind their update, and the gradients that remain lie side by side. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "close.h"
#include "graph/op.h"
#include "model_case.h"
#include "run/telemetry.h"

static void assert_ok(fth_err err) {
    if (err != FTH_OK) fail_msg("%s", fth_error_message());
}

static fth_trainer_spec size_of(bool early, int64_t budget) {
    return (fth_trainer_spec){.src_tokens = 9,
                              .tgt_tokens = 8,
                              .max_len = 9,
                              .memory_budget = budget,
                              .inline_updates = early};
}

/* Elements that are updated together, as a GPU asks for it; 0: as the device has it. */
static int64_t together;

/* A case whose trainer is made anew. */
static void open_case(model_case *m, const fth_config *c, const char *device, bool early,
                      int64_t budget) {
    static fth_backend other;
    model_case_init(m, c, device, 2, 0.05, 0);
    if (together) {
        other = *m->device->backend;
        other.update_together = together;
        m->device->backend = &other;
    }
    const fth_recipe recipe = m->trainer.recipe;
    const fth_trainer_spec size = size_of(early, budget);
    fth_trainer_fini(&m->trainer);
    assert_ok(fth_trainer_init(&m->trainer, &m->model, m->device, &recipe, &size));
    assert_ok(fth_arenas_load(m->device, &m->trainer.arenas, m->flat));
}

/* ---- the same result ---- */

/* Parameters and both moments after four updates, [3, params.size]; gnorm [4]. */
static float *train(const fth_config *c, const char *device, bool early, int64_t budget,
                    double *gnorm) {
    model_case m;
    open_case(&m, c, device, early, budget);
    const fth_batch *batch = &m.store.batch;
    for (int64_t t = 1; t <= 4; t++) {
        fth_update u;
        assert_ok(fth_trainer_update(&m.trainer, t, &batch, 1, &u));
        assert_true(u.finite);
        gnorm[t - 1] = u.gnorm;
    }
    const int64_t n = m.model.params.size;
    float *out = malloc(sizeof *out * 3 * (size_t)n);
    void *const arenas[] = {m.trainer.arenas.master, m.trainer.arenas.m, m.trainer.arenas.v};
    for (int k = 0; k < 3; k++) assert_ok(fth_arena_get(m.device, arenas[k], n, out + k * n));
    model_case_fini(&m);
    return out;
}

static void assert_same(const fth_config *c, const char *device, int64_t budget) {
    double a[4], b[4];
    float *late = train(c, device, false, 0, a), *early = train(c, device, true, budget, b);
    fth_model m;
    assert_ok(fth_model_init(&m, c));
    if (memcmp(late, early, sizeof *late * 3 * (size_t)m.params.size) != 0)
        fail_msg("%s %s on %s, budget %lld: early updates have other bits", c->method,
                 fth_arch_name(c->arch), device, (long long)budget);
    for (int t = 0; t < 4; t++) assert_close(a[t], b[t], 1e-6 * a[t]);
    fth_model_fini(&m);
    free(late);
    free(early);
}

static void bits_are_the_same(void **state) {
    (void)state;
    for (const fth_method *const *m = fth_methods(); *m; m++)
        for (int arch = 0; arch < 3; arch++) {
            fth_config c = model_case_config((*m)->id, (fth_arch)arch);
            c.dropout = 0.2;
            assert_same(&c, "cpu", 0);
            if (arch == 0) assert_same(&c, "ref", 0);
            if (arch == 0) assert_same(&c, "cpu-bf16", 0);
        }
}

/* ---- asked to stop in the middle ---- */

static volatile sig_atomic_t asked;

static void *ask_later(void *microseconds) {
    usleep(*(useconds_t *)microseconds);
    asked = 1;
    return NULL;
}

/* An update that may be stopped; whether it was. */
static bool is_stopped(fth_trainer *t, int64_t update, const fth_batch *batch, useconds_t after) {
    fth_update u;
    pthread_t thread;
    asked = 0;
    assert_int_equal(pthread_create(&thread, NULL, ask_later, &after), 0);
    const fth_err err = fth_trainer_update(t, update, &batch, 1, &u);
    pthread_join(thread, NULL);
    assert_true(err == FTH_OK || err == FTH_STOPPED);
    return err == FTH_STOPPED;
}

/* As if it had not begun: the same update is made again until it comes to its end. */
static void check_stops(const fth_config *c, const char *device, bool early) {
    double gnorm[4];
    float *whole = train(c, device, early, 0, gnorm);
    model_case m;
    fth_update u;
    open_case(&m, c, device, early, 0);
    const fth_batch *batch = &m.store.batch;
    m.device->stop = &asked;
    for (int64_t t = 1; t <= 4; t++) {
        asked = 1;
        assert_int_equal(fth_trainer_update(&m.trainer, t, &batch, 1, &u), FTH_STOPPED);
        for (useconds_t after = 10; is_stopped(&m.trainer, t, batch, after);)
            after += 1 + after / 4;
    }
    const int64_t n = m.model.params.size;
    float *now = malloc(sizeof *now * (size_t)n);
    assert_non_null(now);
    assert_ok(fth_arena_get(m.device, m.trainer.arenas.master, n, now));
    assert_memory_equal(whole, now, sizeof *now * (size_t)n);
    free(now);
    free(whole);
    model_case_fini(&m);
}

static void a_stopped_update_leaves_no_trace(void **state) {
    (void)state;
    fth_config c = model_case_config("branchnorm", FTH_ENCDEC);
    c.encoder_layers = c.decoder_layers = 8;
    c.dropout = 0.2;
    for (int early = 0; early < 2; early++)
        for (int round = 0; round < 5; round++) check_stops(&c, "cpu", early);
    check_stops(&c, "ref", false);
    check_stops(&c, "ref", true);
}

static void wide_matrices_too(void **state) {
    (void)state;
    fth_config c = model_case_config("branchnorm", FTH_ENCDEC);
    c.d_model = 64, c.ffn_dim = 1040, c.heads = 2; /* several stretches, dW shared by threads */
    assert_same(&c, "cpu", 0);
    assert_same(&c, "cpu-bf16", 0);
}

static void under_a_budget(void) {
    static const char *const methods[] = {"branchnorm", "preln", "realformer", "dlcl-post"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        fth_config c = model_case_config(methods[i], FTH_ENCDEC);
        c.encoder_layers = c.decoder_layers = 8;
        c.dropout = 0.2;
        model_case m;
        open_case(&m, &c, "cpu", true, 0);
        const int64_t all = fth_trainer_bytes(&m.trainer);
        const int64_t arena = fth_program_arena_bytes(m.trainer.program);
        model_case_fini(&m);
        assert_same(&c, "cpu", all - arena / 10);
        assert_same(&c, "cpu", all - arena * 2 / 5);
    }
}

static void under_a_budget_too(void **state) {
    (void)state;
    under_a_budget();
    together = 1000; /* two layers or so */
    under_a_budget();
    together = 0;
}

/* ---- the graph ---- */

static bool overlaps(const fth_value *a, int64_t begin, int64_t end) {
    return a->offset < end && begin < a->offset + a->rows * a->width;
}

/* Nobody touches a matrix or its gradient behind its update; every matrix of a layer has one. */
static void check_order(const fth_graph *g, int32_t *updates) {
    *updates = 0;
    for (int32_t i = 0; i < g->n_ops; i++) {
        const fth_op *op = &g->op[i];
        if (op->kind != FTH_KIND_update) continue;
        ++*updates;
        const fth_value *w = &g->value[op->out[UPDATE_MASTER]];
        const int64_t begin = w->offset, end = w->offset + w->rows * w->width;
        for (int32_t k = i + 1; k < g->n_ops; k++)
            for (int j = 0; j < g->op[k].n_in; j++) {
                const fth_val v = g->op[k].in[j];
                assert_true(v != op->in[UPDATE_GRAD]);
                if (v && g->value[v].storage == FTH_IN_PARAM)
                    assert_false(overlaps(&g->value[v], begin, end));
            }
    }
}

static void order_is_kept(void) {
    for (const fth_method *const *method = fth_methods(); *method; method++)
        for (int tight = 0; tight < 2; tight++) {
            fth_config c = model_case_config((*method)->id, FTH_ENCDEC);
            c.encoder_layers = c.decoder_layers = 6;
            model_case m;
            open_case(&m, &c, "cpu", true, 0);
            int64_t budget =
                fth_trainer_bytes(&m.trainer) - fth_program_arena_bytes(m.trainer.program) * 2 / 5;
            if (tight) {
                model_case_fini(&m);
                open_case(&m, &c, "cpu", true, budget);
            }
            int32_t updates;
            check_order(fth_program_graph(m.trainer.program), &updates);
            assert_int_equal(updates, m.trainer.inline_updates.n);
            /* qkv, o, fc1, fc2; the decoder's cross q, kv and o */
            assert_int_equal(updates, 6 * 4 + 6 * 7);
            model_case_fini(&m);
        }
}

static void updates_come_last(void **state) {
    (void)state;
    order_is_kept();
    together = 1000;
    order_is_kept();
    together = 0;
}

/* What is not early has its gradients side by side, in order and aligned as the parameters. */
static void gradients_move_together(void **state) {
    (void)state;
    fth_config c = model_case_config("postln", FTH_ENCDEC);
    c.d_model = 20, c.heads = 2, c.ffn_dim = 12; /* matrices that end inside of a line */
    model_case m;
    open_case(&m, &c, "cpu", true, 0);
    const fth_params *params = &m.model.params;
    int64_t used = 0, early = 0;
    for (int32_t i = 0; i < params->n; i++) {
        const fth_param *p = &params->param[i];
        const int64_t grad = fth_inline_updates_grad(&m.trainer.inline_updates, p->offset);
        if (grad < 0) {
            early += fth_param_size(p);
            continue;
        }
        assert_true(grad >= used);
        assert_int_equal(grad % FTH_PARAM_ALIGNMENT, p->offset % FTH_PARAM_ALIGNMENT);
        used = grad + fth_param_size(p);
    }
    assert_true(used <= m.trainer.arenas.grads);
    assert_true(early > 0 && m.trainer.arenas.grads <= params->size - early / 2);
    model_case_fini(&m);
}

/* ---- what it refuses, and what it leaves alone ---- */

static void needs_one_batch_and_no_clipping(void **state) {
    (void)state;
    fth_recipe recipe = {.clip = 0};
    assert_true(fth_can_update_inline(&recipe, 1, 1));
    assert_false(fth_can_update_inline(&recipe, 2, 1));
    assert_false(fth_can_update_inline(&recipe, 1, 2));
    recipe.clip = 1;
    assert_false(fth_can_update_inline(&recipe, 1, 1));
    fth_config c = model_case_config("postln", FTH_ENCDEC);
    model_case m;
    open_case(&m, &c, "cpu", true, 0);
    const fth_batch *batches[] = {&m.store.batch, &m.store.batch};
    fth_update u;
    assert_int_equal(fth_trainer_gradients(&m.trainer, 1, batches, 1, &u), FTH_FAILED);
    assert_int_equal(fth_trainer_update(&m.trainer, 1, batches, 2, &u), FTH_FAILED);
    assert_non_null(strstr(fth_error_message(), "1 batch, not 2"));
    model_case_fini(&m);
}

static void a_loss_that_is_not_finite_changes_nothing(void **state) {
    (void)state;
    static const char *const devices[] = {"ref", "cpu", "cpu-bf16"};
    for (int d = 0; d < 3; d++) {
        fth_config c = model_case_config("postln", FTH_ENCDEC);
        model_case m;
        open_case(&m, &c, devices[d], true, 0);
        m.flat[0] = INFINITY; /* an embedding */
        for (int64_t i = 0; i < fth_param_size(&m.model.params.param[0]); i++)
            m.flat[m.model.params.param[0].offset + i] = INFINITY;
        assert_ok(fth_arenas_load(m.device, &m.trainer.arenas, m.flat));
        const fth_batch *batch = &m.store.batch;
        const int64_t n = m.model.params.size;
        fth_update u;
        assert_ok(fth_trainer_update(&m.trainer, 1, &batch, 1, &u));
        assert_false(u.finite);
        float *now = malloc(sizeof *now * (size_t)n);
        assert_ok(fth_arena_get(m.device, m.trainer.arenas.master, n, now));
        assert_memory_equal(now, m.flat, sizeof *now * (size_t)n);
        assert_ok(fth_arena_get(m.device, m.trainer.arenas.v, n, now));
        for (int64_t i = 0; i < n; i++) assert_true(now[i] == 0);
        free(now);
        model_case_fini(&m);
    }
}

/* ---- telemetry ---- */

static void telemetry_sees_the_same(void **state) {
    (void)state;
    static const char *const methods[] = {"branchnorm", "preln", "rezero", "admin"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        fth_config c = model_case_config(methods[i], FTH_ENCDEC);
        fth_telemetry *w[2];
        model_case m[2];
        for (int early = 0; early < 2; early++) {
            const fth_trainer_spec size = size_of(early, 0);
            fth_update u;
            open_case(&m[early], &c, "cpu", early, 0);
            m[early].trainer.recipe.weight_decay = 0.01;
            assert_ok(fth_telemetry_new(&m[early].trainer, &size, &w[early]));
            const fth_batch *batch = &m[early].store.batch;
            for (int64_t t = 1; t <= 3; t++)
                assert_ok(fth_telemetry_update(w[early], t, &batch, 1, &u));
        }
        const int32_t n = fth_telemetry_sublayers(w[0]) * FTH_N_QUANTITIES;
        const float *a = fth_telemetry_row_at(w[0], 0)->value;
        const float *b = fth_telemetry_row_at(w[1], 0)->value;
        for (int32_t k = 0; k < n; k++)
            if (!(isnan(a[k]) && isnan(b[k])) && !is_close(a[k], b[k], 1e-5f * fabsf(a[k])))
                fail_msg("%s: number %d is %g, early %g", methods[i], k, (double)a[k],
                         (double)b[k]);
        for (int early = 0; early < 2; early++) {
            fth_telemetry_free(w[early]);
            model_case_fini(&m[early]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_the_same),
        cmocka_unit_test(a_stopped_update_leaves_no_trace),
        cmocka_unit_test(wide_matrices_too),
        cmocka_unit_test(under_a_budget_too),
        cmocka_unit_test(updates_come_last),
        cmocka_unit_test(gradients_move_together),
        cmocka_unit_test(needs_one_batch_and_no_clipping),
        cmocka_unit_test(a_loss_that_is_not_finite_changes_nothing),
        cmocka_unit_test(telemetry_sees_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
