/* rate.c: times a linear map by itself for each way in which this machine can compute it. */
#include "backend/cpu/rate.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cpu/tile/packed.h"
#include "base/clock.h"
#include "base/philox.h"

enum { X = 1, W, B, Y, DY, DX, DW, DB, N_VALUES };

/* One shape on one device. */
typedef struct product {
    fth_device *dev;
    fth_graph graph;
    fth_exec ex;
    fth_tensor tensor[N_VALUES];
    char *arena; /* all of them and scratch, as programs have it: large pieces get huge pages */
    int64_t arena_bytes, used;
} product;

/* ---- making ---- */

static int64_t whole_pages(int64_t bytes) {
    return (bytes + 4095) / 4096 * 4096;
}

/* So few rows are those of steps of generation. */
static bool are_few(int64_t rows) {
    return rows <= FTH_PANEL_ROWS;
}

bool fth_product_has_digits(const fth_product_shape *s) {
    return s->rows >= FTH_DIGITS_ROWS && are_few(s->rows);
}

static fth_err make_value(product *p, fth_storage storage, int64_t rows, int64_t width,
                          fth_class class) {
    const fth_val v = fth_graph_value(&p->graph, (fth_value){.storage = storage,
                                                             .class = class,
                                                             .extent = FTH_ROWS_FIXED,
                                                             .rows = rows,
                                                             .width = (int32_t)width});
    if (!v) return p->graph.err;
    fth_tensor *t = &p->tensor[v];
    *t = (fth_tensor){.ld = width, .rows = rows, .width = (int32_t)width, .extent = FTH_ROWS_FIXED};
    t->dtype = class == FTH_REAL ? p->dev->real : p->dev->full;
    p->arena_bytes += whole_pages(rows * width * (int64_t)fth_dtype_size(t->dtype));
    return FTH_OK;
}

/* Places a tensor and fills it with numbers from 0.5 to 2. Floats have all of their bits: tiles of
 * zeros, as the lower parts of others would be, are multiplied faster. */
static void place_value(product *p, fth_val v) {
    fth_tensor *t = &p->tensor[v];
    const int64_t n = t->rows * t->width;
    t->data = p->arena + p->used;
    p->used += whole_pages(n * (int64_t)fth_dtype_size(t->dtype));
    fth_rng r;
    fth_rng_init(&r, 1, (uint64_t)v);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = 0x3f000000u + (uint32_t)fth_rng_below(&r, 1 << 24);
        if (t->dtype == FTH_F32)
            memcpy((float *)t->data + i, &bits, sizeof bits);
        else
            ((uint16_t *)t->data)[i] = (uint16_t)(bits >> 16);
    }
}

static fth_err make_op(product *p, fth_kind kind, const fth_val *in, int n_in, const fth_val *out,
                       int n_out) {
    fth_op *op = fth_graph_op(&p->graph, kind, n_in, n_out);
    if (!op) return p->graph.err;
    memcpy(op->in, in, sizeof *in * (size_t)n_in);
    memcpy(op->out, out, sizeof *out * (size_t)n_out);
    const int64_t none[FTH_N_EXTENTS] = {0};
    const int64_t bytes = p->dev->backend->scratch[kind](p->dev, &p->graph, op, none);
    if (bytes > p->ex.scratch_bytes) p->ex.scratch_bytes = bytes;
    return FTH_OK;
}

static fth_err make_product(product *p, const fth_product_shape *s) {
    fth_graph_init(&p->graph);
    const int64_t m = s->rows, k = s->k, n = s->n;
    void *arena;
    FTH_TRY(make_value(p, FTH_IN_ARENA, m, k, FTH_REAL));
    FTH_TRY(make_value(p, FTH_IN_PARAM, n, k, FTH_REAL));
    FTH_TRY(make_value(p, FTH_IN_PARAM, 1, n, FTH_FULL));
    FTH_TRY(make_value(p, FTH_IN_ARENA, m, n, FTH_REAL));
    FTH_TRY(make_value(p, FTH_IN_ARENA, m, n, FTH_REAL));
    FTH_TRY(make_value(p, FTH_IN_ARENA, m, k, FTH_REAL));
    FTH_TRY(make_value(p, FTH_IN_GRAD, n, k, FTH_FULL));
    FTH_TRY(make_value(p, FTH_IN_GRAD, 1, n, FTH_FULL));
    p->ex = (fth_exec){.device = p->dev, .graph = &p->graph, .tensor = p->tensor};
    FTH_TRY(make_op(p, FTH_KIND_linear, (fth_val[]){X, W, B}, 3, (fth_val[]){Y, 0}, 2));
    FTH_TRY(make_op(p, FTH_KIND_linear_dx, (fth_val[]){DY, W, 0, 0}, 4, (fth_val[]){DX}, 1));
    FTH_TRY(make_op(p, FTH_KIND_linear_dw, (fth_val[]){DY, X}, 2, (fth_val[]){DW, DB}, 2));
    FTH_TRY(p->dev->backend->alloc(p->dev, p->arena_bytes + p->ex.scratch_bytes, &arena));
    p->arena = arena;
    for (fth_val v = 1; v < N_VALUES; v++) place_value(p, v);
    p->ex.scratch = p->arena + p->used;
    FTH_TRY(p->dev->backend->prepare(&p->ex));
    return are_few(m) && !p->ex.own ? fth_cpu_pack_whole(&p->ex, true) : FTH_OK;
}

static void free_product(product *p) {
    if (p->ex.own) p->dev->backend->unprepare(&p->ex);
    if (p->arena) p->dev->backend->release(p->dev, p->arena);
    fth_graph_fini(&p->graph);
}

/* ---- measuring ---- */

/* Seconds; with one thread those that it had a core, so that other work on the machine does not
 * matter. */
static double now(const product *p) {
    return fth_seconds(p->dev->threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC);
}

/* One try of a product, as many runs as take long enough to be timed; keeps the best rate. */
static fth_err try_op(product *p, const fth_op *op, double operations, int64_t *runs,
                      double *rate) {
    const double wanted = 1e-3; /* seconds */
    for (double seconds = 0; seconds < wanted; *runs *= seconds < wanted ? 2 : 1) {
        const double start = now(p);
        for (int64_t i = 0; i < *runs; i++) FTH_TRY(p->dev->backend->kernel[op->kind](&p->ex, op));
        seconds = now(p) - start;
        if (operations * (double)*runs / seconds > *rate)
            *rate = operations * (double)*runs / seconds;
    }
    return FTH_OK;
}

/* The best of several tries, for each of the first n products. Tries are short and the products
 * take turns, so that on a machine with other work each has it alone at times. */
static fth_err time_ops(product *p, int n, double operations, double *rates) {
    enum { TRIES = 60 };
    const double most = 0.3 * n; /* seconds */
    const double begin = now(p);
    int64_t runs[FTH_N_PRODUCTS] = {1, 1, 1};
    for (int t = 0; t < TRIES && (t < 2 || now(p) - begin < most); t++)
        for (int i = 0; i < n; i++)
            FTH_TRY(try_op(p, &p->graph.op[i], operations, &runs[i], &rates[i]));
    return FTH_OK;
}

fth_err fth_product_rates(const char *isa, const char *numbers, int threads,
                          const fth_product_shape *s, double rates[FTH_N_PRODUCTS]) {
    product p = {0};
    const fth_precision precision =
        strcmp(numbers, "bf16") == 0 ? FTH_PRECISION_BF16 : FTH_PRECISION_FP32;
    const bool int8 = strcmp(numbers, "int8") == 0;
    memset(rates, 0, sizeof *rates * FTH_N_PRODUCTS);
    FTH_TRY(fth_cpu_open_isa(isa, precision, threads, &p.dev));
    fth_err err = int8 ? p.dev->backend->quantize(p.dev) : FTH_OK;
    if (err == FTH_OK) err = make_product(&p, s);
    const double operations = 2.0 * (double)s->rows * (double)s->k * (double)s->n;
    if (err == FTH_OK) err = time_ops(&p, int8 ? 1 : FTH_N_PRODUCTS, operations, rates);
    free_product(&p);
    p.dev->backend->close(p.dev);
    return err;
}

bool fth_product_path_present(const char *isa) {
    fth_cpu_choice choice;
    return fth_cpu_choose(isa, FTH_PRECISION_BF16, &choice) == FTH_OK;
}

bool fth_bf16_is_fastest(void) {
    fth_cpu_choice choice;
    return fth_cpu_choose(getenv("FATHOM_CPU_ISA"), FTH_PRECISION_BF16, &choice) == FTH_OK &&
           choice.pairs;
}
