/* links: harness device ref cpu */
/* The best words of a row, exactly: every device that is here against a choice by sorting, with
 * vocabularies of odd sizes, ties and numbers that are none. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "base/philox.h"
#include "backend/top_words.h"
#include "close.h"
#include "gpu.h"
#include "op_harness.h"

static void assert_ok(fth_err err) {
    if (err != FTH_OK) fail_msg("%s", fth_error_message());
}

/* ---- rows ---- */

static fth_rng rng;

static double normal(int i) {
    (void)i;
    return fth_rng_normal(&rng);
}

static double equal(int i) {
    (void)i;
    return -2.25;
}

static double rising(int i) {
    return i / 64.0;
}

static double falling(int i) {
    return -i / 64.0;
}

/* Few different numbers, zeros of both signs among them. */
static double coarse(int i) {
    const double x = floor(fth_rng_normal(&rng));
    return x == 0 && i % 2 ? -0.0 : x;
}

static double sparse(int i) {
    return i % 11 == 4 ? fth_rng_normal(&rng) : -INFINITY;
}

static double forbidden(int i) {
    (void)i;
    return -INFINITY;
}

static double broken(int i) {
    return i % 3 == 1 ? (double)NAN : fth_rng_normal(&rng);
}

static double endless(int i) {
    return i % 100 == 4 ? INFINITY : fth_rng_normal(&rng);
}

static const struct {
    const char *name;
    double (*number)(int i);
    bool no_sum; /* the log of the sum of exponentials is no number */
} rows[] = {
    {"normal", normal, false},       {"equal", equal, false},   {"rising", rising, false},
    {"falling", falling, false},     {"coarse", coarse, false}, {"sparse", sparse, false},
    {"forbidden", forbidden, false}, {"broken", broken, true},  {"endless", endless, true},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* ---- what is expected ---- */

typedef struct item {
    double logit;
    int word;
} item;

static int better_first(const void *a, const void *b) {
    const item *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return (x->word > y->word) - (x->word < y->word);
}

/* A row's words, best first, without those that are forbidden. */
typedef struct ranking {
    item *all; /* [n] */
    int n;
    double lse; /* of their logits */
} ranking;

static ranking rank(const double *x, int vocab) {
    ranking r = {.all = test_malloc(sizeof *r.all * (size_t)vocab)};
    for (int v = 0; v < vocab; v++)
        if (x[v] > -INFINITY) r.all[r.n++] = (item){x[v], v};
    qsort(r.all, (size_t)r.n, sizeof *r.all, better_first);
    const double most = r.n ? r.all[0].logit : -INFINITY;
    double sum = 0;
    for (int i = 0; i < r.n; i++) sum += exp(r.all[i].logit - most);
    r.lse = r.n ? most + log(sum) : -INFINITY;
    return r;
}

static void check_row(const char *device, const char *row, const ranking *want, int vocab,
                      const double *y, int k, bool no_sum) {
    const int n = want->n;
    const double lse = want->lse;
    const bool right =
        no_sum && n ? isnan(y[TOP_LSE]) || vocab < 5
                    : y[TOP_LSE] == lse || is_close(y[TOP_LSE], lse, 1e-5 + 3e-7 * fabs(lse));
    if (!right)
        fail_msg("%s, %s of %d: the log of the sum is %.9g, not %.9g", device, row, vocab,
                 y[TOP_LSE], lse);
    for (int i = 0; i < k; i++) {
        const double logit = i < n ? want->all[i].logit : -INFINITY;
        const double word = i < n ? want->all[i].word : -1;
        if (y[TOP_BEST + i] != logit || y[TOP_BEST + k + i] != word)
            fail_msg("%s, %s of %d: number %d of %d is word %g with %.9g, not %g with %.9g", device,
                     row, vocab, i, k, y[TOP_BEST + k + i], y[TOP_BEST + i], word, logit);
    }
}

/* ---- devices ---- */

/* What a device holds of a number. */
static double held(fth_dtype type, double x) {
    if (type == FTH_F64) return x;
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (type == FTH_BF16 && isfinite(f)) bits &= 0xffff0000u;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void make_trial(fth_trial *t, const fth_op_case *c, fth_dtype type, int vocab, int k) {
    *t = (fth_trial){.from = c};
    fth_graph_init(&t->graph);
    fth_rng_init(&t->rng, 1, 0);
    fth_rng_init(&rng, (uint64_t)vocab, 0);
    int32_t *asked = fth_arena_alloc(&t->graph.arena, sizeof *asked * N_ROWS * 2);
    int32_t *zeros = fth_arena_alloc(&t->graph.arena, sizeof *zeros * N_ROWS);
    int32_t *offsets = fth_arena_alloc(&t->graph.arena, sizeof *offsets * 2);
    assert_true(asked && zeros && offsets);
    offsets[0] = 0;
    offsets[1] = N_ROWS;
    for (int r = 0; r < N_ROWS; r++) {
        asked[r] = r % 4 == 3 ? -1 : r * 7919 % vocab;
        zeros[r] = 0;
    }
    t->batch.n_sent = 1;
    t->batch.side[FTH_TGT] = (fth_packed_side){N_ROWS, N_ROWS, zeros, zeros, asked, offsets, zeros};
    t->rows[FTH_ROWS_TGT] = N_ROWS;
    t->capacity[FTH_ROWS_TGT] = N_ROWS + 2;
    fth_val x = fth_trial_input(t, FTH_ROWS_TGT, vocab, FTH_REAL);
    assert_ok(t->graph.err);
    for (int r = 0; r < N_ROWS; r++)
        for (int v = 0; v < vocab; v++) t->host[x][r * vocab + v] = held(type, rows[r].number(v));
    fth_op *op = fth_graph_op(&t->graph, FTH_KIND_top, TOP_N_IN, TOP_N_OUT);
    assert_non_null(op);
    op->in[TOP_X] = x;
    fth_trial_output(t, op, TOP_Y, x, TOP_BEST + 2 * k, FTH_FULL);
    assert_ok(t->graph.err);
}

/* want [N_ROWS]: of the trial's numbers, made by the first k of a vocabulary, good for all. */
static void check_trial(const char *name, fth_device *dev, fth_tail tail, fth_trial *t, int vocab,
                        int k, ranking *want) {
    const int width = TOP_BEST + 2 * k;
    const fth_val x = t->graph.op[0].in[TOP_X], y = t->graph.op[0].out[TOP_Y];
    const int32_t *asked = t->batch.side[FTH_TGT].targets;
    double *result[FTH_TRIAL_VALUES] = {0};
    fth_arena arena;
    fth_arena_init(&arena);
    assert_ok(fth_harness_run(dev, t, 0, 1, tail, &arena, result));
    for (int r = 0; r < N_ROWS; r++) {
        const double *in = t->host[x] + r * vocab, *out = result[y] + r * width;
        if (!want[r].all) want[r] = rank(in, vocab);
        check_row(name, rows[r].name, &want[r], vocab, out, k, rows[r].no_sum);
        const double wanted = asked[r] < 0 ? 0 : in[asked[r]];
        if (out[TOP_ASKED] != wanted && !(isnan(wanted) && isnan(out[TOP_ASKED])))
            fail_msg("%s, %s of %d: the word asked for has %.9g, not %.9g", name, rows[r].name,
                     vocab, out[TOP_ASKED], wanted);
    }
    fth_arena_fini(&arena);
}

static void check_device(const char *name, fth_device *dev, fth_tail tail) {
    static const int vocabs[] = {1, 5, 33, 1000, 32769, 50304}, ks[] = {1, 2, 9, FTH_TOP_MOST};
    fth_op_case c = {.name = "top"};
    fth_trial *t = test_malloc(sizeof *t);
    for (size_t i = 0; i < sizeof vocabs / sizeof *vocabs; i++) {
        ranking want[N_ROWS] = {{0}};
        for (size_t j = 0; j < sizeof ks / sizeof *ks; j++) {
            make_trial(t, &c, dev->real, vocabs[i], ks[j]);
            check_trial(name, dev, tail, t, vocabs[i], ks[j], want);
            fth_trial_fini(t);
        }
        for (int r = 0; r < N_ROWS; r++) test_free(want[r].all);
    }
    test_free(t);
    dev->backend->close(dev);
}

static void on_ref(void **state) {
    (void)state;
    fth_device *dev = NULL;
    assert_ok(fth_backend_ref()->open(fth_backend_ref(), FTH_PRECISION_FP32, 1, &dev));
    check_device("ref", dev, FTH_TAIL_KEPT);
}

static void on_cpu(void **state) {
    (void)state;
    static const char *const isas[] = {"plain", "avx2", "avx512"};
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        for (int threads = 1; threads <= 3; threads++) {
            const fth_precision precision = threads == 2 ? FTH_PRECISION_BF16 : FTH_PRECISION_FP32;
            fth_device *dev = NULL;
            if (fth_cpu_open_isa(isas[i], precision, threads, &dev) != FTH_OK) continue;
            check_device(isas[i], dev, FTH_TAIL_KEPT);
        }
}

static void on_cuda(void **state) {
    (void)state;
    if (!gpu_is_there()) skip();
    for (int bf16 = 0; bf16 < 2; bf16++) {
        const fth_backend *cuda = fth_backend_cuda();
        fth_device *dev = NULL;
        assert_ok(cuda->open(cuda, bf16 ? FTH_PRECISION_BF16 : FTH_PRECISION_FP32, 1, &dev));
        check_device(bf16 ? "cuda bf16" : "cuda", dev, FTH_TAIL_FREE);
    }
}

static void quantizing_is_refused(void **state) {
    (void)state;
    fth_device *dev;
    assert_ok(fth_device_open("ref", "fp32", 1, &dev));
    assert_ok(fth_device_quantize(dev, "none"));
    assert_int_equal(fth_device_quantize(dev, "int4"), FTH_USAGE);
    assert_non_null(strstr(fth_error_message(), "--quantize int4: must be none or int8"));
    assert_int_equal(fth_device_quantize(dev, "int8"), FTH_USAGE);
    assert_non_null(strstr(fth_error_message(), "device ref cannot"));
    fth_device_close(dev);
}

/* ---- one row on the host ---- */

/* Sums of numbers far from 0, and of more than are summed up in floats. */
static void sums_of_exponentials(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int n;
        float offset, scale;
    } cases[] = {{"one", 1, 3, 0},          {"fifteen", 15, 0, 1},     {"large", 40, 300, 5},
                 {"small", 1000, -2000, 9}, {"many", 70001, 0, 1e-3f}, {"wide", 5000, 0, 40},
                 {"all the same", 33, 7, 0}};
    fth_rng r;
    fth_rng_init(&r, 3, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float *x = test_malloc(sizeof *x * (size_t)cases[i].n);
        double most = -INFINITY, sum = 0;
        for (int k = 0; k < cases[i].n; k++) {
            x[k] = cases[i].offset + cases[i].scale * (float)fth_rng_normal(&r);
            most = fmax(most, x[k]);
        }
        for (int k = 0; k < cases[i].n; k++) sum += exp(x[k] - most);
        const double wanted = most + log(sum), got = fth_row_lse(x, cases[i].n);
        if (!is_close(got, wanted, 3e-7 * fabs(wanted) + 1e-6))
            fail_msg("%s: %.9g, not %.9g", cases[i].name, got, wanted);
        test_free(x);
    }
}

/* Against doubles, over values far apart, with and without a rest behind the vectors. */
static void means_of_probabilities(void **state) {
    (void)state;
    enum { N = 131, MOST = 5 };
    static float x[MOST][N], mean[N];
    const float *row[MOST];
    for (int k = 0; k < MOST; k++) {
        row[k] = x[k];
        for (int i = 0; i < N; i++) {
            uint32_t counter[4] = {(uint32_t)k, (uint32_t)i, 0, 0}, drawn[4];
            fth_philox(7, counter, drawn);
            const float far = i % 3 == 0 ? 120.0f : 4.0f;
            x[k][i] = -far * (float)drawn[0] / 4294967296.0f;
        }
    }
    for (int count = 1; count <= MOST; count++) {
        fth_row_mix(row, count, N, mean);
        for (int i = 0; i < N; i++) {
            double sum = 0;
            for (int k = 0; k < count; k++) sum += exp((double)x[k][i]);
            const double wanted = log(sum / count);
            assert_true(fabs((double)mean[i] - wanted) <= 1e-6 * (1 + fabs(wanted)));
        }
        for (int i = 0; i < N; i++) { /* alone it has the same bits */
            const float *one[MOST];
            float alone;
            for (int k = 0; k < count; k++) one[k] = x[k] + i;
            fth_row_mix(one, count, 1, &alone);
            assert_true(alone == mean[i]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_ref),
        cmocka_unit_test(on_cpu),
        cmocka_unit_test(on_cuda),
        cmocka_unit_test(quantizing_is_refused),
        cmocka_unit_test(sums_of_exponentials),
        cmocka_unit_test(means_of_probabilities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
