/* links: modelcase */
/* Telemetry: it changes no bit of a training, its numbers are what their names say, the backends
 * agree, and the parts add up to the whole. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "close.h"
#include "model_case.h"
#include "run/telemetry.h"
#include "train/sum.h"

static const fth_trainer_spec size = {.src_tokens = 9, .tgt_tokens = 8, .max_len = 9};

static void assert_ok(fth_err err) {
    if (err != FTH_OK) fail_msg("%s", fth_error_message());
}

/* A model with a telemetry of its own. */
typedef struct watched {
    model_case m;
    fth_telemetry *telemetry;
} watched;

static void open_watched(watched *w, const fth_config *c, const char *device, int threads,
                         int64_t budget) {
    fth_trainer_spec spec = size;
    spec.memory_budget = budget;
    model_case_init(&w->m, c, device, threads, 0.05, budget);
    assert_ok(fth_telemetry_new(&w->m.trainer, &spec, &w->telemetry));
}

static void close_watched(watched *w) {
    fth_telemetry_free(w->telemetry);
    model_case_fini(&w->m);
}

/* ---- no bit changes ---- */

/* Parameters and moments after six updates of two micro-batches, every k-th watched; 0: none. */
static float *train(const fth_config *c, const char *device, int64_t budget, int k) {
    watched w;
    open_watched(&w, c, device, 2, budget);
    if (budget) assert_true(fth_trainer_bytes(&w.m.trainer) <= budget);
    assert_ok(fth_sum_init(&w.m.trainer, 2));
    const fth_batch *batches[2] = {&w.m.store.batch, &w.m.store.batch};
    for (int64_t t = 1; t <= 6; t++) {
        fth_update u;
        if (k > 0 && (t == 1 || t % k == 0))
            assert_ok(fth_telemetry_update(w.telemetry, t, batches, 2, &u));
        else
            assert_ok(fth_trainer_update(&w.m.trainer, t, batches, 2, &u));
        assert_true(u.finite);
    }
    int64_t n = w.m.model.params.size;
    float *out = malloc(sizeof *out * 2 * (size_t)n);
    assert_ok(fth_arena_get(w.m.device, w.m.trainer.arenas.master, n, out));
    assert_ok(fth_arena_get(w.m.device, w.m.trainer.arenas.v, n, out + n));
    close_watched(&w);
    return out;
}

static void no_bit_changes(void **state) {
    (void)state;
    for (const fth_method *const *m = fth_methods(); *m; m++) {
        fth_config c = model_case_config((*m)->id, FTH_ENCDEC);
        c.dropout = 0.2;
        c.attention_dropout = c.activation_dropout = 0.1;
        model_case probe;
        model_case_init(&probe, &c, "cpu", 2, 0.05, 0);
        int64_t n = probe.model.params.size, all = fth_trainer_bytes(&probe.trainer);
        int64_t arena = fth_program_arena_bytes(probe.trainer.program);
        model_case_fini(&probe);
        /* nothing is made again; some values are; many, or whole layers */
        const int64_t budgets[] = {0, all - arena / 5, all - arena * 2 / 5};
        for (int b = 0; b < 3; b++) {
            float *plain = train(&c, "cpu", budgets[b], 0);
            for (int k = 1; k <= 4; k += 3) {
                float *seen = train(&c, "cpu", budgets[b], k);
                if (memcmp(plain, seen, sizeof *seen * 2 * (size_t)n) != 0)
                    fail_msg("%s, budget %lld: telemetry every %d updates changes the weights",
                             (*m)->id, (long long)budgets[b], k);
                free(seen);
            }
            free(plain);
        }
    }
}

/* The second program lives in the memory of the first. */
static void memory_is_shared(void **state) {
    (void)state;
    static const char *const methods[] = {"postln", "preln", "branchnorm", "realformer", "rfixup"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        fth_config c = model_case_config(methods[i], FTH_ENCDEC);
        c.encoder_layers = c.decoder_layers = 6;
        c.dropout = 0.1;
        watched w;
        open_watched(&w, &c, "cpu", 1, 0);
        int64_t constants = c.max_positions * c.d_model * 4; /* positions, of both stacks */
        int64_t board = (fth_telemetry_sublayers(w.telemetry) * 10 + 2) * 4;
        assert_int_equal(fth_telemetry_bytes(w.telemetry), constants + board);
        close_watched(&w);
    }
}

/* On a device that runs telemetry aside, whatever budget a training fits into is enough for it. */
static void every_budget_leaves_room(void **state) {
    (void)state;
    fth_config c = model_case_config("postln", FTH_ENCDEC);
    c.encoder_layers = c.decoder_layers = 4;
    model_case m;
    model_case_init(&m, &c, "cpu", 1, 0.05, 0);
    const fth_backend *real = m.device->backend;
    fth_backend late = *real;
    late.lag = 24;
    m.device->backend = &late;
    const int64_t all = fth_trainer_bytes(&m.trainer);
    const int64_t arena = fth_program_arena_bytes(m.trainer.program);
    int fits = 0;
    for (int64_t k = 1; k < 100; k++) {
        fth_trainer t;
        fth_telemetry *w = NULL;
        fth_trainer_spec spec = size;
        spec.memory_budget = all - arena * k / 100;
        if (fth_trainer_init(&t, &m.model, m.device, &m.trainer.recipe, &spec) != FTH_OK) break;
        assert_ok(fth_telemetry_new(&t, &spec, &w));
        fth_telemetry_free(w);
        fth_trainer_fini(&t);
        fits++;
    }
    assert_in_range(fits, 20, 98);
    m.device->backend = real;
    model_case_fini(&m);
}

/* ---- the numbers ---- */

static void one_row(watched *w, const fth_config *c, const char *device) {
    const fth_batch *batch = &w->m.store.batch;
    fth_update u;
    open_watched(w, c, device, 2, 0);
    assert_ok(fth_telemetry_update(w->telemetry, 1, &batch, 1, &u));
}

static void backends_agree_and_parts_add_up(void **state) {
    (void)state;
    const fth_arch arches[] = {FTH_ENCDEC, FTH_DEC};
    for (const fth_method *const *m = fth_methods(); *m; m++)
        for (int a = 0; a < 2; a++) {
            fth_config c = model_case_config((*m)->id, arches[a]);
            c.dropout = 0.1;
            watched ref, cpu;
            one_row(&ref, &c, "ref");
            one_row(&cpu, &c, "cpu");
            const fth_telemetry_row *x = fth_telemetry_row_at(ref.telemetry, 0);
            const fth_telemetry_row *y = fth_telemetry_row_at(cpu.telemetry, 0);
            int32_t n = fth_telemetry_sublayers(ref.telemetry);
            double squares = fth_telemetry_rest(cpu.telemetry);
            for (int q = 0; q < FTH_N_QUANTITIES; q++)
                for (int32_t i = 0; i < n; i++) {
                    double p = (double)x->value[q * n + i], s = (double)y->value[q * n + i];
                    if (q == FTH_Q_GRAD_NORM) squares += s * s;
                    /* the first update of Adam is the sign of a gradient, whatever its size: where
                     * it is all but 0, rounding decides */
                    double tolerance = q == FTH_Q_UPDATE_RATIO ? 5e-3 : 2e-4;
                    if (isnan(p) ? !isnan(s) : !is_close(p, s, tolerance * fabs(p) + 1e-5))
                        fail_msg("%s, %s of sub-layer %d: ref %g, cpu %g", (*m)->id,
                                 fth_quantity_name((fth_quantity)q), i, p, s);
                }
            if (arches[a] == FTH_ENCDEC)
                assert_close(x->encoder_cosine, y->encoder_cosine, 1e-5);
            else
                assert_true(isnan(y->encoder_cosine));
            double whole = y->what.gnorm * y->what.gnorm;
            if (!is_close(squares, whole, 1e-5 * whole))
                fail_msg("%s: the parts make %g, the gradient norm squared is %g", (*m)->id,
                         squares, whole);
            close_watched(&ref);
            close_watched(&cpu);
        }
}

/* Everything that taps can see of a model, after one forward and backward. */
typedef struct seen {
    model_case m;
    fth_taps taps;
    fth_program *program;
} seen;

/* Makes the program that keeps all of it, in memory of the lender if there is one. */
static void open_look(seen *s, fth_program *lender) {
    s->taps = (fth_taps){.gradients = FTH_TAP_DY};
    fth_graph graph;
    fth_graph_spec what = {
        .backward = true, .dropout = true, .smoothing = 0.1, .hidden = true, .taps = &s->taps};
    fth_outputs outputs;
    assert_ok(fth_model_graph(&s->m.model, &what, &graph, &outputs));
    for (int32_t i = 0; i < s->taps.n_sub; i++) {
        const fth_tap *t = &s->taps.sub[i];
        const fth_val all[] = {t->x, t->f, t->z, t->y, t->act, t->dy};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) fth_taps_keep(&graph, all[k]);
    }
    fth_program_spec how = {.arenas = &s->m.trainer.arenas, .lender = lender};
    fth_capacities(&size, how.capacity);
    assert_ok(fth_program_new(s->m.device, &graph, &how, &s->program));
}

static void run_look(seen *s) {
    fth_step step = {.seed = s->m.trainer.recipe.seed, .update = 1, .loss_scale = 1 / 7.0};
    fth_method_step(&s->m.model.method, 1, step.slots);
    assert_ok(fth_program_run(s->program, &s->m.store.batch, &step));
}

static void look(seen *s, const fth_config *c) {
    model_case_init(&s->m, c, "ref", 1, 0.05, 0);
    open_look(s, NULL);
    run_look(s);
}

/* A program that needs more than its lender has: the lender's arena grows, and both compute what
 * they compute apart. */
static void arenas_grow(void **state) {
    (void)state;
    fth_config c = model_case_config("postln", FTH_ENCDEC);
    c.dropout = 0.1;
    seen apart, lent;
    model_case_init(&apart.m, &c, "cpu", 2, 0.05, 0);
    model_case_init(&lent.m, &c, "cpu", 2, 0.05, 0);
    const fth_batch *batch = &lent.m.store.batch;
    fth_trainer *trainer[] = {&apart.m.trainer, &lent.m.trainer};
    fth_update u[2];
    for (int k = 0; k < 2; k++) assert_ok(fth_trainer_update(trainer[k], 1, &batch, 1, &u[k]));
    const int64_t before = fth_program_arena_bytes(trainer[1]->program);
    open_look(&apart, NULL);
    open_look(&lent, trainer[1]->program);
    const int64_t after = fth_program_arena_bytes(trainer[1]->program);
    assert_true(before < after);
    assert_int_equal(after, fth_program_arena_bytes(lent.program));
    assert_true(fth_program_bytes(lent.program) <= fth_program_bytes(apart.program) - after);
    run_look(&apart);
    run_look(&lent);
    for (int32_t i = 0; i < lent.taps.n_sub; i++) {
        double one[64 * 64], other[64 * 64];
        const fth_val dy = lent.taps.sub[i].dy;
        const int64_t n = fth_program_rows(lent.program, dy) * c.d_model;
        assert_true(n <= 64 * 64);
        assert_ok(fth_program_read(lent.program, dy, one));
        assert_ok(fth_program_read(apart.program, apart.taps.sub[i].dy, other));
        assert_memory_equal(one, other, sizeof *one * (size_t)n);
    }
    for (int k = 0; k < 2; k++) assert_ok(fth_trainer_update(trainer[k], 2, &batch, 1, &u[k]));
    assert_true(u[0].loss == u[1].loss && u[0].gnorm == u[1].gnorm);
    fth_program_free(lent.program);
    fth_program_free(apart.program);
    fth_taps_fini(&lent.taps);
    fth_taps_fini(&apart.taps);
    model_case_fini(&lent.m);
    model_case_fini(&apart.m);
}

static double *numbers_of(const seen *s, fth_val v, int64_t *rows, int64_t *width) {
    *rows = fth_program_rows(s->program, v);
    *width = fth_program_graph(s->program)->value[v].width;
    double *out = malloc(sizeof *out * (size_t)(*rows * *width));
    assert_ok(fth_program_read(s->program, v, out));
    return out;
}

typedef struct sums {
    double square, norms, nonzero, entries; /* norms: sum over rows */
} sums;

static sums sum_of(const seen *s, fth_val v) {
    int64_t rows, width;
    double *x = numbers_of(s, v, &rows, &width);
    sums out = {.entries = (double)(rows * width)};
    for (int64_t r = 0; r < rows; r++) {
        double square = 0;
        for (int64_t c = 0; c < width; c++) {
            square += x[r * width + c] * x[r * width + c];
            out.nonzero += x[r * width + c] != 0;
        }
        out.square += square;
        out.norms += sqrt(square) / (double)rows;
    }
    free(x);
    return out;
}

static double cosine_of(const seen *s, fth_val a, fth_val b) {
    int64_t rows, width;
    double *x = numbers_of(s, a, &rows, &width), *y = numbers_of(s, b, &rows, &width), sum = 0;
    for (int64_t r = 0; r < rows; r++) {
        double xx = 0, yy = 0, xy = 0;
        for (int64_t c = r * width; c < (r + 1) * width; c++)
            xx += x[c] * x[c], yy += y[c] * y[c], xy += x[c] * y[c];
        sum += xy / sqrt(xx * yy) / (double)rows;
    }
    free(x);
    free(y);
    return sum;
}

static void assert_number(const watched *w, fth_quantity q, int32_t i, double expected) {
    const fth_telemetry_row *row = fth_telemetry_row_at(w->telemetry, 0);
    int32_t n = fth_telemetry_sublayers(w->telemetry);
    double x = (double)row->value[(int32_t)q * n + i];
    if (!is_close(x, expected, 1e-6 * fabs(expected) + 1e-9))
        fail_msg("%s: %s of sub-layer %d is %.9g, not %.9g", w->m.model.config.method,
                 fth_quantity_name(q), i, x, expected);
}

static void numbers_are_what_they_say(void **state) {
    (void)state;
    /* factor: of the branch against the residual, where a method has a fixed one */
    static const struct {
        const char *method;
        double factor;
        bool has_norm;
    } rows[] = {{"postln", 1, true},    {"preln", 1, true}, {"deepnorm", 0, true},
                {"tfixup", 1, false},   {"b2t", 1, true},   {"subln", 1, true},
                {"realformer", 1, true}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        fth_config c = model_case_config(rows[k].method, FTH_ENCDEC);
        seen s;
        watched w;
        look(&s, &c);
        one_row(&w, &c, "ref");
        for (int32_t i = 0; i < s.taps.n_sub; i++) {
            const fth_tap *t = &s.taps.sub[i];
            assert_number(&w, FTH_Q_OUTPUT_GRAD_NORM, i, sqrt(sum_of(&s, t->dy).square));
            assert_number(&w, FTH_Q_COSINE, i, cosine_of(&s, t->x, t->y));
            if (rows[k].factor > 0)
                assert_number(&w, FTH_Q_BRANCH_RATIO, i,
                              rows[k].factor *
                                  sqrt(sum_of(&s, t->f).square / sum_of(&s, t->x).square));
            assert_int_equal(fth_telemetry_has(w.telemetry, FTH_Q_LN_INPUT_NORM, i),
                             rows[k].has_norm);
            if (rows[k].has_norm) assert_number(&w, FTH_Q_LN_INPUT_NORM, i, sum_of(&s, t->z).norms);
            assert_int_equal(fth_telemetry_has(w.telemetry, FTH_Q_FFN_NONZERO, i),
                             t->sub == FTH_FFN);
            assert_int_equal(fth_telemetry_has(w.telemetry, FTH_Q_ENTROPY, i), t->sub != FTH_FFN);
            if (t->sub == FTH_FFN) {
                sums act = sum_of(&s, t->act);
                assert_number(&w, FTH_Q_FFN_NONZERO, i, act.nonzero / act.entries);
            }
        }
        fth_program_free(s.program);
        fth_taps_fini(&s.taps);
        model_case_fini(&s.m);
        close_watched(&w);
    }
}

/* The branch's own factor: alpha of update 1 of 100 in branchnorm, 1 / alpha in deepnorm. */
static void factors_of_the_branch_count(void **state) {
    (void)state;
    fth_config c = model_case_config("branchnorm", FTH_ENCDEC);
    model_case_option(&c, "steps", NULL, 100);
    fth_config plain = model_case_config("branchnorm", FTH_ENCDEC);
    model_case_option(&plain, "steps", NULL, 1);
    watched slow, full;
    one_row(&slow, &c, "ref");
    one_row(&full, &plain, "ref");
    const fth_telemetry_row *a = fth_telemetry_row_at(slow.telemetry, 0);
    const fth_telemetry_row *b = fth_telemetry_row_at(full.telemetry, 0);
    int32_t n = fth_telemetry_sublayers(slow.telemetry), at = FTH_Q_BRANCH_RATIO * n;
    /* the lowest sub-layer has the same input in both */
    assert_close((double)(a->value[at] / b->value[at]), 0.01, 1e-6);
    close_watched(&slow);
    close_watched(&full);
}

static void updates_are_measured(void **state) {
    (void)state;
    fth_config c = model_case_config("branchnorm", FTH_ENCDEC);
    model_case_option(&c, "branch_lr", "alpha", 0);
    model_case_option(&c, "steps", NULL, 10);
    for (int decay = 0; decay < 2; decay++) {
        watched w;
        open_watched(&w, &c, "cpu", 2, 0);
        w.m.trainer.recipe.weight_decay = decay * 0.5;
        const fth_batch *batch = &w.m.store.batch;
        int64_t n = w.m.model.params.size;
        float *before = malloc(sizeof *before * 2 * (size_t)n), *after = before + n;
        fth_update u;
        for (int64_t t = 1; t <= 3; t++) {
            assert_ok(fth_arena_get(w.m.device, w.m.trainer.arenas.master, n, before));
            assert_ok(fth_telemetry_update(w.telemetry, t, &batch, 1, &u));
        }
        assert_ok(fth_arena_get(w.m.device, w.m.trainer.arenas.master, n, after));
        double change = 0, size_before = 0;
        for (int32_t i = 0; i < w.m.model.params.n; i++) {
            const fth_param *p = &w.m.model.params.param[i];
            if (p->stack != FTH_DECODER || p->layer != 1 || p->sub != FTH_CROSS) continue;
            for (int64_t e = p->offset; e < p->offset + fth_param_size(p); e++) {
                double d = (double)after[e] - (double)before[e];
                change += d * d;
                size_before += (double)before[e] * (double)before[e];
            }
        }
        const fth_telemetry_row *row = fth_telemetry_row_at(w.telemetry, 0);
        int32_t subs = fth_telemetry_sublayers(w.telemetry), cross = 4 + 3 + 1;
        double ratio = (double)row->value[FTH_Q_UPDATE_RATIO * subs + cross];
        double norm = (double)row->value[FTH_Q_PARAM_NORM * subs + cross];
        assert_close(norm, sqrt(size_before), 1e-5 * norm);
        if (!is_close(ratio, sqrt(change / size_before), 2e-4 * ratio))
            fail_msg("decay %d: update ratio %g, not %g", decay, ratio, sqrt(change / size_before));
        free(before);
        close_watched(&w);
    }
}

static void the_last_rows_are_kept(void **state) {
    (void)state;
    fth_config c = model_case_config("preln", FTH_DEC);
    watched w;
    open_watched(&w, &c, "cpu", 1, 0);
    const fth_batch *batch = &w.m.store.batch;
    assert_int_equal(fth_telemetry_rows(w.telemetry), 0);
    for (int64_t t = 1; t <= 70; t++) {
        fth_update u;
        assert_ok(fth_telemetry_update(w.telemetry, t, &batch, 1, &u));
    }
    assert_int_equal(fth_telemetry_rows(w.telemetry), 64);
    assert_int_equal(fth_telemetry_row_at(w.telemetry, 0)->update, 70);
    assert_int_equal(fth_telemetry_row_at(w.telemetry, 63)->update, 7);
    close_watched(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bit_changes),
        cmocka_unit_test(memory_is_shared),
        cmocka_unit_test(arenas_grow),
        cmocka_unit_test(every_budget_leaves_room),
        cmocka_unit_test(backends_agree_and_parts_add_up),
        cmocka_unit_test(numbers_are_what_they_say),
        cmocka_unit_test(factors_of_the_branch_count),
        cmocka_unit_test(updates_are_measured),
        cmocka_unit_test(the_last_rows_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
