/* program.c: resolves every value of a plan to an address once, so that a run is a walk over the
 * operations; more rows than planned make it plan again. */
#include "backend/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bf16.h"
#include "base/clock.h"
#include "graph/gauge.h"

struct fth_program {
    fth_exec exec;
    fth_graph graph;
    fth_plan plan;
    fth_tensor *tensor; /* [n_values] */
    void *arena;
    fth_program *lender;  /* whose arena this is; NULL: its own */
    int32_t n_borrowers;  /* programs that have this one's arena */
    bool borrows_scratch; /* of another program */
    void **owned;         /* [n_owned] states and constants of this program */
    int32_t n_owned;
    int64_t bytes;
    int32_t recomputed;
    bool profiling;
    double seconds[FTH_N_KINDS];
};

/* ---- making ---- */

static int64_t largest_scratch(const fth_device *dev, const fth_graph *g,
                               const int64_t capacity[FTH_N_EXTENTS]) {
    int64_t most = 0;
    for (int32_t i = 0; i < g->n_ops; i++) {
        fth_scratch need = dev->backend->scratch[g->op[i].kind];
        int64_t bytes = need ? need(dev, g, &g->op[i], capacity) : 0;
        if (bytes > most) most = bytes;
    }
    return most;
}

static fth_err own(fth_program *p, int64_t bytes, void **out) {
    void **more = realloc(p->owned, sizeof *more * (size_t)(p->n_owned + 1));
    if (!more) return fth_fail(FTH_NO_MEMORY, "no memory for a program");
    p->owned = more;
    FTH_TRY(p->exec.device->backend->alloc(p->exec.device, bytes, out));
    p->owned[p->n_owned++] = *out;
    p->bytes += bytes;
    return FTH_OK;
}

/* Puts the numbers of a constant into device memory, row by row. */
static fth_err upload_numbers(fth_device *dev, const fth_value *v, const fth_tensor *t) {
    const int64_t width = v->width, row_bytes = width * (int64_t)fth_dtype_size(t->dtype);
    double *row = malloc(sizeof *row * (size_t)(width + 1));
    if (!row) return fth_fail(FTH_NO_MEMORY, "no memory for a constant");
    fth_err err = FTH_OK;
    for (int64_t r = 0; r < v->rows && err == FTH_OK; r++) {
        float *floats = (float *)row;
        for (int64_t i = 0; i < width; i++) {
            const double x = v->constant(r, i, width);
            if (t->dtype == FTH_F64)
                row[i] = x;
            else
                floats[i] = (float)x;
        }
        err = dev->backend->upload(dev, (char *)t->data + r * row_bytes, row, row_bytes);
    }
    free(row);
    return err;
}

static fth_err resolve_owned(fth_program *p, const fth_value *v, fth_tensor *t) {
    int64_t n = v->rows * v->width;
    FTH_TRY(own(p, n * (int64_t)fth_dtype_size(t->dtype), &t->data));
    if (v->storage == FTH_IN_CONST) return upload_numbers(p->exec.device, v, t);
    return FTH_OK;
}

/* The address and type of one value. Views come after their bases. */
static fth_err resolve(fth_program *p, fth_val id, const fth_program_spec *spec) {
    const fth_device *dev = p->exec.device;
    const fth_value *v = &p->graph.value[id];
    fth_tensor *t = &p->tensor[id];
    *t = (fth_tensor){.ld = v->width,
                      .rows = v->extent == FTH_ROWS_FIXED ? v->rows : p->exec.capacity[v->extent],
                      .width = v->width,
                      .dtype = fth_dtype_of(dev, v->class),
                      .extent = v->extent};
    const fth_arenas *arenas = spec->arenas;
    size_t size = fth_dtype_size(t->dtype);
    if (v->base) {
        const fth_tensor *base = &p->tensor[v->base];
        t->ld = p->graph.value[v->base].width;
        t->dtype = base->dtype;
        t->data = (char *)base->data + (size_t)v->column * fth_dtype_size(t->dtype);
        return FTH_OK;
    }
    for (int32_t i = 0; i < spec->n_shared; i++)
        if (spec->shared[i].v == id) {
            t->data = spec->shared[i].data;
            return FTH_OK;
        }
    switch (v->storage) {
    case FTH_IN_ARENA: { /* the plan has been made; the question is for the analyser */
        const int64_t at = p->plan.offset ? p->plan.offset[id] : -1;
        if (at >= 0) t->data = (char *)p->arena + at;
        return FTH_OK;
    }
    case FTH_IN_PARAM:
        if (arenas->weights == arenas->master) t->dtype = dev->full;
        size = fth_dtype_size(t->dtype);
        t->data = (char *)(v->class == FTH_REAL ? arenas->weights : arenas->master) +
                  (size_t)v->offset * size;
        return FTH_OK;
    case FTH_IN_GRAD: t->data = (char *)arenas->grad + (size_t)v->offset * size; return FTH_OK;
    case FTH_IN_MOMENT1: t->data = (char *)arenas->m + (size_t)v->offset * size; return FTH_OK;
    case FTH_IN_MOMENT2: t->data = (char *)arenas->v + (size_t)v->offset * size; return FTH_OK;
    case FTH_IN_STATE:
    case FTH_IN_CONST: return resolve_owned(p, v, t);
    }
    return FTH_OK;
}

/* Bytes of states and constants. */
static int64_t owned_bytes(const fth_device *dev, const fth_graph *g) {
    int64_t bytes = 0;
    for (fth_val v = 1; v < g->n_values; v++) {
        const fth_value *x = &g->value[v];
        if ((x->storage == FTH_IN_STATE || x->storage == FTH_IN_CONST) && !x->base)
            bytes += x->rows * x->width * (int64_t)fth_dtype_size(fth_dtype_of(dev, x->class));
    }
    return bytes;
}

int64_t fth_program_bytes_beside(const fth_device *dev, const fth_graph *g,
                                 const int64_t capacity[FTH_N_EXTENTS]) {
    return largest_scratch(dev, g, capacity) + owned_bytes(dev, g);
}

static bool has_backward(const fth_graph *g) {
    for (int32_t i = g->n_ops - 1; i >= 0; i--)
        if (g->op[i].backward) return true;
    return false;
}

fth_plan_spec fth_program_plan_spec(const fth_device *dev, const int64_t capacity[FTH_N_EXTENTS]) {
    fth_plan_spec spec = {.real_size = fth_dtype_size(dev->real),
                          .full_size = fth_dtype_size(dev->full),
                          .recompute_norms = dev->backend->recompute_norms,
                          .lag = dev->backend->lag,
                          .joined = dev->backend->joined};
    memcpy(spec.capacity, capacity, sizeof spec.capacity);
    return spec;
}

static fth_err make_plan(fth_program *p, const fth_program_spec *spec) {
    fth_device *dev = p->exec.device;
    fth_plan_spec plan = fth_program_plan_spec(dev, spec->capacity);
    plan.recompute_norms &= has_backward(&p->graph);
    p->exec.scratch_bytes = largest_scratch(dev, &p->graph, spec->capacity);
    if (spec->budget <= 0 && !plan.recompute_norms)
        return fth_plan_make(&p->graph, &plan, &p->plan);
    int64_t left = INT64_MAX;
    if (spec->budget > 0) left = spec->budget - p->exec.scratch_bytes - owned_bytes(dev, &p->graph);
    if (spec->budget > 0 && spec->lender) {
        left = spec->lender->plan.bytes; /* what it has costs nothing */
        fth_gauge_in_line(&p->graph);    /* and suffices so */
    }
    return fth_plan_within(&p->graph, &plan, left, &p->plan, &p->recomputed);
}

static fth_err check_kernels(const fth_device *dev, const fth_graph *g) {
    for (int32_t i = 0; i < g->n_ops; i++)
        if (!dev->backend->kernel[g->op[i].kind])
            return fth_fail(FTH_FAILED, "device %s has no kernel for operation %s",
                            dev->backend->name, fth_kind_name(g->op[i].kind));
    return FTH_OK;
}

static fth_err prepare(fth_program *p) {
    const fth_backend *backend = p->exec.device->backend;
    return backend->prepare ? backend->prepare(&p->exec) : FTH_OK;
}

static void unprepare(fth_program *p) {
    const fth_backend *backend = p->exec.device->backend;
    if (p->exec.own && backend->unprepare) backend->unprepare(&p->exec);
}

/* Moves a program to an arena of so many bytes. What it keeps in the old one is lost. */
static fth_err enlarge_arena(fth_program *p, int64_t bytes) {
    fth_device *dev = p->exec.device;
    const char *old = p->arena;
    unprepare(p);
    dev->backend->release(dev, p->arena); /* first: there may be no room for both */
    p->arena = NULL;
    FTH_TRY(dev->backend->alloc(dev, bytes, &p->arena));
    for (fth_val v = 1; v < p->graph.n_values; v++)
        if (p->graph.value[v].storage == FTH_IN_ARENA && p->tensor[v].data)
            p->tensor[v].data = (char *)p->arena + ((const char *)p->tensor[v].data - old);
    p->bytes += bytes - p->plan.bytes;
    p->plan.bytes = bytes;
    return prepare(p);
}

/* The lender's arena, enlarged if need be; its own where others have borrowed that one already. */
static fth_err take_arena(fth_program *p, fth_program *lender) {
    fth_device *dev = p->exec.device;
    if (p->plan.bytes == 0) return FTH_OK;
    const bool suffices = lender && lender->plan.bytes >= p->plan.bytes;
    if (!suffices && !(lender && lender->arena && !lender->lender && lender->n_borrowers == 0)) {
        p->bytes += p->plan.bytes;
        return dev->backend->alloc(dev, p->plan.bytes, &p->arena);
    }
    if (!suffices) FTH_TRY(enlarge_arena(lender, p->plan.bytes));
    p->lender = lender;
    p->arena = lender->arena;
    lender->n_borrowers++;
    return FTH_OK;
}

/* Scratch: the lender's where it suffices, else its own. */
static fth_err take_memory(fth_program *p, fth_program *lender) {
    fth_device *dev = p->exec.device;
    FTH_TRY(take_arena(p, lender));
    if (lender && lender->exec.scratch_bytes >= p->exec.scratch_bytes) {
        p->borrows_scratch = true;
        p->exec.scratch = lender->exec.scratch;
    } else if (p->exec.scratch_bytes) {
        FTH_TRY(dev->backend->alloc(dev, p->exec.scratch_bytes, &p->exec.scratch));
        p->bytes += p->exec.scratch_bytes;
    }
    return FTH_OK;
}

static int32_t first_update(const fth_graph *g) {
    int32_t i = 0;
    while (i < g->n_ops && g->op[i].kind != FTH_KIND_update) i++;
    return i;
}

static fth_err build(fth_program *p, const fth_program_spec *spec) {
    fth_device *dev = p->exec.device;
    memcpy(p->exec.capacity, spec->capacity, sizeof p->exec.capacity);
    p->exec.frozen = spec->frozen;
    if (p->graph.err != FTH_OK) return p->graph.err;
    FTH_TRY(check_kernels(dev, &p->graph));
    FTH_TRY(make_plan(p, spec));
    FTH_TRY(take_memory(p, spec->lender));
    p->tensor = calloc((size_t)p->graph.n_values, sizeof *p->tensor);
    if (!p->tensor) return fth_fail(FTH_NO_MEMORY, "no memory for a program");
    for (fth_val v = 1; v < p->graph.n_values; v++) FTH_TRY(resolve(p, v, spec));
    p->exec.tensor = p->tensor;
    p->exec.graph = &p->graph;
    p->exec.first_update = first_update(&p->graph);
    return prepare(p);
}

fth_err fth_program_new(fth_device *dev, fth_graph *graph, const fth_program_spec *spec,
                        fth_program **out) {
    *out = NULL;
    fth_program *p = calloc(1, sizeof *p);
    if (!p) {
        fth_graph_fini(graph);
        return fth_fail(FTH_NO_MEMORY, "no memory for a program");
    }
    p->exec.device = dev;
    p->graph = *graph;
    memset(graph, 0, sizeof *graph);
    fth_err err = build(p, spec);
    if (err != FTH_OK) {
        fth_program_free(p);
        return err;
    }
    *out = p;
    return FTH_OK;
}

void fth_program_free(fth_program *p) {
    if (!p) return;
    fth_device *dev = p->exec.device;
    unprepare(p);
    for (int32_t i = 0; i < p->n_owned; i++) dev->backend->release(dev, p->owned[i]);
    free(p->owned);
    if (p->lender)
        p->lender->n_borrowers--;
    else if (p->arena)
        dev->backend->release(dev, p->arena);
    if (p->exec.scratch && !p->borrows_scratch) dev->backend->release(dev, p->exec.scratch);
    free(p->tensor);
    fth_plan_fini(&p->plan);
    fth_graph_fini(&p->graph);
    free(p);
}

/* ---- running ---- */

static fth_err load(fth_program *p, const fth_batch *batch, const fth_step *step) {
    static const char *const what[] = {
        "source tokens",   "target tokens", "sentences",    "source tokens with a target",
        "rows of numbers", "source pairs",  "target pairs", "cross pairs"};
    p->exec.batch = *batch;
    p->exec.step = *step;
    fth_batch_rows(batch, p->exec.rows);
    for (int e = 0; e < FTH_ROWS_FIXED; e++)
        if ((e <= FTH_ROWS_TGT || p->exec.capacity[e] > 0) && p->exec.rows[e] > p->exec.capacity[e])
            return fth_fail(FTH_FAILED, "a batch has %lld %s, the plan holds %lld",
                            (long long)p->exec.rows[e], what[e], (long long)p->exec.capacity[e]);
    return FTH_OK;
}

static fth_err run_one(fth_program *p, const fth_op *op) {
    fth_err err = p->exec.device->backend->kernel[op->kind](&p->exec, op);
    if (err == FTH_OK) return FTH_OK;
    const char *stack = op->stack == FTH_ENCODER ? "encoder" : "decoder";
    if (op->layer < 0) return fth_fail_in(err, "operation %s", fth_kind_name(op->kind));
    return fth_fail_in(err, "operation %s of %s layer %d", fth_kind_name(op->kind), stack,
                       op->layer + 1);
}

fth_err fth_stopped(void) {
    return fth_fail(FTH_STOPPED, "a signal came while a program was run");
}

fth_err fth_program_run(fth_program *p, const fth_batch *batch, const fth_step *step) {
    FTH_TRY(load(p, batch, step));
    if (p->exec.device->backend->run && !p->profiling)
        return p->exec.device->backend->run(&p->exec);
    const volatile sig_atomic_t *stop = p->exec.device->stop;
    for (int32_t i = 0; i < p->graph.n_ops; i++) {
        double start = p->profiling ? fth_now() : 0;
        if (stop && *stop && i <= p->exec.first_update) return fth_stopped();
        FTH_TRY(run_one(p, &p->graph.op[i]));
        if (p->profiling) p->seconds[p->graph.op[i].kind] += fth_now() - start;
    }
    return FTH_OK;
}

fth_err fth_program_load(fth_program *p, const fth_batch *batch, const fth_step *step) {
    return load(p, batch, step);
}

/* The backend sees a graph of these operations. */
fth_err fth_program_run_part(fth_program *p, int32_t begin, int32_t end) {
    fth_graph part = p->graph;
    const fth_backend *backend = p->exec.device->backend;
    fth_err err = FTH_OK;
    part.op += begin;
    part.n_ops = end - begin;
    p->exec.graph = &part;
    if (backend->run)
        err = backend->run(&p->exec);
    else
        for (int32_t i = begin; i < end && err == FTH_OK; i++) err = run_one(p, &p->graph.op[i]);
    p->exec.graph = &p->graph;
    return err;
}

int64_t fth_program_rows(const fth_program *p, fth_val v) {
    return fth_rows_now(&p->exec, &p->tensor[v]);
}

static double element(const char *data, fth_dtype dtype, int64_t i) {
    double d;
    float f;
    uint16_t half;
    switch (dtype) {
    case FTH_F64: memcpy(&d, data + i * 8, sizeof d); return d;
    case FTH_F32: memcpy(&f, data + i * 4, sizeof f); return f;
    case FTH_BF16: memcpy(&half, data + i * 2, sizeof half); return fth_float_of_bf16(half);
    case FTH_U8: return ((const unsigned char *)data)[i];
    }
    return NAN;
}

/* A value without gaps goes to the end of `out` as it is and is widened from there, front to back:
 * what is read of every update allocates nothing. */
static fth_err read_whole(fth_program *p, const fth_tensor *t, int64_t n, double *out) {
    const int64_t size = (int64_t)fth_dtype_size(t->dtype);
    char *raw = (char *)out + n * ((int64_t)sizeof *out - size);
    FTH_TRY(p->exec.device->backend->download(p->exec.device, raw, t->data, n * size));
    for (int64_t i = 0; i < n; i++) out[i] = element(raw, t->dtype, i);
    return FTH_OK;
}

fth_err fth_program_read(fth_program *p, fth_val v, double *out) {
    const fth_tensor *t = &p->tensor[v];
    int64_t rows = fth_program_rows(p, v);
    if (rows == 0) return FTH_OK;
    if (t->ld == t->width) return read_whole(p, t, rows * t->width, out);
    int64_t bytes = ((rows - 1) * t->ld + t->width) * (int64_t)fth_dtype_size(t->dtype);
    char *raw = malloc((size_t)bytes);
    if (!raw) return fth_fail(FTH_NO_MEMORY, "no memory for %lld bytes", (long long)bytes);
    fth_err err = p->exec.device->backend->download(p->exec.device, raw, t->data, bytes);
    for (int64_t r = 0; r < rows && err == FTH_OK; r++)
        for (int64_t c = 0; c < t->width; c++)
            out[r * t->width + c] = element(raw, t->dtype, r * t->ld + c);
    free(raw);
    return err;
}

fth_err fth_program_read_f32(fth_program *p, fth_val v, float *out) {
    const fth_tensor *t = &p->tensor[v];
    int64_t n = fth_program_rows(p, v) * t->width;
    fth_device *dev = p->exec.device;
    if (t->dtype == FTH_F32 && t->ld == t->width)
        return dev->backend->download(dev, out, t->data, n * 4);
    if (t->dtype == FTH_BF16 && t->ld == t->width) { /* as in read_whole */
        char *raw = (char *)out + n * 2;
        FTH_TRY(dev->backend->download(dev, raw, t->data, n * 2));
        for (int64_t i = 0; i < n; i++) out[i] = (float)element(raw, FTH_BF16, i);
        return FTH_OK;
    }
    double *wide = malloc(sizeof *wide * (size_t)(n + 1));
    if (!wide) return fth_fail(FTH_NO_MEMORY, "no memory for %lld numbers", (long long)n);
    fth_err err = fth_program_read(p, v, wide);
    for (int64_t i = 0; i < n && err == FTH_OK; i++) out[i] = (float)wide[i];
    free(wide);
    return err;
}

void *fth_program_address(const fth_program *p, fth_val v) {
    return p->tensor[v].data;
}

const fth_graph *fth_program_graph(const fth_program *p) {
    return &p->graph;
}

int64_t fth_program_bytes(const fth_program *p) {
    return p->bytes + p->exec.own_bytes;
}

int64_t fth_program_arena_bytes(const fth_program *p) {
    return p->plan.bytes;
}

int32_t fth_program_recomputed(const fth_program *p) {
    return p->recomputed;
}

void fth_program_profile(fth_program *p, bool on) {
    p->profiling = on;
    memset(p->seconds, 0, sizeof p->seconds);
}

const double *fth_program_times(const fth_program *p) {
    return p->seconds;
}

/* ---- operation by operation ---- */

fth_err fth_program_walk(fth_program *p, const fth_batch *batch, const fth_step *step,
                         fth_program_visit *before, fth_program_visit *after, void *context) {
    FTH_TRY(load(p, batch, step));
    for (int32_t i = 0; i < p->graph.n_ops; i++) {
        if (before) FTH_TRY(before(context, &p->graph.op[i]));
        FTH_TRY(run_one(p, &p->graph.op[i]));
        if (after) FTH_TRY(after(context, &p->graph.op[i]));
    }
    return FTH_OK;
}

typedef struct search_state {
    fth_program *program;
    int32_t found;
} search_state;

static fth_err has_nonfinite(fth_program *p, fth_val v, bool *bad) {
    int64_t n = fth_program_rows(p, v) * p->tensor[v].width;
    *bad = false;
    if (n == 0 || !p->tensor[v].data) return FTH_OK;
    double *numbers = calloc((size_t)n, sizeof *numbers);
    if (!numbers) return fth_fail(FTH_NO_MEMORY, "no memory for %lld numbers", (long long)n);
    fth_err err = fth_program_read(p, v, numbers);
    for (int64_t i = 0; i < n && err == FTH_OK && !*bad; i++) *bad = !isfinite(numbers[i]);
    free(numbers);
    return err;
}

static fth_err look_at_outputs(void *context, const fth_op *op) {
    search_state *s = context;
    for (int k = 0; s->found < 0 && k < op->n_out; k++) {
        bool bad = false;
        if (op->out[k]) FTH_TRY(has_nonfinite(s->program, op->out[k], &bad));
        if (bad) s->found = (int32_t)(op - s->program->graph.op);
    }
    return FTH_OK;
}

fth_err fth_program_find_nonfinite(fth_program *p, const fth_batch *batch, const fth_step *step,
                                   int32_t *op) {
    search_state s = {.program = p, .found = -1};
    fth_err err = fth_program_walk(p, batch, step, NULL, look_at_outputs, &s);
    *op = s.found;
    return err;
}
