/* links: cpu ref */
/* Weights that device cpu packs. In 8 bits: every path against sums in plain integers, and linear
 * maps on every instruction set against what their 8-bit numbers say, in double. As panels and in
 * fixed point: linear maps on every instruction set and unit against products in double. And
 * weights of fp32 that become bf16 ones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/cpu/tile/packed.h"
#include "base/philox.h"
#include "close.h"
#include "cpu_paths.h"

/* ---- products ---- */

static const char *const paths[] = {"plain", "avx2", "avx-vnni", "vnni", "amx", "plain-amx"};
enum { N_PATHS = sizeof paths / sizeof *paths };

static void try_path(const fth_int8_path *path, int64_t m, int64_t groups) {
    const int64_t ldx = groups * FTH_INT8_DEPTH + 7, depth = groups * FTH_INT8_DEPTH;
    uint8_t *x = test_malloc((size_t)(m * ldx));
    int8_t *panel = test_malloc((size_t)(depth * FTH_INT8_COLUMNS));
    int32_t *sums = test_malloc(sizeof *sums * (size_t)(m + 1) * FTH_INT8_COLUMNS);
    fth_rng r;
    fth_rng_init(&r, 1, (uint64_t)(m * 1000 + groups));
    for (int64_t i = 0; i < m * ldx; i++) { /* the ends of the range come often */
        const int p = i % 3 ? 127 - 254 * (int)(i % 2) : (int)fth_rng_below(&r, 255) - 127;
        x[i] = (uint8_t)(p + (path->biased ? 128 : 0));
    }
    for (int64_t i = 0; i < depth * FTH_INT8_COLUMNS; i++)
        panel[i] = (int8_t)(i % 5 ? 127 - 254 * (int)(i % 2) : (int)fth_rng_below(&r, 255) - 127);
    for (int j = 0; j < FTH_INT8_COLUMNS; j++) sums[m * FTH_INT8_COLUMNS + j] = 12345;
    path->product(m, x, ldx, panel, groups, sums);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < FTH_INT8_COLUMNS; j++) {
            int32_t expected = 0;
            for (int64_t l = 0; l < depth; l++) {
                const int p = path->biased ? x[i * ldx + l] : (int8_t)x[i * ldx + l];
                expected += p * panel[(l / 4 * FTH_INT8_COLUMNS + j) * 4 + l % 4];
            }
            if (sums[i * FTH_INT8_COLUMNS + j] != expected)
                fail_msg("%s, %d rows of %d: sum %d, %d is %d, not %d", path->name, (int)m,
                         (int)depth, (int)i, (int)j, sums[i * FTH_INT8_COLUMNS + j], expected);
        }
    for (int j = 0; j < FTH_INT8_COLUMNS; j++)
        assert_int_equal(sums[m * FTH_INT8_COLUMNS + j], 12345);
    test_free(x);
    test_free(panel);
    test_free(sums);
}

static void products_are_exact(void **state) {
    (void)state;
    static const int64_t rows[] = {1, 2, 3, 5, 6, 7, 11, 12, 13, 16, 23, 32, 48, 51, FTH_INT8_ROWS};
    int tried = 0;
    for (int p = 0; p < N_PATHS; p++) {
        const fth_int8_path *path = fth_int8_path_named(paths[p]);
        if (!path) continue;
        assert_string_equal(path->name, paths[p]);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            try_path(path, rows[i], path->groups * (1 + 16 * (int)i / (int)path->groups));
        tried++;
    }
    assert_true(tried > 0);
    assert_null(fth_int8_path_named("vnni9"));
}

static void paths_follow_the_instruction_set(void **state) {
    (void)state;
    assert_string_equal(fth_int8_path_for("plain")->name, "plain");
    const fth_int8_path *avx2 = fth_int8_path_named("avx2"),
                        *avx_vnni = fth_int8_path_named("avx-vnni");
    if (avx2) assert_ptr_equal(fth_int8_path_for("avx2"), avx_vnni ? avx_vnni : avx2);
    assert_string_equal(fth_int8_path_for("plain-amx")->name, "plain-amx");
    assert_string_equal(fth_int8_path_for("avx512-plain-amx")->name, "plain-amx");
    const fth_int8_path *vnni = fth_int8_path_named("vnni"), *amx = fth_int8_path_named("amx");
    if (vnni) assert_ptr_equal(fth_int8_path_for("avx512"), vnni);
    if (vnni) assert_ptr_equal(fth_int8_path_for("amx"), amx ? amx : vnni);
    if (vnni) assert_ptr_equal(fth_int8_path_for(NULL), amx ? amx : vnni);
}

/* ---- linear maps ---- */

enum { X = 1, W, B, Y, N_VALUES };
enum { IN_8_BITS, WHOLE };

typedef struct map {
    fth_device *dev;
    fth_graph graph;
    fth_exec ex;
    fth_tensor tensor[N_VALUES];
} map;

static float get(const fth_tensor *t, int64_t row, int64_t column) {
    const int64_t i = row * t->ld + column;
    if (t->dtype == FTH_F32) return ((float *)t->data)[i];
    const uint32_t bits = (uint32_t)((uint16_t *)t->data)[i] << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void make(map *p, fth_storage storage, int64_t rows, int64_t width, fth_class class) {
    const fth_val v = fth_graph_value(&p->graph, (fth_value){.storage = storage,
                                                             .class = class,
                                                             .extent = FTH_ROWS_FIXED,
                                                             .rows = rows,
                                                             .width = (int32_t)width});
    fth_tensor *t = &p->tensor[v];
    *t = (fth_tensor){.ld = width, .rows = rows, .width = (int32_t)width, .extent = FTH_ROWS_FIXED};
    t->dtype = class == FTH_REAL ? p->dev->real : p->dev->full;
    assert_ok(p->dev->backend->alloc(p->dev, rows * width * 4, &t->data));
    fth_rng r;
    fth_rng_init(&r, 7, (uint64_t)v);
    for (int64_t i = 0; i < rows * width; i++) {
        const float x = (float)fth_rng_normal(&r);
        if (t->dtype == FTH_F32)
            ((float *)t->data)[i] = x;
        else {
            uint32_t bits;
            memcpy(&bits, &x, sizeof bits);
            ((uint16_t *)t->data)[i] = (uint16_t)(bits >> 16);
        }
    }
}

static void open_map(map *p, int how, const char *isa, fth_precision precision, int threads,
                     int64_t m, int64_t k, int64_t n, fth_act act) {
    *p = (map){0};
    assert_ok(fth_cpu_open_isa(isa, precision, threads, &p->dev));
    if (how == IN_8_BITS) assert_ok(p->dev->backend->quantize(p->dev));
    fth_graph_init(&p->graph);
    make(p, FTH_IN_ARENA, m < FTH_DIGITS_ROWS ? FTH_DIGITS_ROWS : m, k, FTH_REAL);
    make(p, FTH_IN_PARAM, n, k, FTH_REAL);
    make(p, FTH_IN_PARAM, 1, n, FTH_FULL);
    make(p, FTH_IN_ARENA, m, n, FTH_REAL);
    p->ex = (fth_exec){.device = p->dev, .graph = &p->graph, .tensor = p->tensor};
    fth_op *op = fth_graph_op(&p->graph, FTH_KIND_linear, 3, 2);
    op->in[LINEAR_X] = X, op->in[LINEAR_W] = W, op->in[LINEAR_B] = B;
    op->out[LINEAR_Y] = Y;
    op->u.linear.act = act;
    fth_op *second = fth_graph_op(&p->graph, FTH_KIND_linear, 3, 2); /* is not run */
    memcpy(second->in, (fth_val[]){X, W, 0}, 3 * sizeof *second->in);
    op = &p->graph.op[0];
    const int64_t capacity[FTH_N_EXTENTS] = {0};
    const int64_t bytes =
        p->dev->backend->scratch[FTH_KIND_linear](p->dev, &p->graph, op, capacity);
    assert_ok(p->dev->backend->alloc(p->dev, bytes, &p->ex.scratch));
    assert_ok(p->dev->backend->prepare(&p->ex));
    assert_true((p->ex.own != NULL) == (how == IN_8_BITS)); /* this is no step of generation */
    if (how == WHOLE) assert_ok(fth_cpu_pack_whole(&p->ex, true));
    p->tensor[X].rows = m; /* a batch can have fewer rows than there is room for */
    const bool digits = how == WHOLE && ((fth_cpu *)p->dev)->parts;
    assert_true((fth_cpu_packed_digits(&p->ex) != NULL) == digits);
    const bool deep = how == IN_8_BITS && k > FTH_INT8_DEEPEST;
    assert_true((fth_cpu_packed_int8(&p->ex, W) != NULL) ==
                ((how == IN_8_BITS && !deep) || digits));
    assert_true((fth_cpu_packed_panels(&p->ex, W) != NULL) == (how == WHOLE && !digits));
    /* two read the weights; they are packed once, and not much larger than they are */
    const int64_t size = how == IN_8_BITS ? 1
                         : digits         ? FTH_DIGITS_W
                                          : (int64_t)fth_dtype_size(p->dev->real);
    const int64_t padded = (n + 63) / 64 * 64 * ((k + 127) / 128 * 128) * size;
    assert_in_range(p->ex.own_bytes, deep ? 0 : n * k * size, deep ? 0 : padded + 16 * (n + 64));
}

static void close_map(map *p) {
    p->dev->backend->unprepare(&p->ex);
    assert_null(p->ex.own);
    assert_int_equal(p->ex.own_bytes, 0);
    for (int v = 1; v < N_VALUES; v++) p->dev->backend->release(p->dev, p->tensor[v].data);
    p->dev->backend->release(p->dev, p->ex.scratch);
    fth_graph_fini(&p->graph);
    p->dev->backend->close(p->dev);
}

/* What 127 stands for in a row. */
static double largest(const fth_tensor *t, int64_t row) {
    double most = 0;
    for (int64_t l = 0; l < t->width; l++) { /* with fmax gcc 12 gives up on 64-bit ARM */
        const double size = fabs((double)get(t, row, l));
        if (size > most) most = size;
    }
    return most;
}

static double in_8_bits(double x, double most) {
    return most > 0 ? rint((double)((float)x * (127 / (float)most))) : 0;
}

static void try_map(const char *isa, fth_precision precision, int threads, int64_t m, int64_t k,
                    int64_t n, fth_act act) {
    map p;
    open_map(&p, IN_8_BITS, isa, precision, threads, m, k, n, act);
    assert_ok(p.dev->backend->kernel[FTH_KIND_linear](&p.ex, &p.graph.op[0]));
    const fth_tensor *x = &p.tensor[X], *w = &p.tensor[W];
    double worst = 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j += 1 + n / 50) {
            const double mx = largest(x, i), mw = largest(w, j);
            double sum = 0, whole = 0;
            for (int64_t l = 0; l < k; l++) {
                const double a = (double)get(x, i, l), b = (double)get(w, j, l);
                sum += in_8_bits(a, mx) * in_8_bits(b, mw);
                whole += a * b;
            }
            const double bias = (double)get(&p.tensor[B], 0, j);
            double y = sum * mx / 127 * mw / 127 + bias;
            worst = fmax(worst, fabs(y - bias - whole));
            if (act == FTH_ACT_RELU && y < 0) y = 0;
            const double got = (double)get(&p.tensor[Y], i, j);
            const double rounding = precision == FTH_PRECISION_BF16 ? fabs(y) / 128 : 0;
            if (!is_close(got, y, 1e-5 * (fabs(y) + 1) + rounding))
                fail_msg("%s, %d x %d x %d: y[%d, %d] is %.9g, not %.9g", isa, (int)m, (int)k,
                         (int)n, (int)i, (int)j, got, y);
        }
    assert_true(worst <= 0.06 * sqrt((double)k) + 0.02); /* 8 bits are near the whole numbers */
    close_map(&p);
}

static void maps_agree_with_their_numbers(void **state) {
    (void)state;
    static const struct {
        int64_t m, k, n;
        fth_act act;
    } cases[] = {{1, 1, 1, FTH_ACT_NONE},     {1, 512, 130, FTH_ACT_RELU},
                 {2, 63, 64, FTH_ACT_NONE},   {32, 129, 65, FTH_ACT_RELU},
                 {97, 40, 200, FTH_ACT_NONE}, {200, 16, 33, FTH_ACT_NONE}};
    static const char *const names[] = {"plain", "avx2", "avx512", "plain-amx", "avx512-plain-amx",
                                        "amx"};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            if (!has(names[i])) continue;
            for (int threads = 1; threads <= 3; threads++)
                try_map(names[i], FTH_PRECISION_FP32, threads, cases[c].m, cases[c].k, cases[c].n,
                        cases[c].act);
            try_map(names[i], FTH_PRECISION_BF16, 2, cases[c].m, cases[c].k, cases[c].n,
                    cases[c].act);
        }
}

/* A row of zeros gives the bias; one that is not finite gives no number; neither harms others. */
static void try_odd_rows(int how, const char *isa) {
    map p;
    open_map(&p, how, isa, FTH_PRECISION_FP32, 2, 4, 20, 70, FTH_ACT_NONE);
    float *x = p.tensor[X].data;
    for (int l = 0; l < 20; l++) x[l] = 0;
    x[20 + 3] = INFINITY;
    x[40 + 5] = NAN;
    assert_ok(p.dev->backend->kernel[FTH_KIND_linear](&p.ex, &p.graph.op[0]));
    for (int64_t j = 0; j < 70; j++) {
        assert_true(get(&p.tensor[Y], 0, j) == get(&p.tensor[B], 0, j));
        assert_false(isfinite(get(&p.tensor[Y], 1, j)));
        assert_false(isfinite(get(&p.tensor[Y], 2, j)));
        assert_true(isfinite(get(&p.tensor[Y], 3, j)));
    }
    close_map(&p);
}

static void odd_rows(void **state) {
    (void)state;
    try_odd_rows(IN_8_BITS, NULL);
    try_odd_rows(WHOLE, NULL);
    for (size_t i = 0; i < N_TILES; i++)
        if (has(tiles[i])) try_odd_rows(WHOLE, tiles[i]);
}

/* ---- panels, and fixed point on tiles ---- */

static void try_whole(const char *isa, fth_precision precision, int threads, int64_t m, int64_t k,
                      int64_t n, fth_act act) {
    map p;
    open_map(&p, WHOLE, isa, precision, threads, m, k, n, act);
    if (m <= FTH_PANEL_ROWS) /* not read */
        memset(p.tensor[W].data, 0xff, (size_t)(n * k) * fth_dtype_size(p.dev->real));
    map plain;
    open_map(&plain, WHOLE, isa, precision, 1, m, k, n, act); /* the weights as they were */
    assert_ok(p.dev->backend->kernel[FTH_KIND_linear](&p.ex, &p.graph.op[0]));
    const double rounding = precision == FTH_PRECISION_BF16 ? 1.0 / 128 : 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double y = (double)get(&p.tensor[B], 0, j), size = fabs(y);
            for (int64_t l = 0; l < k; l++) {
                const double term =
                    (double)get(&p.tensor[X], i, l) * (double)get(&plain.tensor[W], j, l);
                y += term;
                size += fabs(term);
            }
            if (act == FTH_ACT_RELU && y < 0) y = 0;
            const double got = (double)get(&p.tensor[Y], i, j);
            if (!is_close(got, y, 1e-6 * size + rounding * fabs(y)))
                fail_msg("%s, %d threads, %d x %d x %d: y[%d, %d] is %.9g, not %.9g", isa, threads,
                         (int)m, (int)k, (int)n, (int)i, (int)j, got, y);
        }
    close_map(&plain);
    close_map(&p);
}

static void whole_weights_agree_with_products(void **state) {
    (void)state;
    static const struct {
        int64_t m, k, n;
        fth_act act;
    } cases[] = {
        {1, 1, 1, FTH_ACT_NONE},     {1, 513, 130, FTH_ACT_RELU},  {2, 63, 64, FTH_ACT_NONE},
        {7, 2, 300, FTH_ACT_NONE},   {32, 129, 65, FTH_ACT_RELU},  {33, 64, 7, FTH_ACT_NONE},
        {5, 1100, 16, FTH_ACT_RELU}, {97, 40, 200, FTH_ACT_NONE},  {200, 16, 33, FTH_ACT_NONE},
        {3, 2100, 70, FTH_ACT_NONE}, {32, 640, 200, FTH_ACT_RELU}, {71, 131, 300, FTH_ACT_NONE}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const int64_t m = cases[c].m, k = cases[c].k, n = cases[c].n;
        for (size_t i = 0; i < N_ISAS; i++)
            for (int threads = 1; threads <= 5 && has(isas[i]); threads += 2) {
                try_whole(isas[i], FTH_PRECISION_FP32, threads, m, k, n, cases[c].act);
                if (threads == 3) try_whole(isas[i], FTH_PRECISION_BF16, 2, m, k, n, cases[c].act);
            }
        for (size_t i = 0; i < N_UNITS; i++)
            if (has(units[i])) {
                try_whole(units[i], FTH_PRECISION_BF16, 1 + (int)c % 3, m, k, n, cases[c].act);
                try_whole(units[i], FTH_PRECISION_FP32, 1 + (int)c % 3, m, k, n, cases[c].act);
            }
    }
}

/* ---- fixed point ---- */

/* The root of the mean of squares of what a map of floats is wrong by, a row of activations having
 * been changed before. */
static double error_of(const char *isa, void (*change)(float *row, int64_t k)) {
    enum { M = 9, K = 512, N = 96 };
    map p;
    open_map(&p, WHOLE, isa, FTH_PRECISION_FP32, 2, M, K, N, FTH_ACT_NONE);
    for (int i = 0; change && i < M; i++) change((float *)p.tensor[X].data + (size_t)i * K, K);
    assert_ok(p.dev->backend->kernel[FTH_KIND_linear](&p.ex, &p.graph.op[0]));
    double squares = 0;
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            double y = (double)get(&p.tensor[B], 0, j);
            for (int64_t l = 0; l < K; l++)
                y += (double)get(&p.tensor[X], i, l) * (double)get(&p.tensor[W], j, l);
            squares += pow((double)get(&p.tensor[Y], i, j) - y, 2);
        }
    close_map(&p);
    return sqrt(squares / (M * N));
}

static void make_tiny(float *row, int64_t k) {
    for (int64_t l = 0; l < k; l++) row[l] *= 1e-30f;
}

static void make_huge(float *row, int64_t k) {
    for (int64_t l = 0; l < k; l++) row[l] *= 1e30f;
}

static void put_one_peak(float *row, int64_t k) {
    row[k / 3] = 100;
}

/* Fixed point is no less exact than sums of floats; with one activation that is a hundred times the
 * others too. */
static void fixed_point_is_as_exact_as_floats(void **state) {
    (void)state;
    static void (*const changes[])(float *, int64_t) = {NULL, make_tiny, make_huge, put_one_peak};
    for (size_t i = 0; i < N_TILES; i++)
        for (size_t c = 0; c < sizeof changes / sizeof *changes && has(tiles[i]); c++)
            assert_true(error_of(tiles[i], changes[c]) <= error_of("plain", changes[c]));
}

/* Weights that 8 bits cannot hold are an error, and so small ones are 0. */
static void bad_weights_in_8_bits(void **state) {
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        map p;
        open_map(&p, IN_8_BITS, NULL, FTH_PRECISION_FP32, 2, 3, 65, 70, FTH_ACT_NONE);
        p.dev->backend->unprepare(&p.ex);
        ((float *)p.tensor[W].data)[69 * 65 + 64] = bad[i];
        assert_int_equal(p.dev->backend->prepare(&p.ex), FTH_FAILED);
        assert_non_null(strstr(fth_error_message(), "not finite cannot be held in 8 bits"));
        close_map(&p);
    }
    const fth_int8_path *path = fth_int8_path_named("plain");
    const float rows[][4] = {{1e-40f, 0, -1e-45f, 0}, {1e30f, -2e30f, 0, 5e29f}};
    int8_t *data = test_malloc((size_t)fth_int8_bytes(path, 2, 4));
    fth_int8 w;
    fth_int8_place(path, &w, 2, 4, data);
    for (int j = 0; j < 2; j++) assert_true(path->pack_row(&w, j, rows[j]));
    assert_memory_equal(data, ((const int8_t[]){0, 0, 0, 0, 64, -127, 0, 32}), 8);
    test_free(data);
}

/* A map whose sums 32 bits might not hold stays in floats. */
static void deep_maps_stay_floats(void **state) {
    (void)state;
    enum { DEEP = FTH_INT8_DEEPEST + 8 };
    for (int m = 1; m <= 2; m++) {
        map p;
        open_map(&p, IN_8_BITS, NULL, FTH_PRECISION_FP32, 2, m, DEEP, 3, FTH_ACT_NONE);
        for (int64_t i = 0; i < m * DEEP; i++) ((float *)p.tensor[X].data)[i] = 1;
        for (int64_t i = 0; i < 3 * DEEP; i++) ((float *)p.tensor[W].data)[i] = 1;
        p.dev->backend->unprepare(&p.ex);
        assert_ok(p.dev->backend->prepare(&p.ex));
        assert_ok(p.dev->backend->kernel[FTH_KIND_linear](&p.ex, &p.graph.op[0]));
        for (int64_t j = 0; j < 3; j++)
            assert_close(get(&p.tensor[Y], m - 1, j), DEEP + get(&p.tensor[B], 0, j), 1);
        close_map(&p);
    }
}

/* Only a program whose parameters stay as they are has them packed when it is made. */
static void frozen_programs_pack(void **state) {
    (void)state;
    static const char *const names[] = {"plain", "plain-amx"};
    for (int tiled = 0; tiled < 2; tiled++)
        for (int frozen = 0; frozen < 2; frozen++) {
            map p;
            open_map(&p, WHOLE, names[tiled], FTH_PRECISION_FP32, 1, FTH_DIGITS_ROWS, 8, 8,
                     FTH_ACT_NONE);
            p.dev->backend->unprepare(&p.ex);
            p.ex.frozen = frozen;
            assert_ok(p.dev->backend->prepare(&p.ex)); /* no step of generation: no panels */
            assert_true((fth_cpu_packed_digits(&p.ex) != NULL) == (tiled && frozen));
            assert_null(fth_cpu_packed_panels(&p.ex, W));
            close_map(&p);
        }
}

/* Few rows are multiplied as floats. */
static void few_rows_stay_floats(void **state) {
    (void)state;
    map p;
    open_map(&p, WHOLE, "plain-amx", FTH_PRECISION_FP32, 1, FTH_DIGITS_ROWS - 1, 8, 8,
             FTH_ACT_NONE);
    p.dev->backend->unprepare(&p.ex);
    assert_ok(fth_cpu_pack_whole(&p.ex, true));
    assert_null(fth_cpu_packed_digits(&p.ex));
    assert_non_null(fth_cpu_packed_panels(&p.ex, W));
    close_map(&p);
}

/* Weights that fixed point would hold badly stay floats, in panels. */
static void uneven_weights_stay_floats(void **state) {
    (void)state;
    static const struct {
        float largest;
        bool digits;
    } cases[] = {{20, true},   {-20, true},       {60, false},
                 {-60, false}, {INFINITY, false}, {NAN, false}};
    for (size_t i = 0; i < N_TILES; i++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases && has(tiles[i]); c++) {
            map p;
            open_map(&p, WHOLE, tiles[i], FTH_PRECISION_FP32, 2, FTH_DIGITS_ROWS, 2000, 40,
                     FTH_ACT_NONE);
            p.dev->backend->unprepare(&p.ex);
            ((float *)p.tensor[W].data)[17 * 2000 + 5] = cases[c].largest;
            assert_ok(fth_cpu_pack_whole(&p.ex, false));
            assert_true((fth_cpu_packed_digits(&p.ex) != NULL) == cases[c].digits);
            p.dev->backend->unprepare(&p.ex);
            assert_ok(fth_cpu_pack_whole(&p.ex, true));
            assert_true((fth_cpu_packed_panels(&p.ex, W) != NULL) == !cases[c].digits);
            assert_ok(p.dev->backend->kernel[FTH_KIND_linear](&p.ex, &p.graph.op[0]));
            for (int64_t j = 0; j < 40; j++)
                assert_true((bool)isfinite(get(&p.tensor[Y], 2, j)) ==
                            (j != 17 || (bool)isfinite(cases[c].largest)));
            close_map(&p);
        }
}

/* ---- weights that are parameters in fp32, as a training in bf16 has them ---- */

static uint16_t rounded(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* Runs the map with the weights that it has now, in panels and without. y: [2, m, n] */
static void run_both_ways(map *p, uint16_t *y) {
    const fth_tensor *out = &p->tensor[Y];
    const size_t n = (size_t)(out->rows * out->width);
    for (int panels = 0; panels < 2; panels++) {
        p->dev->backend->unprepare(&p->ex);
        if (panels) assert_ok(fth_cpu_pack_whole(&p->ex, true));
        assert_ok(p->dev->backend->kernel[FTH_KIND_linear](&p->ex, &p->graph.op[0]));
        memcpy(y + (size_t)panels * n, out->data, n * sizeof *y);
    }
}

static void try_parameters(const char *isa, int threads, int64_t m, int64_t k, int64_t n) {
    map p;
    open_map(&p, WHOLE, isa, FTH_PRECISION_BF16, threads, m, k, n, FTH_ACT_NONE);
    const size_t bytes = sizeof(uint16_t) * (size_t)(2 * m * n);
    uint16_t *copied = test_malloc(bytes), *own = test_malloc(bytes);
    float *w = test_malloc(sizeof *w * (size_t)(n * k));
    const fth_tensor copy = p.tensor[W];
    fth_rng r;
    fth_rng_init(&r, 3, 1);
    for (int64_t i = 0; i < n * k; i++) {
        w[i] = (float)fth_rng_normal(&r);
        ((uint16_t *)copy.data)[i] = rounded(w[i]);
    }
    run_both_ways(&p, copied);
    p.tensor[W].dtype = FTH_F32;
    p.tensor[W].data = w;
    run_both_ways(&p, own);
    if (memcmp(copied, own, bytes) != 0)
        fail_msg("%s, %d threads, %d x %d x %d: another result", isa, threads, (int)m, (int)k,
                 (int)n);
    p.tensor[W] = copy;
    close_map(&p);
    test_free(copied);
    test_free(own);
    test_free(w);
}

static void parameters_are_rounded(void **state) {
    (void)state;
    static const char *const names[] = {"plain", "avx2", "avx512", "avx512-plain-bf16",
                                        "plain-amx"};
    static const int64_t cases[][3] = {{5, 37, 41}, {200, 64, 192}, {70, 300, 259}}; /* m, k, n */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int c = 0; c < 3 && has(names[i]); c++)
            try_parameters(names[i], 1 + c, cases[c][0], cases[c][1], cases[c][2]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_exact),
        cmocka_unit_test(paths_follow_the_instruction_set),
        cmocka_unit_test(maps_agree_with_their_numbers),
        cmocka_unit_test(odd_rows),
        cmocka_unit_test(whole_weights_agree_with_products),
        cmocka_unit_test(fixed_point_is_as_exact_as_floats),
        cmocka_unit_test(bad_weights_in_8_bits),
        cmocka_unit_test(deep_maps_stay_floats),
        cmocka_unit_test(frozen_programs_pack),
        cmocka_unit_test(few_rows_stay_floats),
        cmocka_unit_test(uneven_weights_stay_floats),
        cmocka_unit_test(parameters_are_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
