/* links: harness cpu ref */
/* Products of the cpu device that are larger than the blocks that they are cut into, on every
 * path. */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "close.h"
#include "cpu_paths.h"
#include "op_harness.h"

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
    {"whole columns of a deep gradient", 40, 128, 1100, FTH_ACT_RELU},
    {"many rows", 1000, 48, 128, FTH_ACT_NONE},
    {"wide gradient", 530, 260, 900, FTH_ACT_GELU},
    {"deep blocks of pairs", 50, 2100, 70, FTH_ACT_NONE},
    {"rows in blocks of pairs", 2100, 34, 66, FTH_ACT_RELU},
    {"whole tiles", 160, 64, 96, FTH_ACT_RELU},
    {"sets of strips", 70, 513, 1100, FTH_ACT_RELU},
    {"deep sets of strips, rows in groups", 530, 2100, 150, FTH_ACT_NONE},
    {"gradient in blocks of all three", 363, 1088, 401, FTH_ACT_NONE},
    {"rows of a gradient far apart", 70, 140, 2130, FTH_ACT_NONE},
};

/* Values of a product: what it reads, what it assigns, what it adds to. */
enum { P_X = 1, P_W, P_B, P_DY, P_ADDEND, P_SAVED, P_Y, P_PRE, P_DX, P_DW, P_DB, N_PRODUCT_VALUES };

/* Elements that are looked at: the last one, and others at random. */
enum { N_SPOTS = 40 };
typedef struct spot {
    int64_t row, j, l;         /* of rows, n, k */
    double pre, y, dx, dw, db; /* what must stand there */
} spot;

/* The numbers of a case in one precision, drawn once for all devices, and what they give. */
typedef struct drawn {
    const product_case *c;
    fth_dtype real;
    fth_tensor tensor[N_PRODUCT_VALUES]; /* of DW, DB: before; of what is assigned: no data */
    spot spots[N_SPOTS];
} drawn;

/* One product on a device; what it reads belongs to the drawn numbers. */
typedef struct product {
    const drawn *from;
    fth_device *dev;
    fth_tensor tensor[N_PRODUCT_VALUES];
    fth_graph graph;
    fth_spare scratch;
    fth_exec ex;
} product;

static float get(const fth_tensor *t, int64_t row, int64_t column) {
    if (t->dtype == FTH_F32) return ((float *)t->data)[row * t->ld + column];
    const uint32_t bits = (uint32_t)((uint16_t *)t->data)[row * t->ld + column] << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static size_t bytes_of(const fth_tensor *t) {
    return (size_t)(t->rows * t->ld) * fth_dtype_size(t->dtype);
}

static void *new_numbers(const fth_tensor *t) {
    void *data = NULL; /* no byte more, so that the sanitizer sees who goes too far */
    assert_int_equal(posix_memalign(&data, 64, bytes_of(t)), 0);
    return data;
}

static void draw(drawn *d, int v) {
    fth_tensor *t = &d->tensor[v];
    t->data = new_numbers(t);
    fth_rng r;
    fth_rng_init(&r, 11, (uint64_t)v);
    for (int64_t i = 0; i < t->rows * t->ld; i++) {
        const float x = (float)fth_rng_normal(&r);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        if (t->dtype == FTH_F32)
            ((float *)t->data)[i] = x;
        else
            ((uint16_t *)t->data)[i] = (uint16_t)(bits >> 16);
    }
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
static double sum_product(const drawn *d, int a, int64_t i, bool a_row, int b, int64_t j,
                          bool b_row, int64_t n) {
    double sum = 0;
    for (int64_t l = 0; l < n; l++)
        sum += (double)(a_row ? get(&d->tensor[a], l, i) : get(&d->tensor[a], i, l)) *
               (double)(b_row ? get(&d->tensor[b], l, j) : get(&d->tensor[b], j, l));
    return sum;
}

static void expect_spot(const drawn *d, spot *s) {
    const product_case *c = d->c;
    s->pre = sum_product(d, P_X, s->row, false, P_W, s->j, false, c->k) +
             (double)get(&d->tensor[P_B], 0, s->j);
    s->y = act_of(c->act, s->pre);
    s->dx = (sum_product(d, P_DY, s->row, false, P_W, s->l, true, c->n) +
             (double)get(&d->tensor[P_ADDEND], s->row, s->l)) *
            slope_of(c->act, (double)get(&d->tensor[P_SAVED], s->row, s->l));
    s->dw = (double)get(&d->tensor[P_DW], s->j, s->l) +
            sum_product(d, P_DY, s->j, true, P_X, s->l, true, c->rows);
    s->db = (double)get(&d->tensor[P_DB], 0, s->j);
    for (int64_t k = 0; k < c->rows; k++) s->db += (double)get(&d->tensor[P_DY], k, s->j);
}

static void drawn_init(drawn *d, const product_case *c, fth_precision precision) {
    *d = (drawn){.c = c, .real = precision == FTH_PRECISION_BF16 ? FTH_BF16 : FTH_F32};
    const struct {
        int v;
        int64_t rows, width;
        bool batch, full;
    } shapes[] = {
        {P_X, c->rows, c->k, true, false},
        {P_W, c->n, c->k, false, false},
        {P_B, 1, c->n, false, true},
        {P_DY, c->rows, c->n, true, false},
        {P_ADDEND, c->rows, c->k, true, false},
        {P_SAVED, c->rows, c->k, true, false},
        {P_Y, c->rows, c->n, true, false},
        {P_PRE, c->rows, c->n, true, false},
        {P_DX, c->rows, c->k, true, false},
        {P_DW, c->n, c->k, false, true},
        {P_DB, 1, c->n, false, true},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t width = shapes[i].width;
        const int v = shapes[i].v;
        d->tensor[v] = (fth_tensor){.ld = width + 3,
                                    .rows = shapes[i].rows,
                                    .width = (int32_t)width,
                                    .dtype = shapes[i].full ? FTH_F32 : d->real,
                                    .extent = shapes[i].batch ? FTH_ROWS_SRC : FTH_ROWS_FIXED};
        if (v != P_Y && v != P_PRE && v != P_DX) draw(d, v);
    }
    fth_rng r;
    fth_rng_init(&r, 3, 3);
    for (int i = 0; i < N_SPOTS; i++) {
        spot *s = &d->spots[i];
        s->row = i ? (int64_t)fth_rng_below(&r, (uint64_t)c->rows) : c->rows - 1;
        s->j = i ? (int64_t)fth_rng_below(&r, (uint64_t)c->n) : c->n - 1;
        s->l = i ? (int64_t)fth_rng_below(&r, (uint64_t)c->k) : c->k - 1;
        expect_spot(d, s);
    }
}

static void drawn_fini(drawn *d) {
    for (int v = 1; v < N_PRODUCT_VALUES; v++) free(d->tensor[v].data);
}

static void run_product(product *p, fth_kind kind, const int *in, int n_in, const int *out,
                        int n_out) {
    fth_op *op = fth_graph_op(&p->graph, kind, n_in, n_out);
    assert_non_null(op);
    for (int i = 0; i < n_in; i++) op->in[i] = in[i];
    for (int i = 0; i < n_out; i++) op->out[i] = out[i];
    op->u.linear.act = p->from->c->act;
    const int64_t capacity[FTH_N_EXTENTS] = {p->from->c->rows};
    const fth_backend *b = p->dev->backend;
    assert_ok(
        fth_spare_fit(p->dev, b->scratch[kind](p->dev, &p->graph, op, capacity), &p->scratch));
    p->ex.scratch = p->scratch.data;
    assert_ok(b->kernel[kind](&p->ex, op));
}

static void assert_number(const product *p, const char *what, int v, int64_t row, int64_t column,
                          double expected, int64_t n) {
    const double got = (double)get(&p->tensor[v], row, column);
    const double rounding = p->dev->real == FTH_BF16 ? fabs(expected) / 128 : 0;
    if (!is_close(got, expected, rounding + 1e-6 * (fabs(expected) + 2 * sqrt((double)n))))
        fail_msg("%s, %s: %.9g, not %.9g", p->from->c->name, what, got, expected);
}

static void check_product(const product *p) {
    const product_case *c = p->from->c;
    for (const spot *s = p->from->spots; s < p->from->spots + N_SPOTS; s++) {
        assert_number(p, "pre", P_PRE, s->row, s->j, s->pre, c->k);
        assert_number(p, "y", P_Y, s->row, s->j, s->y, c->k);
        assert_number(p, "dx", P_DX, s->row, s->l, s->dx, c->n);
        assert_number(p, "dw", P_DW, s->j, s->l, s->dw, c->rows);
        assert_number(p, "db", P_DB, 0, s->j, s->db, c->rows);
    }
}

/* Results of its own: NaN where the product assigns, what was there before where it adds. */
static void own_results(product *p) {
    for (int v = P_Y; v < N_PRODUCT_VALUES; v++) {
        fth_tensor *t = &p->tensor[v];
        const void *before = t->data;
        t->data = new_numbers(t);
        if (before)
            memcpy(t->data, before, bytes_of(t));
        else
            memset(t->data, 0xff, bytes_of(t));
    }
}

static void open_product(product *p, const drawn *d, const char *isa, int threads) {
    const fth_precision precision = d->real == FTH_BF16 ? FTH_PRECISION_BF16 : FTH_PRECISION_FP32;
    *p = (product){.from = d};
    assert_ok(fth_cpu_open_isa(isa, precision, threads, &p->dev));
    fth_graph_init(&p->graph);
    memcpy(p->tensor, d->tensor, sizeof p->tensor);
    own_results(p);
    for (int v = 1; v < N_PRODUCT_VALUES; v++) {
        const fth_tensor *t = &p->tensor[v];
        const fth_value value = {.storage = v == P_DW || v == P_DB ? FTH_IN_GRAD : FTH_IN_ARENA,
                                 .width = t->width,
                                 .extent = t->extent,
                                 .rows = t->rows};
        assert_int_equal(fth_graph_value(&p->graph, value), v);
    }
    p->ex = (fth_exec){.device = p->dev, .graph = &p->graph, .tensor = p->tensor};
    p->ex.rows[FTH_ROWS_SRC] = p->ex.capacity[FTH_ROWS_SRC] = d->c->rows;
}

static void close_product(product *p) {
    for (int v = P_Y; v < N_PRODUCT_VALUES; v++) free(p->tensor[v].data);
    fth_spare_fini(p->dev, &p->scratch);
    fth_graph_fini(&p->graph);
    p->dev->backend->close(p->dev);
}

/* The same products from parameters in fp32, which are rounded on the way: theirs are such that
 * nothing is lost, so that the results have the same bits. */
static void try_full_weights(product *p) {
    const int results[] = {P_Y, P_DX};
    const fth_tensor w = p->tensor[P_W];
    void *before[2];
    for (int i = 0; i < 2; i++) {
        fth_tensor *t = &p->tensor[results[i]];
        before[i] = t->data;
        t->data = new_numbers(t);
        memset(t->data, 0xff, bytes_of(t));
    }
    p->tensor[P_W].dtype = FTH_F32;
    p->tensor[P_W].ld = w.width; /* parameters lie without gaps */
    p->tensor[P_W].data = new_numbers(&p->tensor[P_W]);
    p->graph.value[P_W].storage = FTH_IN_PARAM;
    for (int64_t i = 0; i < w.rows * w.width; i++)
        ((float *)p->tensor[P_W].data)[i] = get(&w, i / w.width, i % w.width);
    const int saved = p->from->c->act == FTH_ACT_NONE ? 0 : P_SAVED;
    run_product(p, FTH_KIND_linear, (int[]){P_X, P_W, P_B}, 3, (int[]){P_Y, 0}, 2);
    run_product(p, FTH_KIND_linear_dx, (int[]){P_DY, P_W, P_ADDEND, saved}, 4, (int[]){P_DX}, 1);
    for (int i = 0; i < 2; i++) {
        const fth_tensor *t = &p->tensor[results[i]];
        for (int64_t row = 0; row < t->rows; row++)
            for (int64_t j = 0; j < t->width; j++) {
                const uint16_t got = ((uint16_t *)t->data)[row * t->ld + j];
                assert_int_equal(got, ((uint16_t *)before[i])[row * t->ld + j]);
            }
        free(before[i]);
    }
    free(p->tensor[P_W].data);
    p->tensor[P_W] = w;
}

static void try_product(const drawn *d, const char *isa, int threads) {
    product p;
    open_product(&p, d, isa, threads);
    run_product(&p, FTH_KIND_linear, (int[]){P_X, P_W, P_B}, 3, (int[]){P_Y, P_PRE}, 2);
    const int saved = d->c->act == FTH_ACT_NONE ? 0 : P_SAVED;
    run_product(&p, FTH_KIND_linear_dx, (int[]){P_DY, P_W, P_ADDEND, saved}, 4, (int[]){P_DX}, 1);
    run_product(&p, FTH_KIND_linear_dw, (int[]){P_DY, P_X}, 2, (int[]){P_DW, P_DB}, 2);
    check_product(&p);
    /* once more without the value before the activation: tiles may then go straight to y */
    memset(p.tensor[P_Y].data, 0xff, bytes_of(&p.tensor[P_Y]));
    run_product(&p, FTH_KIND_linear, (int[]){P_X, P_W, P_B}, 3, (int[]){P_Y, 0}, 2);
    check_product(&p);
    if (d->real == FTH_BF16) try_full_weights(&p);
    close_product(&p);
}

/* Numbers of threads, from and to. Instrumented products are slow: the sanitized run takes one
 * number of threads for each path and precision, and the two largest products only on the last
 * instruction set and on tiles, for which they are there. */
#if defined(__SANITIZE_ADDRESS__)
enum { INSTRUMENTED = true, LARGEST_ON_ALL = 100 * 1000 * 1000 }; /* multiplications */
static const int fp32_threads[] = {3, 3}, unit_threads[] = {2, 2};
#else
enum { INSTRUMENTED = false, LARGEST_ON_ALL = INT_MAX };
static const int fp32_threads[] = {1, 4}, unit_threads[] = {1, 3};
#endif
static const int two_threads[] = {2, 2};

/* A case on the paths of a list that this machine has; chosen: the one for the largest. */
static void try_paths(const drawn *d, const char *const *paths, int n, const char *chosen,
                      const int *threads) {
    const bool everywhere = d->c->rows * d->c->k * d->c->n <= LARGEST_ON_ALL;
    for (int i = 0; i < n; i++)
        for (int t = threads[0]; t <= threads[1] && has(paths[i]); t++)
            if (everywhere || strcmp(paths[i], chosen) == 0) try_product(d, paths[i], t);
}

static void products_in_blocks(void **state) {
    (void)state;
    const char *last = "plain";
    for (int i = 0; i < N_ISAS; i++)
        if (has(isas[i])) last = isas[i];
    const char *on_tiles = has("avx512-plain-amx") ? "avx512-plain-amx" : "plain-amx";
    for (size_t c = 0; c < sizeof products / sizeof *products; c++) {
        drawn d;
        drawn_init(&d, &products[c], FTH_PRECISION_FP32);
        try_paths(&d, isas, N_ISAS, last, fp32_threads);
        try_paths(&d, tiles, N_TILES, on_tiles, unit_threads);
        drawn_fini(&d);
        drawn_init(&d, &products[c], FTH_PRECISION_BF16);
        try_paths(&d, isas, N_ISAS, last, two_threads);
        try_paths(&d, units, N_UNITS, on_tiles, unit_threads);
        drawn_fini(&d);
    }
}

/* dW and db of one thread, and of two to four. */
static void try_threads(const product_case *c, const char *isa, fth_precision precision) {
    drawn d;
    product one, p;
    if (!has(isa)) return;
    drawn_init(&d, c, precision);
    open_product(&one, &d, isa, 1);
    run_product(&one, FTH_KIND_linear_dw, (int[]){P_DY, P_X}, 2, (int[]){P_DW, P_DB}, 2);
    for (int threads = 2; threads <= 4; threads++) {
        open_product(&p, &d, isa, threads);
        run_product(&p, FTH_KIND_linear_dw, (int[]){P_DY, P_X}, 2, (int[]){P_DW, P_DB}, 2);
        for (int v = P_DW; v <= P_DB; v++)
            assert_memory_equal(p.tensor[v].data, one.tensor[v].data, bytes_of(&p.tensor[v]));
        close_product(&p);
    }
    close_product(&one);
    drawn_fini(&d);
}

/* Of maps that threads share without adding up each other's sums. */
static void gradients_do_not_depend_on_threads(void **state) {
    (void)state;
    static const product_case cases[] = {{"blocks of all three", 363, 1088, 401, FTH_ACT_NONE},
                                         {"odd columns", 190, 260, 900, FTH_ACT_NONE},
                                         {"chunks of k", 1100, 260, 288, FTH_ACT_NONE}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (int i = 0; i < N_ISAS; i++) try_threads(&cases[c], isas[i], FTH_PRECISION_FP32);
        for (int i = 0; i < N_TILES && !INSTRUMENTED; i++) {
            try_threads(&cases[c], tiles[i], FTH_PRECISION_FP32);
            try_threads(&cases[c], tiles[i], FTH_PRECISION_BF16);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_in_blocks),
        cmocka_unit_test(gradients_do_not_depend_on_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
