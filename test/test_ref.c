/* links: ref */
/* Device ref: numbers that can be worked out by hand, dropout, generation against the full forward,
 * Adam. (Gradients: test_ops_ref.c.) */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/ref/ref.h"
#include "close.h"

static void assert_ok(fth_err err) {
    if (err != FTH_OK) fail_msg("%s", fth_error_message());
}

/* ---- one operation over arrays of the test ---- */

enum { MAX_OPERANDS = 16 };

/* Values are numbered 1, 2, ... in the order of use. */
typedef struct bench {
    fth_graph graph;
    fth_tensor tensor[MAX_OPERANDS];
    fth_exec ex;
    fth_op *op;
    int n;
    double scratch[64];
} bench;

static void bench_init(bench *b, fth_kind kind, int n_in, int n_out) {
    memset(b, 0, sizeof *b);
    fth_graph_init(&b->graph);
    b->op = fth_graph_op(&b->graph, kind, n_in, n_out);
    assert_non_null(b->op);
    b->ex = (fth_exec){.graph = &b->graph, .tensor = b->tensor, .scratch = b->scratch};
    b->ex.step = (fth_step){.seed = 7, .update = 1, .loss_scale = 1};
}

static fth_val give(bench *b, double *data, int64_t rows, int width, fth_extent extent) {
    b->tensor[++b->n] = (fth_tensor){data, width, rows, width, FTH_F64, extent};
    if (extent != FTH_ROWS_FIXED) b->ex.rows[extent] = rows;
    return b->n;
}

static void bench_run(bench *b) {
    assert_ok(fth_backend_ref()->kernel[b->op->kind](&b->ex, b->op));
    fth_graph_fini(&b->graph);
}

static void assert_near(const double *a, const double *b, int n) {
    for (int i = 0; i < n; i++)
        if (!is_close(a[i], b[i], 1e-12)) fail_msg("number %d is %.17g, not %.17g", i, a[i], b[i]);
}

/* ---- values ---- */

static void linear_by_hand(void **state) {
    (void)state;
    double x[] = {1, 2, -1, 0.5}, w[] = {1, 1, 0, -2, 3, 4}, bias[] = {0.5, 0, -10};
    double y[6], expected[] = {3.5, 0, 1, 0, 0, 0};
    bench b;
    bench_init(&b, FTH_KIND_linear, LINEAR_N_IN, LINEAR_N_OUT);
    b.op->u.linear.act = FTH_ACT_RELU;
    b.op->in[LINEAR_X] = give(&b, x, 2, 2, FTH_ROWS_SRC);
    b.op->in[LINEAR_W] = give(&b, w, 3, 2, FTH_ROWS_FIXED);
    b.op->in[LINEAR_B] = give(&b, bias, 1, 3, FTH_ROWS_FIXED);
    b.op->out[LINEAR_Y] = give(&b, y, 2, 3, FTH_ROWS_SRC);
    bench_run(&b);
    assert_near(y, expected, 6);
}

static void gelu_is_the_erf_form(void **state) {
    (void)state;
    double x[] = {0, 1, -1, 10}, y[4];
    double expected[] = {0, 0.84134474606854294858, -0.15865525393145705142, 10};
    bench b;
    bench_init(&b, FTH_KIND_activation, ACT_N_IN, ACT_N_OUT);
    b.op->u.linear.act = FTH_ACT_GELU;
    b.op->in[ACT_X] = give(&b, x, 1, 4, FTH_ROWS_SRC);
    b.op->out[ACT_Y] = give(&b, y, 1, 4, FTH_ROWS_SRC);
    bench_run(&b);
    assert_near(y, expected, 4);
}

static void join_norm_by_hand(void **state) {
    (void)state;
    double x[] = {1, 2}, f[] = {-2, 4}, gain[] = {2, 3}, bias[] = {0.5, -0.5}, z[2], y[2], stats[2];
    bench b;
    bench_init(&b, FTH_KIND_join_norm, JOIN_N_IN, JOIN_N_OUT);
    b.ex.step.slots[2] = 0.25;
    b.op->u.join.r = (fth_coef){.kind = FTH_COEF_CONST, .value = 3};
    b.op->u.join.a = (fth_coef){.kind = FTH_COEF_STEP, .slot = 2, .value = 2};
    b.op->u.join.eps = 7;
    b.op->in[JOIN_X] = give(&b, x, 1, 2, FTH_ROWS_TGT);
    b.op->in[JOIN_F] = give(&b, f, 1, 2, FTH_ROWS_TGT);
    b.op->in[JOIN_GAIN] = give(&b, gain, 1, 2, FTH_ROWS_FIXED);
    b.op->in[JOIN_BIAS] = give(&b, bias, 1, 2, FTH_ROWS_FIXED);
    b.op->out[JOIN_Z] = give(&b, z, 1, 2, FTH_ROWS_TGT);
    b.op->out[JOIN_Y] = give(&b, y, 1, 2, FTH_ROWS_TGT);
    b.op->out[JOIN_STATS] = give(&b, stats, 1, 2, FTH_ROWS_TGT);
    bench_run(&b);
    /* z = 3 x + 0.5 f; mean 5, variance 9, with eps 16 */
    assert_near(z, (double[]){2, 8}, 2);
    assert_near(stats, (double[]){5, 0.25}, 2);
    assert_near(y, (double[]){2 * -0.75 + 0.5, 3 * 0.75 - 0.5}, 2);
}

/* Uniform logits lose ln V whatever the smoothing, and gradient rows sum to 0. */
static void loss_of_uniform_logits(void **state) {
    (void)state;
    double x[] = {0, 0, 1, 2}, w[] = {1, 0, 0, 1, 1, 1, -1, 2}, dw[8] = {0};
    double loss[2], nll[2], dx[4];
    const int32_t targets[] = {2, -1};
    bench b;
    bench_init(&b, FTH_KIND_xent, XENT_N_IN, XENT_N_OUT);
    b.ex.batch.side[FTH_TGT].targets = targets;
    b.op->u.xent.smoothing = 0.1;
    b.op->in[XENT_X] = give(&b, x, 2, 2, FTH_ROWS_TGT);
    b.op->in[XENT_W] = give(&b, w, 4, 2, FTH_ROWS_FIXED);
    b.op->out[XENT_LOSS] = give(&b, loss, 1, 2, FTH_ROWS_FIXED);
    b.op->out[XENT_NLL] = give(&b, nll, 2, 1, FTH_ROWS_TGT);
    b.op->out[XENT_DX] = give(&b, dx, 2, 2, FTH_ROWS_TGT);
    b.op->out[XENT_DW] = give(&b, dw, 4, 2, FTH_ROWS_FIXED);
    bench_run(&b);
    assert_near(loss, (double[]){log(4), log(4)}, 2);
    assert_near(nll, (double[]){log(4), 0}, 2); /* the second row has no target */
    /* p - q = 1/4 - 0.1/3 three times and 1/4 - 0.9 at the target */
    const double other = 0.25 - 0.1 / 3, own = 0.25 - 0.9;
    assert_near(dx, (double[]){other - other + own, other + own + 2 * other, 0, 0}, 4);
}

static void embedding_by_hand(void **state) {
    (void)state;
    double table[] = {1, 2, 3, 4, 5, 6}, positions[] = {10, 20, 30, 40}, y[6];
    const int32_t ids[] = {2, 0, 2}, pos[] = {0, 1, 0};
    bench b;
    bench_init(&b, FTH_KIND_embed, EMBED_N_IN, EMBED_N_OUT);
    b.ex.batch.side[FTH_SRC].ids = ids;
    b.ex.batch.side[FTH_SRC].pos = pos;
    b.op->u.embed.scale = 2;
    b.op->in[EMBED_TABLE] = give(&b, table, 3, 2, FTH_ROWS_FIXED);
    b.op->in[EMBED_POS] = give(&b, positions, 2, 2, FTH_ROWS_FIXED);
    b.op->out[EMBED_Y] = give(&b, y, 3, 2, FTH_ROWS_SRC);
    bench_run(&b);
    assert_near(y, (double[]){20, 32, 32, 44, 20, 32}, 6);
}

/* ---- attention ---- */

/* Sentences of 1, 3 and 2 tokens, two heads of width 1; q = 0, so every probability is 1 / seen. */
static void attention_stays_in_its_sentence(void **state) {
    (void)state;
    const int32_t offsets[] = {0, 1, 4, 6};
    for (int causal = 0; causal < 2; causal++) {
        double q[12] = {0}, k[12], v[12], o[12], lse[12];
        for (int i = 0; i < 12; i++) k[i] = sin(i), v[i] = i;
        bench b;
        bench_init(&b, FTH_KIND_attention, ATT_N_IN, ATT_N_OUT);
        b.ex.batch.n_sent = 3;
        b.ex.batch.side[FTH_TGT].offsets = offsets;
        b.op->u.attention.q_side = b.op->u.attention.k_side = FTH_TGT;
        b.op->u.attention.heads = 2;
        b.op->u.attention.causal = causal;
        b.op->u.attention.scale = b.op->u.attention.divisor = 1;
        b.op->in[ATT_Q] = give(&b, q, 6, 2, FTH_ROWS_TGT);
        b.op->in[ATT_K] = give(&b, k, 6, 2, FTH_ROWS_TGT);
        b.op->in[ATT_V] = give(&b, v, 6, 2, FTH_ROWS_TGT);
        b.op->out[ATT_O] = give(&b, o, 6, 2, FTH_ROWS_TGT);
        b.op->out[ATT_LSE] = give(&b, lse, 6, 2, FTH_ROWS_TGT);
        bench_run(&b);
        static const double full[] = {0, 1, 4, 5, 4, 5, 4, 5, 9, 10, 9, 10};
        static const double past[] = {0, 1, 2, 3, 3, 4, 4, 5, 8, 9, 9, 10};
        assert_near(o, causal ? past : full, 12);
        static const int seen[2][6] = {{1, 3, 3, 3, 2, 2}, {1, 1, 2, 3, 1, 2}};
        for (int r = 0; r < 6; r++)
            assert_near(&lse[2 * r], (double[]){log(seen[causal][r]), log(seen[causal][r])}, 2);
    }
}

enum { LENGTH = 5, WIDTH = 6, HEADS = 2, SLOTS = 7 };

/* Runs one row after the other over a cache; o and scores [LENGTH * LENGTH, HEADS] as attention
 * would give them. */
static void generate(double *q, double *k, double *v, double *prev, double *o, double *scores) {
    double keys[SLOTS * WIDTH], values[SLOTS * WIDTH];
    memset(keys, 0, sizeof keys);
    memset(values, 0, sizeof values);
    static const int32_t slots[LENGTH] = {4, 0, 6, 1, 3}; /* in any order */
    for (int32_t t = 0; t < LENGTH; t++) {
        const int32_t length = t + 1;
        bench b;
        bench_init(&b, FTH_KIND_attention_cached, ATT_CACHED_N_IN, ATT_CACHED_N_OUT);
        b.ex.batch.slot = &slots[t];
        b.ex.batch.history = slots;
        b.ex.batch.history_pitch = LENGTH;
        b.ex.batch.length = &length;
        b.op->u.attention.heads = HEADS;
        b.op->u.attention.scale = 0.5f;
        b.op->u.attention.divisor = 2;
        b.op->in[ATT_CACHED_Q] = give(&b, q + t * WIDTH, 1, WIDTH, FTH_ROWS_TGT);
        b.op->in[ATT_CACHED_K] = give(&b, k + t * WIDTH, 1, WIDTH, FTH_ROWS_TGT);
        b.op->in[ATT_CACHED_V] = give(&b, v + t * WIDTH, 1, WIDTH, FTH_ROWS_TGT);
        double *pairs = prev + t * LENGTH * HEADS;
        b.op->in[ATT_CACHED_PREV] = give(&b, pairs, length, HEADS, FTH_ROWS_TGT_PAIRS);
        b.op->in[ATT_CACHED_KCACHE] = give(&b, keys, SLOTS, WIDTH, FTH_ROWS_FIXED);
        b.op->in[ATT_CACHED_VCACHE] = give(&b, values, SLOTS, WIDTH, FTH_ROWS_FIXED);
        b.op->out[ATT_CACHED_O] = give(&b, o + t * WIDTH, 1, WIDTH, FTH_ROWS_TGT);
        b.op->out[ATT_CACHED_SCORES] =
            give(&b, scores + t * LENGTH * HEADS, length, HEADS, FTH_ROWS_TGT_PAIRS);
        bench_run(&b);
    }
}

/* Row by row over a cache equals the causal forward. */
static void generation_equals_the_full_forward(void **state) {
    (void)state;
    enum { N = LENGTH * WIDTH, PAIRS = LENGTH * LENGTH * HEADS };
    double data[3][N], prev[PAIRS], o[2][N], scores[2][PAIRS];
    const int32_t offsets[] = {0, LENGTH};
    fth_rng rng;
    fth_rng_init(&rng, 1, 2);
    for (int i = 0; i < 3 * N; i++) data[i / N][i % N] = fth_rng_normal(&rng);
    for (int i = 0; i < PAIRS; i++) prev[i] = fth_rng_normal(&rng);
    memset(scores, 0, sizeof scores);
    bench b;
    bench_init(&b, FTH_KIND_attention, ATT_N_IN, ATT_N_OUT);
    b.ex.batch.n_sent = 1;
    b.ex.batch.side[FTH_TGT].offsets = offsets;
    b.op->u.attention.q_side = b.op->u.attention.k_side = FTH_TGT;
    b.op->u.attention.heads = HEADS;
    b.op->u.attention.causal = true;
    b.op->u.attention.scale = 0.5f;
    b.op->u.attention.divisor = 2;
    for (int i = 0; i < 3; i++) b.op->in[i] = give(&b, data[i], LENGTH, WIDTH, FTH_ROWS_TGT);
    b.op->in[ATT_PREV] = give(&b, prev, LENGTH * LENGTH, HEADS, FTH_ROWS_TGT_PAIRS);
    b.op->out[ATT_O] = give(&b, o[0], LENGTH, WIDTH, FTH_ROWS_TGT);
    b.op->out[ATT_SCORES] = give(&b, scores[0], LENGTH * LENGTH, HEADS, FTH_ROWS_TGT_PAIRS);
    bench_run(&b);
    generate(data[0], data[1], data[2], prev, o[1], scores[1]);
    assert_near(o[1], o[0], N);
    assert_near(scores[1], scores[0], PAIRS);
}

/* ---- dropout ---- */

static void dropout_has_its_rate(void **state) {
    (void)state;
    enum { N = 200000 };
    static const float rates[] = {0.0f, 0.1f, 0.3f, 0.5f, 0.9f};
    for (size_t k = 0; k < sizeof rates / sizeof *rates; k++) {
        const double p = fth_drop_threshold(rates[k]) / 65536.0;
        int kept = 0, both = 0, other_site = 0, other_update = 0, other_seed = 0, before = 0;
        for (uint64_t e = 0; e < N; e++) {
            int keeps = fth_drop_keeps(11, 5, 2, rates[k], e);
            kept += keeps;
            both += keeps && before; /* neighbours are independent */
            before = keeps;
            other_site += keeps && fth_drop_keeps(11, 5, 3, rates[k], e);
            other_update += keeps && fth_drop_keeps(11, 6, 2, rates[k], e);
            other_seed += keeps && fth_drop_keeps(12, 5, 2, rates[k], e);
        }
        const double q = 1 - p, slack = 5 * sqrt(N * q * p) + 1;
        assert_close(p, (double)rates[k], 1.0 / 65536);
        assert_close(kept, N * q, slack);
        const int pairs[] = {both, other_site, other_update, other_seed};
        for (int i = 0; i < 4; i++) assert_close(pairs[i], N * q * q, slack + 1);
        assert_close((double)fth_drop_scale(rates[k]) * q, 1, 1e-6);
    }
}

/* The mask of a row depends on its place in the update, not on how the update is cut. */
static void masks_do_not_depend_on_micro_batches(void **state) {
    (void)state;
    enum { ROWS = 9, COLUMNS = 13, CUT = 4 };
    double x[ROWS * COLUMNS], whole[ROWS * COLUMNS] = {0}, cut[ROWS * COLUMNS] = {0};
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = i + 1;
    for (int part = 0; part < 3; part++) { /* whole, rows before CUT, rows from CUT on */
        const int first = part == 2 ? CUT : 0, end = part == 1 ? CUT : ROWS;
        double *y = (part ? cut : whole) + first * COLUMNS;
        bench b;
        bench_init(&b, FTH_KIND_dropout, DROP_N_IN, DROP_N_OUT);
        b.ex.step.row_base[FTH_TGT] = 100 + first;
        b.op->u.dropout.drop = (fth_drop){.p = 0.5f, .site = 1};
        b.op->in[DROP_X] = give(&b, x + first * COLUMNS, end - first, COLUMNS, FTH_ROWS_TGT);
        b.op->out[DROP_Y] = give(&b, y, end - first, COLUMNS, FTH_ROWS_TGT);
        bench_run(&b);
    }
    assert_near(cut, whole, ROWS * COLUMNS);
    int dropped = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        if (whole[i] == 0)
            dropped++;
        else
            assert_near(&whole[i], (double[]){2 * x[i]}, 1);
    }
    assert_in_range(dropped, ROWS * COLUMNS / 3, 2 * ROWS * COLUMNS / 3);
}

/* doc/mathematics.md#dropout: whole vectors, no rescaling, positions stay, a decoder's first symbol
 * is spared. */
static void word_dropout_takes_whole_words(void **state) {
    (void)state;
    enum { ROWS = 400, LEN = 4 };
    double table[] = {5, 7}, positions[2 * LEN], y[2 * ROWS];
    int32_t ids[ROWS], pos[ROWS];
    for (int i = 0; i < 2 * LEN; i++) positions[i] = 10 * i;
    for (int r = 0; r < ROWS; r++) ids[r] = 0, pos[r] = r % LEN;
    for (int spare = 0; spare < 2; spare++) {
        bench b;
        bench_init(&b, FTH_KIND_embed, EMBED_N_IN, EMBED_N_OUT);
        b.ex.batch.side[FTH_TGT].ids = ids;
        b.ex.batch.side[FTH_TGT].pos = pos;
        b.op->u.embed.side = FTH_TGT;
        b.op->u.embed.scale = 3;
        b.op->u.embed.keep_first = spare;
        b.op->u.embed.word = (fth_drop){.p = 0.25f, .site = 9};
        b.op->in[EMBED_TABLE] = give(&b, table, 1, 2, FTH_ROWS_FIXED);
        b.op->in[EMBED_POS] = give(&b, positions, LEN, 2, FTH_ROWS_FIXED);
        b.op->out[EMBED_Y] = give(&b, y, ROWS, 2, FTH_ROWS_TGT);
        bench_run(&b);
        int dropped = 0, first_dropped = 0;
        for (int r = 0; r < ROWS; r++) {
            const double token = y[2 * r] - positions[2 * pos[r]];
            assert_true(token == 15 || token == 0);
            const double other = y[2 * r + 1] - positions[2 * pos[r] + 1];
            assert_true(other == (token == 15 ? 21 : 0));
            dropped += token == 0;
            first_dropped += token == 0 && pos[r] == 0;
        }
        assert_in_range(dropped, spare ? 50 : 65, 135);
        if (spare)
            assert_int_equal(first_dropped, 0);
        else
            assert_true(first_dropped > 0);
    }
}

/* ---- the device ---- */

static void adam_is_fairseqs(void **state) {
    (void)state;
    enum { N = 6, UPDATES = 4 };
    fth_device *dev = NULL;
    assert_ok(fth_backend_ref()->open(fth_backend_ref(), FTH_PRECISION_FP32, 1, &dev));
    double theta[N], grad[N], m[N] = {0}, v[N] = {0};
    double want_theta[N], want_m[N] = {0}, want_v[N] = {0};
    for (int i = 0; i < N; i++) theta[i] = want_theta[i] = (float)(0.1 * (i + 1));
    /* Element 2 lies between the ranges and has no gradient; the second range learns at half the
     * rate. */
    const fth_adam_range ranges[] = {{0, 2, 0, 1}, {3, N, 2, 0.5f}};
    const fth_arenas arenas = {N, theta, theta, grad, m, v, N - 1};
    for (int t = 1; t <= UPDATES; t++) {
        for (int i = 0; i < N; i++) grad[i] = cos(3 * i + t) * (i == 4 ? 0 : 1);
        const fth_adam args = {t, 0.01, 0.9, 0.98, 1e-8, 0.1, 0.5, ranges, 2};
        assert_ok(dev->backend->adam(dev, &arenas, &args));
        for (int i = 0; i < N; i++) {
            if (i == 2) continue;
            const double lr = i < 2 ? 0.01 : 0.005, g = 0.5 * grad[i < 2 ? i : i - 1];
            const double m1 = 0.9 * want_m[i] + 0.1 * g, v1 = 0.98 * want_v[i] + 0.02 * g * g;
            double x = want_theta[i] * (1 - lr * 0.1);
            x -= lr * sqrt(1 - pow(0.98, t)) / (1 - pow(0.9, t)) * m1 / (sqrt(v1) + 1e-8);
            want_m[i] = (float)m1, want_v[i] = (float)v1, want_theta[i] = (float)x;
        }
        for (int i = 0; i < N; i++) { /* what is kept fits into fp32 */
            assert_true(theta[i] == (float)theta[i] && m[i] == (float)m[i] && v[i] == (float)v[i]);
            assert_close(theta[i], want_theta[i], 1e-7);
            assert_close(m[i], want_m[i], 1e-7);
            assert_close(v[i], want_v[i], 1e-7);
        }
    }
    assert_true(theta[2] == (double)0.3f && m[2] == 0);
    dev->backend->close(dev);
}

static void first_update_goes_by_the_sign(void **state) {
    (void)state;
    fth_device dev = {fth_backend_ref(), FTH_PRECISION_FP32, 1, FTH_F64, FTH_F64, NULL};
    double theta[] = {1, 1}, grad[] = {1e-3, -70}, m[2] = {0}, v[2] = {0};
    const fth_adam_range all = {0, 2, 0, 1};
    const fth_arenas arenas = {2, theta, theta, grad, m, v, 2};
    const fth_adam args = {1, 0.25, 0.9, 0.98, 0, 0, 1, &all, 1};
    assert_ok(dev.backend->adam(&dev, &arenas, &args));
    assert_near(theta, (double[]){0.75, 1.25}, 2);
}

static void memory_and_arenas(void **state) {
    (void)state;
    const fth_backend *ref = fth_backend_ref();
    fth_device *dev = NULL;
    assert_int_equal(ref->open(ref, FTH_PRECISION_BF16, 1, &dev), FTH_USAGE);
    assert_non_null(strstr(fth_error_message(), "bf16"));
    assert_ok(ref->open(ref, FTH_PRECISION_FP32, 8, &dev));
    int64_t free_bytes = 0, total = 0;
    assert_ok(ref->memory(dev, &free_bytes, &total));
    assert_true(free_bytes > 0 && free_bytes <= total);
    void *data = NULL;
    assert_ok(ref->alloc(dev, 0, &data));
    ref->release(dev, data);
    assert_ok(ref->alloc(dev, 40, &data));
    assert_int_equal((uintptr_t)data % 64, 0);
    double back[5], from[5] = {3, -4, 0, 0, 12}, sum = 0;
    assert_ok(ref->download(dev, back, data, 40));
    assert_near(back, (double[]){0, 0, 0, 0, 0}, 5);
    assert_ok(ref->upload(dev, data, from, 40));
    assert_ok(ref->sum_squares(dev, data, 5, &sum));
    assert_near(&sum, (double[]){169}, 1);
    double copy[5] = {0};
    assert_ok(ref->refresh_weights(dev, &(fth_arenas){.n = 5, .master = from, .weights = copy}));
    assert_near(copy, from, 5);
    assert_ok(ref->zero(dev, data, 40));
    assert_ok(ref->sum_squares(dev, data, 5, &sum));
    assert_near(&sum, (double[]){0}, 1);
    ref->release(dev, data);
    ref->release(dev, NULL);
    ref->close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_by_hand),
        cmocka_unit_test(gelu_is_the_erf_form),
        cmocka_unit_test(join_norm_by_hand),
        cmocka_unit_test(loss_of_uniform_logits),
        cmocka_unit_test(embedding_by_hand),
        cmocka_unit_test(attention_stays_in_its_sentence),
        cmocka_unit_test(generation_equals_the_full_forward),
        cmocka_unit_test(dropout_has_its_rate),
        cmocka_unit_test(masks_do_not_depend_on_micro_batches),
        cmocka_unit_test(word_dropout_takes_whole_words),
        cmocka_unit_test(adam_is_fairseqs),
        cmocka_unit_test(first_update_goes_by_the_sign),
        cmocka_unit_test(memory_and_arenas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
