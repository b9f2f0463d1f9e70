/* links: harness cpu ref */
/* Device cpu against ref: every kind and case, every instruction set that this machine has, one to
 * three threads, both precisions; and the work on flat arenas. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "op_harness.h"

static const char *const isas[] = {"plain", "avx2", "avx512"};
enum { N_ISAS = sizeof isas / sizeof *isas };

/* Units that multiply pairs of bf16, and their twins in plain C. */
static const char *const units[] = {"plain-bf16",       "plain-amx",   "avx512-plain-bf16",
                                    "avx512-plain-amx", "avx512-bf16", "amx"};
enum { N_UNITS = sizeof units / sizeof *units };

static void assert_ok(fth_err err) {
    if (err != FTH_OK) fail_msg("%s", fth_error_message());
}

static bool has(const char *isa) {
    fth_cpu_choice choice;
    return fth_cpu_choose(isa, FTH_PREC_BF16, &choice) == FTH_OK;
}

/* A device of a list. */
typedef struct entry {
    const char *isa;
    int threads;
    bool large; /* large shapes too */
} entry;

/* Every case on all devices of a list; prints what is wrong and returns how many. */
static int wrong_cases(const entry *list, int n, fth_precision precision) {
    enum { MOST = 8 };
    fth_device *ref, *dev[MOST];
    assert_true(n <= MOST);
    assert_ok(fth_backend_ref()->open(fth_backend_ref(), FTH_FP32, 1, &ref));
    for (int i = 0; i < n; i++)
        assert_ok(fth_cpu_open_isa(list[i].isa, precision, list[i].threads, &dev[i]));
    int wrong = 0, n_large = 0, at;
    while (n_large < n && list[n_large].large) n_large++; /* they come first */
    fth_op_case c;
    for (size_t i = 0; fth_op_case_at(i, &c); i++) {
        /* with one key the gradients of scores are 0, and what is left of them is rounding */
        const double fp32 = c.shape->src[0] == 1 ? 1e-3 : 1e-5;
        const double tolerance = precision == FTH_PREC_BF16 ? 2e-2 : fp32;
        const int m = c.shape->large ? n_large : n;
        if (!m || fth_harness_compare_all(ref, dev, m, &c, tolerance, FTH_TAIL_KEPT, &at) == FTH_OK)
            continue;
        print_error("%s, %d threads: %s\n", list[at].isa, list[at].threads, fth_error_message());
        wrong++;
    }
    for (int i = 0; i < n; i++) dev[i]->backend->close(dev[i]);
    ref->backend->close(ref);
    return wrong;
}

/* Two threads and all shapes on every instruction set, one and three on the last that is there. */
static void kernels_agree_with_ref(fth_precision precision) {
    entry list[N_ISAS + 2];
    int n = 0;
    for (int i = 0; i < N_ISAS; i++)
        if (has(isas[i])) list[n++] = (entry){isas[i], 2, true};
    const char *last = list[n - 1].isa;
    list[n++] = (entry){last, 1, false};
    list[n++] = (entry){last, 3, false};
    assert_int_equal(wrong_cases(list, n, precision), 0);
}

static void fp32_agrees_with_ref(void **state) {
    (void)state;
    kernels_agree_with_ref(FTH_FP32);
}

static void bf16_agrees_with_ref(void **state) {
    (void)state;
    kernels_agree_with_ref(FTH_PREC_BF16);
}

static void units_of_bf16_agree_with_ref(void **state) {
    (void)state;
    entry list[N_UNITS];
    int n = 0;
    for (int i = 0; i < N_UNITS; i++)
        if (has(units[i])) list[n++] = (entry){units[i], 2, false};
    assert_int_equal(wrong_cases(list, n, FTH_PREC_BF16), 0);
}

/* ---- products larger than the blocks that they are cut into ---- */

typedef struct product_case {
    const char *name;
    int64_t rows, k, n;
    fth_act act;
} product_case;

static const product_case products[] = {
    {"one number", 1, 1, 1, FTH_ACT_NONE},
    {"one row", 1, 513, 70, FTH_ACT_RELU},
    {"blocks of k", 37, 1030, 192, FTH_ACT_RELU},
    {"blocks of k, odd columns", 401, 1025, 67, FTH_ACT_GELU},
    {"many columns", 9, 64, 1100, FTH_ACT_NONE},
    {"columns for threads", 33, 300, 1536, FTH_ACT_RELU},
    {"many rows", 1000, 48, 128, FTH_ACT_NONE},
    {"wide gradient", 530, 260, 900, FTH_ACT_GELU},
    {"deep blocks of pairs", 50, 2100, 70, FTH_ACT_NONE},
    {"rows in blocks of pairs", 2100, 34, 66, FTH_ACT_RELU},
    {"whole tiles", 160, 64, 96, FTH_ACT_RELU},
    {"sets of strips", 70, 513, 1100, FTH_ACT_RELU},
    {"deep sets of strips, rows in groups", 530, 2100, 150, FTH_ACT_NONE},
    {"gradient in blocks of all three", 363, 1088, 401, FTH_ACT_NONE},
};

enum {
    P_X = 1,
    P_W,
    P_B,
    P_Y,
    P_PRE,
    P_DY,
    P_DX,
    P_ADDEND,
    P_SAVED,
    P_DW,
    P_DB,
    P_DW0,
    P_DB0,
    N_PRODUCT_VALUES
}; /* DW0, DB0: what DW and DB were before */

/* Values of one product on a device, with what they were filled with. */
typedef struct product {
    const product_case *c;
    fth_device *dev;
    fth_tensor tensor[N_PRODUCT_VALUES];
    fth_graph graph;
    fth_exec ex;
} product;

static float get(const fth_tensor *t, int64_t row, int64_t column) {
    if (t->dtype == FTH_F32) return ((float *)t->data)[row * t->ld + column];
    const uint32_t bits = (uint32_t)((uint16_t *)t->data)[row * t->ld + column] << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void make(product *p, int v, int64_t rows, int64_t width, fth_extent extent, bool full) {
    fth_tensor *t = &p->tensor[v];
    *t = (fth_tensor){.ld = width + 3, .rows = rows, .width = (int32_t)width, .extent = extent};
    t->dtype = full ? FTH_F32 : p->dev->real;
    const fth_value value = {.storage = v == P_DW || v == P_DB ? FTH_IN_GRAD : FTH_IN_ARENA,
                             .width = (int32_t)width,
                             .extent = extent,
                             .rows = rows};
    assert_int_equal(fth_graph_value(&p->graph, value), v);
    const int64_t n = rows * t->ld;
    assert_ok(p->dev->backend->alloc(p->dev, n * (int64_t)fth_dtype_size(t->dtype), &t->data));
    fth_rng r;
    fth_rng_init(&r, 11, (uint64_t)(v >= P_DW0 ? v - P_DW0 + P_DW : v));
    for (int64_t i = 0; i < n; i++) {
        const float x = (float)fth_rng_normal(&r);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        if (t->dtype == FTH_F32)
            ((float *)t->data)[i] = x;
        else
            ((uint16_t *)t->data)[i] = (uint16_t)(bits >> 16);
    }
}

static void run_product(product *p, fth_kind kind, const int *in, int n_in, const int *out,
                        int n_out) {
    fth_op *op = fth_graph_op(&p->graph, kind, n_in, n_out);
    assert_non_null(op);
    for (int i = 0; i < n_in; i++) op->in[i] = in[i];
    for (int i = 0; i < n_out; i++) op->out[i] = out[i];
    op->u.linear.act = p->c->act;
    const int64_t capacity[FTH_N_EXTENTS] = {p->c->rows};
    const fth_backend *b = p->dev->backend;
    assert_ok(b->alloc(p->dev, b->scratch[kind](p->dev, &p->graph, op, capacity), &p->ex.scratch));
    assert_ok(b->kernel[kind](&p->ex, op));
    b->release(p->dev, p->ex.scratch);
}

static double act_of(fth_act act, double x) {
    if (act == FTH_ACT_RELU) return x > 0 ? x : 0;
    return act == FTH_ACT_GELU ? x * 0.5 * erfc(-x * 0.70710678118654752) : x;
}

static double slope_of(fth_act act, double x) {
    if (act == FTH_ACT_RELU) return x > 0;
    if (act == FTH_ACT_NONE) return 1;
    return 0.5 * erfc(-x * 0.70710678118654752) + x * exp(-0.5 * x * x) * 0.39894228040143268;
}

/* Sum over l of the product of two tensors' elements; by[0], by[1]: whether l is their row. */
static double sum_product(const product *p, int a, int64_t i, bool a_row, int b, int64_t j,
                          bool b_row, int64_t n) {
    double sum = 0;
    for (int64_t l = 0; l < n; l++)
        sum += (double)(a_row ? get(&p->tensor[a], l, i) : get(&p->tensor[a], i, l)) *
               (double)(b_row ? get(&p->tensor[b], l, j) : get(&p->tensor[b], j, l));
    return sum;
}

static void assert_number(const product *p, const char *what, double got, double expected,
                          int64_t n) {
    const double rounding = p->dev->real == FTH_BF16 ? fabs(expected) / 128 : 0;
    if (!(fabs(got - expected) <= rounding + 1e-6 * (fabs(expected) + 2 * sqrt((double)n))))
        fail_msg("%s, %s: %.9g, not %.9g", p->c->name, what, got, expected);
}

/* Some elements of every result, chosen at random, and always the last one. */
static void check_product(const product *p) {
    const product_case *c = p->c;
    fth_rng r;
    fth_rng_init(&r, 3, 3);
    for (int i = 0; i < 40; i++) {
        const int64_t row = i ? (int64_t)fth_rng_below(&r, (uint64_t)c->rows) : c->rows - 1;
        const int64_t j = i ? (int64_t)fth_rng_below(&r, (uint64_t)c->n) : c->n - 1;
        const int64_t l = i ? (int64_t)fth_rng_below(&r, (uint64_t)c->k) : c->k - 1;
        const double y = sum_product(p, P_X, row, false, P_W, j, false, c->k) +
                         (double)get(&p->tensor[P_B], 0, j);
        assert_number(p, "pre", (double)get(&p->tensor[P_PRE], row, j), y, c->k);
        assert_number(p, "y", (double)get(&p->tensor[P_Y], row, j), act_of(c->act, y), c->k);
        const double saved = (double)get(&p->tensor[P_SAVED], row, l);
        const double dx = (sum_product(p, P_DY, row, false, P_W, l, true, c->n) +
                           (double)get(&p->tensor[P_ADDEND], row, l)) *
                          slope_of(c->act, saved);
        assert_number(p, "dx", (double)get(&p->tensor[P_DX], row, l), dx, c->n);
        const double dw = (double)get(&p->tensor[P_DW0], j, l) +
                          sum_product(p, P_DY, j, true, P_X, l, true, c->rows);
        assert_number(p, "dw", (double)get(&p->tensor[P_DW], j, l), dw, c->rows);
        double db = (double)get(&p->tensor[P_DB0], 0, j);
        for (int64_t k = 0; k < c->rows; k++) db += (double)get(&p->tensor[P_DY], k, j);
        assert_number(p, "db", (double)get(&p->tensor[P_DB], 0, j), db, c->rows);
    }
}

static void open_product(product *p, const product_case *c, const char *isa,
                         fth_precision precision, int threads) {
    *p = (product){.c = c};
    assert_ok(fth_cpu_open_isa(isa, precision, threads, &p->dev));
    fth_graph_init(&p->graph);
    p->ex = (fth_exec){.device = p->dev, .graph = &p->graph, .tensor = p->tensor};
    p->ex.rows[FTH_ROWS_SRC] = p->ex.capacity[FTH_ROWS_SRC] = c->rows;
    const fth_extent batch = FTH_ROWS_SRC, fixed = FTH_ROWS_FIXED;
    make(p, P_X, c->rows, c->k, batch, false), make(p, P_W, c->n, c->k, fixed, false);
    make(p, P_B, 1, c->n, fixed, true), make(p, P_Y, c->rows, c->n, batch, false);
    make(p, P_PRE, c->rows, c->n, batch, false), make(p, P_DY, c->rows, c->n, batch, false);
    make(p, P_DX, c->rows, c->k, batch, false), make(p, P_ADDEND, c->rows, c->k, batch, false);
    make(p, P_SAVED, c->rows, c->k, batch, false), make(p, P_DW, c->n, c->k, fixed, true);
    make(p, P_DB, 1, c->n, fixed, true);
    make(p, P_DW0, c->n, c->k, fixed, true), make(p, P_DB0, 1, c->n, fixed, true);
}

static void close_product(product *p) {
    for (int v = 1; v < N_PRODUCT_VALUES; v++) p->dev->backend->release(p->dev, p->tensor[v].data);
    fth_graph_fini(&p->graph);
    p->dev->backend->close(p->dev);
}

static void try_product(const product_case *c, const char *isa, fth_precision precision,
                        int threads) {
    product p;
    open_product(&p, c, isa, precision, threads);
    run_product(&p, FTH_KIND_linear, (int[]){P_X, P_W, P_B}, 3, (int[]){P_Y, P_PRE}, 2);
    const int saved = c->act == FTH_ACT_NONE ? 0 : P_SAVED;
    run_product(&p, FTH_KIND_linear_dx, (int[]){P_DY, P_W, P_ADDEND, saved}, 4, (int[]){P_DX}, 1);
    run_product(&p, FTH_KIND_linear_dw, (int[]){P_DY, P_X}, 2, (int[]){P_DW, P_DB}, 2);
    check_product(&p);
    /* once more without the value before the activation: tiles may then go straight to y */
    run_product(&p, FTH_KIND_linear, (int[]){P_X, P_W, P_B}, 3, (int[]){P_Y, 0}, 2);
    check_product(&p);
    close_product(&p);
}

#if defined(__SANITIZE_ADDRESS__)
enum { FEWEST_THREADS = 2, MOST_THREADS = 3 }; /* of products: instrumented ones are slow */
#else
enum { FEWEST_THREADS = 1, MOST_THREADS = 4 };
#endif

static void products_in_blocks(void **state) {
    (void)state;
    for (size_t c = 0; c < sizeof products / sizeof *products; c++) {
        for (int i = 0; i < N_UNITS; i++)
            for (int threads = FEWEST_THREADS; threads < MOST_THREADS && has(units[i]); threads++)
                try_product(&products[c], units[i], FTH_PREC_BF16, threads);
        for (int i = 0; i < N_ISAS; i++)
            for (int threads = FEWEST_THREADS; threads <= MOST_THREADS && has(isas[i]); threads++) {
                try_product(&products[c], isas[i], FTH_FP32, threads);
                if (threads == 2) try_product(&products[c], isas[i], FTH_PREC_BF16, threads);
            }
    }
}

/* dW and db of maps that threads share without adding up each other's sums. */
static void gradients_do_not_depend_on_threads(void **state) {
    (void)state;
    static const product_case cases[] = {{"blocks of all three", 363, 1088, 401, FTH_ACT_NONE},
                                         {"odd columns", 190, 260, 900, FTH_ACT_NONE}};
    for (int i = 0; i < N_ISAS * 2; i++) {
        product one, p;
        const char *isa = isas[i / 2];
        if (!has(isa)) continue;
        open_product(&one, &cases[i % 2], isa, FTH_FP32, 1);
        run_product(&one, FTH_KIND_linear_dw, (int[]){P_DY, P_X}, 2, (int[]){P_DW, P_DB}, 2);
        for (int threads = 2; threads <= 4; threads++) {
            open_product(&p, &cases[i % 2], isa, FTH_FP32, threads);
            run_product(&p, FTH_KIND_linear_dw, (int[]){P_DY, P_X}, 2, (int[]){P_DW, P_DB}, 2);
            for (int v = P_DW; v <= P_DB; v++)
                assert_memory_equal(p.tensor[v].data, one.tensor[v].data,
                                    (size_t)(p.tensor[v].rows * p.tensor[v].ld) * sizeof(float));
            close_product(&p);
        }
        close_product(&one);
    }
}

/* ---- flat arenas ---- */

enum { N = 100003 }; /* elements: nothing divides it */

static void fill(double *x, uint64_t stream, bool positive) {
    fth_rng r;
    fth_rng_init(&r, 5, stream);
    for (int i = 0; i < N; i++) x[i] = fth_rng_normal(&r);
    for (int i = 0; i < N && positive; i++) x[i] = x[i] * x[i] * 1e-4;
    x[7] = 0;
}

static void to_floats(float *to, const double *from) {
    for (int i = 0; i < N; i++) to[i] = (float)from[i];
}

static void assert_near(const float *got, const double *expected, double tolerance) {
    for (int i = 0; i < N; i++)
        if (!(fabs((double)got[i] - expected[i]) <= tolerance * (fabs(expected[i]) + 0.1)))
            fail_msg("element %d is %.9g, not %.9g", i, (double)got[i], expected[i]);
}

/* Numbers of one update in both types. */
typedef struct flat {
    double p[N], m[N], v[N], grad[N];
    float fp[N], fm[N], fv[N], fgrad[N];
    uint16_t weights[N];
} flat;

static flat *new_flat(void) {
    flat *f = test_malloc(sizeof *f);
    fill(f->p, 1, false), fill(f->m, 2, false), fill(f->v, 3, true), fill(f->grad, 4, false);
    to_floats(f->fp, f->p), to_floats(f->fm, f->m), to_floats(f->fv, f->v);
    to_floats(f->fgrad, f->grad);
    return f;
}

static void adam_agrees_with_ref(void **state) {
    (void)state;
    fth_device *ref, *dev;
    assert_ok(fth_backend_ref()->open(fth_backend_ref(), FTH_FP32, 1, &ref));
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
    for (int i = 0; i < N_ISAS; i++)
        for (int bf16 = 0; bf16 < 2 && has(isas[i]); bf16++) {
            flat *f = new_flat();
            const fth_arenas a = {N, f->p, f->p, f->grad, f->m, f->v, N};
            const fth_arenas b = {N,     f->fp, bf16 ? (void *)f->weights : f->fp, f->fgrad, f->fm,
                                  f->fv, N};
            assert_ok(ref->backend->adam(ref, &a, &args));
            assert_ok(fth_cpu_open_isa(isas[i], bf16 ? FTH_PREC_BF16 : FTH_FP32, 2, &dev));
            assert_ok(dev->backend->refresh_weights(dev, &b));
            assert_ok(dev->backend->adam(dev, &b, &args));
            assert_near(f->fp, f->p, 1e-6);
            assert_near(f->fm, f->m, 1e-6);
            assert_near(f->fv, f->v, 1e-6);
            for (int k = 0; k < N && bf16; k++) { /* also where no range is */
                const uint32_t bits = (uint32_t)f->weights[k] << 16;
                float w;
                memcpy(&w, &bits, sizeof w);
                if (!(fabsf(w - f->fp[k]) <= fabsf(f->fp[k]) / 256))
                    fail_msg("weight %d is %.9g, not %.9g", k, (double)w, (double)f->fp[k]);
            }
            dev->backend->close(dev);
            test_free(f);
        }
    ref->backend->close(ref);
}

static void sums_of_squares(void **state) {
    (void)state;
    flat *f = new_flat();
    static const int64_t sizes[] = {0, 1, 1023, 1025, 4096, N};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        double expected = 0;
        for (int64_t k = 0; k < sizes[s]; k++)
            expected += (double)f->fgrad[k] * (double)f->fgrad[k];
        for (int i = 0; i < N_ISAS; i++) {
            double one = 0;
            for (int threads = 1; threads <= 3 && has(isas[i]); threads++) {
                fth_device *dev;
                double sum;
                assert_ok(fth_cpu_open_isa(isas[i], FTH_FP32, threads, &dev));
                assert_ok(dev->backend->sum_squares(dev, f->fgrad, sizes[s], &sum));
                assert_true(fabs(sum - expected) <= 1e-12 * expected);
                if (threads == 1) one = sum;
                assert_true(sum == one); /* whatever the number of threads */
                dev->backend->close(dev);
            }
        }
    }
    test_free(f);
}

/* ---- opening, memory ---- */

static void memory_is_zeroed(void **state) {
    (void)state;
    fth_device *dev;
    assert_ok(fth_backend_cpu()->open(fth_backend_cpu(), FTH_FP32, 2, &dev));
    static const int64_t sizes[] = {1, 100, 4096, (1 << 20) + 5, (9 << 20) + 1};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        unsigned char *data;
        assert_ok(dev->backend->alloc(dev, sizes[s], (void **)&data));
        assert_int_equal((uintptr_t)data % 64, 0);
        for (int64_t i = 0; i < sizes[s]; i++)
            if (data[i]) fail_msg("byte %lld of %lld is not 0", (long long)i, (long long)sizes[s]);
        for (int64_t i = 0; i < sizes[s]; i++) data[i] = 1;
        assert_ok(dev->backend->zero(dev, data, sizes[s]));
        for (int64_t i = 0; i < sizes[s]; i++)
            if (data[i]) fail_msg("byte %lld of %lld is not 0", (long long)i, (long long)sizes[s]);
        dev->backend->release(dev, data);
    }
    int64_t free_bytes, total_bytes;
    assert_ok(dev->backend->memory(dev, &free_bytes, &total_bytes));
    assert_true(free_bytes > 0 && free_bytes <= total_bytes);
    dev->backend->close(dev);
}

static void wrong_wishes_are_refused(void **state) {
    (void)state;
    fth_device *dev;
    assert_int_equal(fth_cpu_open_isa(NULL, FTH_FP32, 0, &dev), FTH_USAGE);
    assert_int_equal(fth_cpu_open_isa("sse9", FTH_FP32, 1, &dev), FTH_USAGE);
    assert_non_null(strstr(fth_error_message(), "sse9"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp32_agrees_with_ref),
        cmocka_unit_test(bf16_agrees_with_ref),
        cmocka_unit_test(units_of_bf16_agree_with_ref),
        cmocka_unit_test(products_in_blocks),
        cmocka_unit_test(gradients_do_not_depend_on_threads),
        cmocka_unit_test(adam_agrees_with_ref),
        cmocka_unit_test(sums_of_squares),
        cmocka_unit_test(memory_is_zeroed),
        cmocka_unit_test(wrong_wishes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
