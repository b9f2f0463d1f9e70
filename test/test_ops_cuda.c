/* links: harness device ref */
/* Device cuda against ref: every kind and case in both precisions, zeros in the tails of gradients,
 * and the work on flat arenas. Exit status 77 (skipped) where there is no GPU. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/backend.h"
#include "close.h"
#include "gpu.h"
#include "op_harness.h"

/* Only cases whose name has this in it: a checker of memory makes everything slow. */
static const char *only = "";

static void assert_ok(fth_err err) {
    if (err != FTH_OK) fail_msg("%s", fth_error_message());
}

static fth_device *open_gpu(fth_precision precision) {
    fth_device *dev = NULL;
    assert_ok(fth_backend_cuda()->open(fth_backend_cuda(), precision, 1, &dev));
    return dev;
}

static fth_device *open_ref(void) {
    fth_device *ref = NULL;
    assert_ok(fth_backend_ref()->open(fth_backend_ref(), FTH_PRECISION_FP32, 1, &ref));
    return ref;
}

/* ---- operations ---- */

static double tolerance_of(fth_precision precision) {
    return precision == FTH_PRECISION_FP32 ? 1e-5 : 2e-2;
}

static void kernels_agree_with_ref(fth_precision precision) {
    fth_device *dev = open_gpu(precision);
    fth_device *ref = open_ref();
    int wrong = 0;
    fth_op_case c;
    for (size_t i = 0; fth_op_case_at(i, &c); i++) {
        if (!strstr(c.name, only)) continue;
        const double tolerance = tolerance_of(precision);
        if (fth_harness_compare(ref, dev, &c, tolerance, FTH_TAIL_FREE) == FTH_OK) continue;
        print_error("%s\n", fth_error_message());
        wrong++;
    }
    ref->backend->close(ref);
    dev->backend->close(dev);
    assert_int_equal(wrong, 0);
}

static void fp32_agrees_with_ref(void **state) {
    (void)state;
    kernels_agree_with_ref(FTH_PRECISION_FP32);
}

static void bf16_agrees_with_ref(void **state) {
    (void)state;
    kernels_agree_with_ref(FTH_PRECISION_BF16);
}

/* Joins choose their kernel by the width of a row, and a warp of the backward fetches its next row
 * ahead where there are more rows than warps: a large shape, which takes ref long, for one case. */
static void joins_of_all_widths_agree_with_ref(void **state) {
    (void)state;
    static const fth_shape shapes[] = {
        {"width 512, 2,200 rows", 3, {1200, 1, 999}, {999, 1200, 1}, 512, 2, 8, 9, true},
        {"width 509", 2, {9, 17}, {18, 5}, 509, 2, 8, 9, false},
        {"width 512", 2, {9, 17}, {18, 5}, 512, 2, 8, 9, false},
        {"width 768", 2, {9, 17}, {18, 5}, 768, 2, 8, 9, false},
        {"width 1000", 2, {9, 17}, {18, 5}, 1000, 2, 8, 9, false},
        {"width 1026", 2, {9, 17}, {18, 5}, 1026, 2, 8, 9, false},
        {"width 4096", 2, {9, 17}, {18, 5}, 4096, 2, 8, 9, false},
    };
    for (fth_precision precision = FTH_PRECISION_FP32; precision <= FTH_PRECISION_BF16;
         precision++) {
        fth_device *dev = open_gpu(precision);
        fth_device *ref = open_ref();
        int wrong = 0;
        fth_op_case c;
        for (size_t i = 0; fth_op_case_at(i, &c); i++) {
            if (strncmp(c.name, "join", 4) != 0 || strncmp(c.name, "joined", 6) == 0 ||
                c.shape->n_sent != 0 || !strstr(c.name, only))
                continue; /* each kind of join once */
            for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
                if (shapes[k].large && strcmp(c.name, "join_norm dropout, bits") != 0) continue;
                c.shape = &shapes[k];
                const double tolerance = tolerance_of(precision);
                if (fth_harness_compare(ref, dev, &c, tolerance, FTH_TAIL_FREE) == FTH_OK) continue;
                print_error("%s: %s\n", shapes[k].name, fth_error_message());
                wrong++;
            }
        }
        ref->backend->close(ref);
        dev->backend->close(dev);
        assert_int_equal(wrong, 0);
    }
}

/* How far the numbers of a device are from the host's, against their size. The host ran once, the
 * device twice: what is added to gradients of parameters is there two times. */
static double distance(const fth_trial *t, const fth_trial *before, fth_val v, const double *got) {
    const bool adds = t->graph.value[v].storage == FTH_IN_GRAD;
    const fth_value *value = &t->graph.value[v];
    const int64_t rows = value->extent == FTH_ROWS_FIXED ? value->rows : t->rows[value->extent];
    double far = 0, size = 1e-6;
    for (int64_t i = 0; i < rows * value->width; i++) {
        const double once = t->host[v][i], start = before->host[v][i];
        const double expected = adds ? start + 2 * (once - start) : once;
        far += (got[i] - expected) * (got[i] - expected);
        size += expected * expected;
    }
    return sqrt(far / size);
}

/* Whether operation i is a product that the device has left to a join: nobody has written its
 * output. */
static bool is_left_out(const fth_trial *t, int32_t i, double *const *result) {
    const fth_op *op = &t->graph.op[i];
    const bool product = op->kind == FTH_KIND_linear || op->kind == FTH_KIND_linear_dx;
    return product && isnan(result[op->out[0]][0]);
}

static int compare_together(fth_device *host, fth_device *dev, const fth_op_case *c) {
    fth_trial *t = test_malloc(sizeof *t), *before = test_malloc(sizeof *t);
    assert_ok(fth_trial_init(t, c));
    assert_ok(fth_trial_init(before, c));
    fth_trial_round(t, dev);
    fth_trial_round(before, dev);
    assert_ok(fth_harness_run_all(host, t));
    fth_arena arena;
    fth_arena_init(&arena);
    double *result[FTH_TRIAL_VALUES] = {0};
    assert_ok(fth_harness_run_together(dev, before, 2, &arena, result));
    int wrong = 0, left_out = 0;
    for (int32_t i = 0; i < t->graph.n_ops; i++) {
        const fth_op *op = &t->graph.op[i];
        if (is_left_out(t, i, result)) {
            left_out++;
            continue;
        }
        for (int k = 0; k < op->n_out; k++) {
            const fth_val base = t->graph.value[op->out[k]].base, v = base ? base : op->out[k];
            if (!v || t->graph.value[v].class == FTH_BITS) continue; /* the host keeps none */
            const double far = distance(t, before, v, result[v]);
            /* rounding opens or shuts single ReLUs */
            if (far <= (strstr(c->name, "slope") ? 5e-2 : 2e-2)) continue;
            print_error("%s, %s: output %d of %s is %.3g off\n", c->name, c->shape->name, k,
                        fth_kind_name(op->kind), far);
            wrong++;
        }
    }
    print_message("%s, %s: %d products made by joins\n", c->name, c->shape->name, left_out);
    fth_arena_fini(&arena);
    fth_trial_fini(t);
    fth_trial_fini(before);
    test_free(t);
    test_free(before);
    return wrong;
}

/* Programs whose names begin so, in each shape. ref would take minutes for them: device cpu is what
 * is right. */
static void compare_programs(const char *name, const fth_shape *shapes, size_t n) {
    fth_device *dev = open_gpu(FTH_PRECISION_BF16), *host = NULL;
    assert_ok(fth_backend_cpu()->open(fth_backend_cpu(), FTH_PRECISION_FP32, 2, &host));
    int wrong = 0;
    fth_op_case c;
    for (size_t i = 0; fth_op_case_at(i, &c); i++) {
        if (strncmp(c.name, name, strlen(name)) != 0 || c.shape->n_sent != 0 ||
            !strstr(c.name, only))
            continue;
        for (size_t k = 0; k < n; k++) {
            c.shape = &shapes[k];
            wrong += compare_together(host, dev, &c);
        }
    }
    host->backend->close(host);
    dev->backend->close(dev);
    assert_int_equal(wrong, 0);
}

/* Two products and a join, with so many rows that a GPU of sm_90a joins them: rows that fill no
 * block of 128 among them. */
static void joined_products_agree_with_the_host(void **state) {
    (void)state;
    static const fth_shape shapes[] = {
        {"width 512, 4,301 rows", 2, {4300, 1}, {4000, 333}, 512, 2, 320, 9, true},
        {"width 256, 4,608 rows", 2, {4000, 608}, {4000, 608}, 256, 2, 256, 9, true},
        {"width 1024, 4,301 rows", 2, {4300, 1}, {4000, 333}, 1024, 2, 256, 9, true},
        {"width 256, inner 1024", 2, {4300, 1}, {4000, 333}, 256, 2, 1024, 9, true},
    };
    compare_programs("joined", shapes, sizeof shapes / sizeof *shapes);
}

/* Heads of 64 columns and so many rows that attention's backward sums up the gradient of a bias:
 * over tiles of one sentence and of several, and over more tiles than blocks. */
static void attention_sums_for_biases(void **state) {
    (void)state;
    static const fth_shape shapes[] = {
        {"a tile of three sentences", 4, {6144, 20, 33, 7}, {6144, 11, 31, 5}, 128, 2, 9, 9, true},
        {"long sentences", 4, {3000, 2100, 1089, 3}, {2000, 2300, 1, 2064}, 64, 1, 9, 9, true},
        {"more tiles than blocks", 3, {3000, 3100, 67}, {4000, 2500, 1}, 1024, 16, 9, 9, true},
    };
    compare_programs("attention of a product", shapes, sizeof shapes / sizeof *shapes);
}

/* Products go over the whole capacity: an activation's tail must be finite, a gradient's 0. */
static const char *wrong_tail(const fth_trial *t, const fth_op *op, double *const *result) {
    for (int k = 0; k < op->n_out; k++) {
        const fth_val v = op->out[k];
        const fth_value *value = &t->graph.value[v];
        if (!v || value->base || value->storage != FTH_IN_ARENA || value->class != FTH_REAL)
            continue;
        const int64_t width = value->width, from = t->rows[value->extent] * width;
        for (int64_t i = from; i < t->capacity[value->extent] * width; i++) {
            if (!isfinite(result[v][i])) return "is not finite";
            const bool gradient = op->backward || op->kind == FTH_KIND_xent;
            if (gradient && result[v][i] != 0) return "of a gradient is not 0";
        }
    }
    return NULL;
}

static void tails_do_no_harm(void **state) {
    (void)state;
    fth_device *dev = open_gpu(FTH_PRECISION_BF16);
    int wrong = 0;
    fth_op_case c;
    fth_trial *t = test_malloc(sizeof *t);
    for (size_t i = 0; fth_op_case_at(i, &c); i++) {
        if (!strstr(c.name, only)) continue;
        assert_ok(fth_trial_init(t, &c));
        for (int32_t k = 0; k < t->graph.n_ops; k++) {
            fth_arena arena;
            fth_arena_init(&arena);
            double *result[FTH_TRIAL_VALUES] = {0};
            assert_ok(fth_harness_run(dev, t, k, 1, FTH_TAIL_FREE, &arena, result));
            const char *what = wrong_tail(t, &t->graph.op[k], result);
            if (what) {
                print_error("%s: the tail of %s %s\n", c.name, fth_kind_name(t->graph.op[k].kind),
                            what);
                wrong++;
            }
            fth_arena_fini(&arena);
        }
        fth_trial_fini(t);
    }
    test_free(t);
    dev->backend->close(dev);
    assert_int_equal(wrong, 0);
}

/* ---- flat arenas ---- */

enum { N = 100003 }; /* elements: nothing divides it */

static void *copy_to(fth_device *dev, const void *from, int64_t bytes) {
    void *data = NULL;
    assert_ok(dev->backend->alloc(dev, bytes, &data));
    if (from) assert_ok(dev->backend->upload(dev, data, from, bytes));
    return data;
}

/* N numbers by a seed, as floats on the GPU and as doubles on ref. */
static void fill(fth_device *dev, fth_device *ref, uint64_t stream, bool positive, void **on_gpu,
                 void **on_ref) {
    double *wide = test_malloc(sizeof *wide * N);
    float *narrow = test_malloc(sizeof *narrow * N);
    fth_rng r;
    fth_rng_init(&r, 5, stream);
    for (int i = 0; i < N; i++) {
        const double x = i == 7 ? 0 : fth_rng_normal(&r);
        narrow[i] = (float)(positive ? x * x * 1e-4 : x);
        wide[i] = (double)narrow[i];
    }
    *on_gpu = copy_to(dev, narrow, N * 4);
    *on_ref = copy_to(ref, wide, N * 8);
    test_free(wide);
    test_free(narrow);
}

static void assert_near(fth_device *dev, const void *got, const double *expected,
                        double tolerance) {
    float *x = test_malloc(sizeof *x * N);
    assert_ok(dev->backend->download(dev, x, got, N * 4));
    for (int i = 0; i < N; i++)
        if (!is_close((double)x[i], expected[i], tolerance * (fabs(expected[i]) + 0.1)))
            fail_msg("element %d is %.9g, not %.9g", i, (double)x[i], expected[i]);
    test_free(x);
}

/* bf16 copies of the parameters, also where no range is. */
static void assert_weights(fth_device *dev, const void *weights, const double *expected) {
    uint16_t *w = test_malloc(sizeof *w * N);
    assert_ok(dev->backend->download(dev, w, weights, N * 2));
    for (int i = 0; i < N; i++) {
        const uint32_t bits = (uint32_t)w[i] << 16;
        float x;
        memcpy(&x, &bits, sizeof x);
        if (!is_close((double)x, expected[i], fabs(expected[i]) / 200 + 1e-6))
            fail_msg("weight %d is %.9g, not %.9g", i, (double)x, expected[i]);
    }
    test_free(w);
}

/* What telemetry sums up over ranges after an update. */
static void assert_range_sums(fth_device *dev, fth_device *ref, const fth_arenas *a,
                              const fth_arenas *b, const fth_adam *args) {
    double sums[3 * FTH_RANGE_SUMS], expected[3 * FTH_RANGE_SUMS];
    assert_int_equal(args->n_ranges, 3);
    assert_ok(dev->backend->range_sums(dev, a, args, sums));
    assert_ok(ref->backend->range_sums(ref, b, args, expected));
    for (int i = 0; i < 3 * FTH_RANGE_SUMS; i++)
        if (!is_close(sums[i], expected[i], 1e-5 * expected[i]))
            fail_msg("sum %d over ranges is %.9g, not %.9g", i, sums[i], expected[i]);
}

static void adam_agrees_with_ref(void **state) {
    (void)state;
    const fth_adam_range ranges[] = {{0, 16, 0, 1}, {16, 5001, 16, 0.25f}, {9000, N, 5008, 1}};
    const fth_adam args = {.update = 3,
                           .lr = 1e-3,
                           .beta1 = 0.9,
                           .beta2 = 0.98,
                           .eps = 1e-8,
                           .weight_decay = 0.01,
                           .grad_scale = 0.5,
                           .range = ranges,
                           .n_ranges = 3};
    for (int bf16 = 0; bf16 < 2; bf16++) {
        fth_device *dev = open_gpu(bf16 ? FTH_PRECISION_BF16 : FTH_PRECISION_FP32);
        fth_device *ref = open_ref();
        fth_arenas a = {.n = N, .grads = N}, b = {.n = N, .grads = N};
        fill(dev, ref, 1, false, &a.master, &b.master);
        fill(dev, ref, 2, false, &a.m, &b.m);
        fill(dev, ref, 3, true, &a.v, &b.v);
        fill(dev, ref, 4, false, &a.grad, &b.grad);
        a.weights = bf16 ? copy_to(dev, NULL, N * 2) : a.master;
        b.weights = b.master;
        assert_ok(dev->backend->refresh_weights(dev, &a));
        assert_ok(dev->backend->adam(dev, &a, &args));
        assert_ok(ref->backend->adam(ref, &b, &args));
        assert_near(dev, a.master, b.master, 1e-6);
        assert_near(dev, a.m, b.m, 1e-6);
        assert_near(dev, a.v, b.v, 1e-6);
        if (bf16) assert_weights(dev, a.weights, b.master);
        assert_range_sums(dev, ref, &a, &b, &args);
        void *const places[] = {a.master, a.m, a.v, a.grad, bf16 ? a.weights : NULL};
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            if (places[i]) dev->backend->release(dev, places[i]);
        void *const others[] = {b.master, b.m, b.v, b.grad};
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            ref->backend->release(ref, others[i]);
        ref->backend->close(ref);
        dev->backend->close(dev);
    }
}

static void sums_of_squares(void **state) {
    (void)state;
    fth_device *dev = open_gpu(FTH_PRECISION_FP32);
    fth_device *ref = open_ref();
    void *x, *wide;
    fill(dev, ref, 9, false, &x, &wide);
    static const int64_t sizes[] = {0, 1, 1023, 1025, 4096, N};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double sum = -1, again = -1, expected = 0;
        assert_ok(dev->backend->sum_squares(dev, x, sizes[i], &sum));
        assert_ok(dev->backend->sum_squares(dev, x, sizes[i], &again));
        assert_ok(ref->backend->sum_squares(ref, wide, sizes[i], &expected));
        if (!is_close(sum, expected, 1e-12 * expected) || sum != again)
            fail_msg("sum of %lld squares is %.17g, then %.17g, not %.17g", (long long)sizes[i],
                     sum, again, expected);
    }
    dev->backend->release(dev, x);
    ref->backend->release(ref, wide);
    ref->backend->close(ref);
    dev->backend->close(dev);
}

/* Sums in a fixed order have the bits of the processor's, and pieces of squares are sums of their
 * own. */
static void sums_in_order(void **state) {
    (void)state;
    enum { ADDENDS = 5, STRIDE = 1024, MOST = 1003, PIECE = 64 };
    fth_device *dev = open_gpu(FTH_PRECISION_FP32);
    static float x[ADDENDS * STRIDE], got[MOST];
    fth_rng r;
    fth_rng_init(&r, 3, 8);
    for (int i = 0; i < ADDENDS * STRIDE; i++)
        x[i] = ldexpf((float)fth_rng_normal(&r), (int)fth_rng_below(&r, 40) - 20);
    void *data = copy_to(dev, x, sizeof x), *sum = copy_to(dev, NULL, sizeof got);
    static const int64_t sizes[] = {1, 3, 64, MOST};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t n = sizes[i];
        const char *rest = (const char *)data + 2 * STRIDE * sizeof *x;
        assert_ok(dev->backend->add_up(dev, sum, &(fth_addends){data, STRIDE, 2, true}, n));
        assert_ok(
            dev->backend->add_up(dev, sum, &(fth_addends){rest, STRIDE, ADDENDS - 2, false}, n));
        assert_ok(dev->backend->download(dev, got, sum, n * (int64_t)sizeof *got));
        for (int64_t k = 0; k < n; k++) {
            float expected = x[k];
            for (int a = 1; a < ADDENDS; a++) expected += x[a * STRIDE + k];
            if (got[k] != expected) fail_msg("element %lld of %lld", (long long)k, (long long)n);
        }
        double all[MOST / PIECE + 1], part[MOST / PIECE + 1];
        const int64_t pieces = (n + PIECE - 1) / PIECE;
        assert_ok(dev->backend->square_sums(dev, data, n, PIECE, all));
        for (int64_t k = 0; k < pieces; k++) {
            const int64_t length = k + 1 < pieces ? PIECE : n - k * PIECE;
            double expected = 0;
            for (int64_t e = 0; e < length; e++)
                expected += (double)x[k * PIECE + e] * (double)x[k * PIECE + e];
            assert_ok(dev->backend->square_sums(dev, (const float *)data + k * PIECE, length, PIECE,
                                                &part[k]));
            if (part[k] != all[k] || !is_close(all[k], expected, 1e-12 * expected))
                fail_msg("piece %lld of %lld", (long long)k, (long long)n);
        }
    }
    dev->backend->release(dev, data);
    dev->backend->release(dev, sum);
    dev->backend->close(dev);
}

static void memory_is_zeroed(void **state) {
    (void)state;
    fth_device *dev = open_gpu(FTH_PRECISION_FP32);
    enum { BYTES = (9 << 20) + 1 };
    unsigned char *host = test_malloc(BYTES);
    for (int round = 0; round < 2; round++) { /* the second finds what the first left behind */
        void *data = copy_to(dev, NULL, BYTES);
        memset(host, 1, BYTES);
        assert_ok(dev->backend->download(dev, host, data, BYTES));
        for (int i = 0; i < BYTES; i++)
            if (host[i]) fail_msg("byte %d is not 0", i);
        memset(host, 1, BYTES);
        assert_ok(dev->backend->upload(dev, data, host, BYTES));
        dev->backend->release(dev, data);
    }
    int64_t free_bytes = 0, total_bytes = 0;
    assert_ok(dev->backend->memory(dev, &free_bytes, &total_bytes));
    assert_true(free_bytes > 0 && free_bytes <= total_bytes);
    void *data = NULL;
    assert_int_equal(dev->backend->alloc(dev, total_bytes * 4, &data), FTH_NO_MEMORY);
    test_free(host);
    dev->backend->close(dev);
}

/* test_ops_cuda [TEST PATTERN [PART OF A CASE'S NAME]] */
int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    if (argc > 2) only = argv[2];
    if (!gpu_is_there()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed),
        cmocka_unit_test(sums_of_squares),
        cmocka_unit_test(sums_in_order),
        cmocka_unit_test(adam_agrees_with_ref),
        cmocka_unit_test(fp32_agrees_with_ref),
        cmocka_unit_test(bf16_agrees_with_ref),
        cmocka_unit_test(tails_do_no_harm),
        cmocka_unit_test(joins_of_all_widths_agree_with_ref),
        cmocka_unit_test(joined_products_agree_with_the_host),
        cmocka_unit_test(attention_sums_for_biases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
