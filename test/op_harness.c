/* op_harness.c: runs one operation on a backend and on `ref`, and compares: values, gradients by
 * signed finite differences, and what must stay untouched. */
#include "op_harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/ref/ref.h"
#include "close.h"

/* ---- trials ---- */

static fth_val owner_of(const fth_graph *g, fth_val v) {
    return g->value[v].base ? g->value[v].base : v;
}

static int64_t capacity_of(const fth_trial *t, fth_val v) {
    const fth_value *value = &t->graph.value[v];
    return value->extent == FTH_ROWS_FIXED ? value->rows : t->capacity[value->extent];
}

static int64_t rows_of(const fth_trial *t, fth_val v) {
    const fth_value *value = &t->graph.value[v];
    return value->extent == FTH_ROWS_FIXED ? value->rows : t->rows[value->extent];
}

/* Numbers of the rows of the batch. */
static int64_t numbers_of(const fth_trial *t, fth_val v) {
    return rows_of(t, v) * t->graph.value[v].width;
}

static void *trial_alloc(fth_trial *t, size_t size) {
    void *data = fth_arena_alloc(&t->graph.arena, size ? size : 1);
    if (!data && t->graph.err == FTH_OK) t->graph.err = fth_fail(FTH_NO_MEMORY, "no memory");
    return data;
}

/* A value with numbers of the normal distribution with the given deviation; 0: zeros. */
static fth_val add_value(fth_trial *t, fth_value value, double deviation) {
    value.producer = -1;
    fth_val v = fth_graph_value(&t->graph, value);
    if (v >= FTH_TRIAL_VALUES)
        t->graph.err =
            fth_fail(FTH_FAILED, "%s: more than %d values", t->from->name, FTH_TRIAL_VALUES);
    if (t->graph.err != FTH_OK) return 0;
    int64_t n = capacity_of(t, v) * value.width;
    t->host[v] = trial_alloc(t, (size_t)n * sizeof(double));
    if (!t->host[v]) return 0;
    for (int64_t i = 0; i < n && deviation > 0; i++)
        t->host[v][i] = deviation * fth_rng_normal(&t->rng);
    return v;
}

fth_val fth_trial_input(fth_trial *t, fth_extent extent, int width, fth_class class) {
    return add_value(t, (fth_value){.extent = extent, .width = width, .class = class}, 1);
}

fth_val fth_trial_fixed(fth_trial *t, fth_storage storage, int64_t rows, int width,
                        fth_class class) {
    fth_value value = {
        .storage = storage, .extent = FTH_ROWS_FIXED, .rows = rows, .width = width, .class = class};
    return add_value(t, value, rows > 1 ? 1 / sqrt(width) : 1);
}

fth_val fth_trial_param_grad(fth_trial *t, fth_val param) {
    if (!param) return 0;
    fth_value value = t->graph.value[param];
    value.storage = FTH_IN_GRAD;
    value.class = FTH_FULL;
    fth_val grad = add_value(t, value, 1);
    fth_trial_pair(t, param, grad);
    return grad;
}

fth_val fth_trial_output(fth_trial *t, fth_op *op, int index, fth_val like, int width,
                         fth_class class) {
    const fth_value *l = &t->graph.value[like];
    fth_value value = {.extent = l->extent, .rows = l->rows, .width = width, .class = class};
    fth_val v = add_value(t, value, 0);
    if (v && op) fth_graph_output(&t->graph, op, index, v);
    return v;
}

fth_val fth_trial_upstream(fth_trial *t, fth_val y) {
    fth_value value = t->graph.value[y];
    fth_val weight = add_value(t, value, 1);
    t->loss[t->n_loss].value = y;
    t->loss[t->n_loss++].weight = weight;
    return weight;
}

void fth_trial_pair(fth_trial *t, fth_val value, fth_val grad) {
    t->pair[t->n_pairs].value = value;
    t->pair[t->n_pairs++].grad = grad;
}

void fth_trial_fini(fth_trial *t) {
    fth_graph_fini(&t->graph);
    memset(t, 0, sizeof *t);
}

/* ---- running one operation on a device ---- */

/* In rows that nobody may read; bf16 can hold it. Bytes hold neither that nor NaN. */
enum { GARBAGE = 768, GARBAGE_BITS = 0xa5 };

/* One operation on its way over a device. */
typedef struct run {
    fth_device *dev;
    const fth_trial *t;
    const fth_op *op;
    fth_tail tail;
    void *place[FTH_TRIAL_VALUES];  /* device memory, by value that owns it */
    bool written[FTH_TRIAL_VALUES]; /* arena outputs: poisoned before */
    fth_tensor tensor[FTH_TRIAL_VALUES];
    fth_exec exec;
} run;

static fth_val place_owner(const run *r, fth_val v) {
    fth_val owner = owner_of(&r->t->graph, v);
    return r->t->shares[owner] ? r->t->shares[owner] : owner;
}

/* What stands in an owner's place before the run, in the device's dtype. */
static void fill(const run *r, fth_val v, fth_dtype type, void *bytes) {
    const int64_t width = r->t->graph.value[v].width;
    const int64_t rows = rows_of(r->t, v), capacity = capacity_of(r->t, v);
    const double beyond = r->tail == FTH_TAIL_KEPT ? GARBAGE : 0;
    for (int64_t i = 0; i < capacity * width; i++) {
        double x = i < rows * width ? r->t->host[v][i] : beyond;
        if (r->written[v]) x = (double)NAN;
        if (type == FTH_U8 && !(x >= 0 && x < 256)) x = GARBAGE_BITS;
        fth_ref_store(type, bytes, i, x);
    }
}

/* Gives an operand's owner its place and the operand its tensor. */
static fth_err bind(run *r, fth_val v) {
    if (!v) return FTH_OK;
    const fth_backend *backend = r->dev->backend;
    const fth_val owner = place_owner(r, v);
    const fth_value *value = &r->t->graph.value[v], *base = &r->t->graph.value[owner];
    const fth_dtype type = fth_dtype_of(r->dev, base->class);
    const int64_t bytes = capacity_of(r->t, owner) * base->width * (int64_t)fth_dtype_size(type);
    if (!r->place[owner]) {
        FTH_TRY(backend->alloc(r->dev, bytes, &r->place[owner]));
        void *from = malloc((size_t)bytes + 1);
        if (!from) return fth_fail(FTH_NO_MEMORY, "no memory");
        fill(r, owner, type, from);
        fth_err err = backend->upload(r->dev, r->place[owner], from, bytes);
        free(from);
        if (err != FTH_OK) return err;
    }
    r->tensor[v] =
        (fth_tensor){.data = (char *)r->place[owner] + (size_t)value->column * fth_dtype_size(type),
                     .ld = base->width,
                     .rows = capacity_of(r->t, v),
                     .width = value->width,
                     .dtype = type,
                     .extent = value->extent};
    return FTH_OK;
}

static void note_written(run *r, const fth_op *op) {
    for (int k = 0; k < op->n_out; k++) {
        fth_val v = op->out[k];
        if (!v || r->t->graph.value[v].storage != FTH_IN_ARENA) continue;
        r->written[owner_of(&r->t->graph, v)] = !r->t->shares[owner_of(&r->t->graph, v)];
    }
}

static fth_err bind_all(run *r) {
    const fth_op *op = r->op;
    for (int k = 0; k < op->n_in; k++) FTH_TRY(bind(r, op->in[k]));
    for (int k = 0; k < op->n_out; k++) FTH_TRY(bind(r, op->out[k]));
    return FTH_OK;
}

/* Through the backend's own run where it has one, else by calling the kernel. */
static fth_err launch(run *r, int runs) {
    const fth_backend *backend = r->dev->backend;
    const fth_kind kind = r->op->kind;
    if (!backend->kernel[kind])
        return fth_fail(FTH_FAILED, "backend %s has no kernel for %s", backend->name,
                        fth_kind_name(kind));
    fth_err err = backend->prepare ? backend->prepare(&r->exec) : FTH_OK;
    for (int i = 0; i < runs && err == FTH_OK; i++)
        err = backend->run ? backend->run(&r->exec) : backend->kernel[kind](&r->exec, r->op);
    if (backend->unprepare) backend->unprepare(&r->exec);
    return err;
}

/* The numbers of a value's place after the run. */
static fth_err fetch(run *r, fth_val v, fth_arena *arena, double **out) {
    const fth_value *value = &r->t->graph.value[v];
    const fth_dtype type = fth_dtype_of(r->dev, value->class);
    const int64_t n = capacity_of(r->t, v) * value->width;
    double *numbers = fth_arena_alloc(arena, (size_t)n * sizeof(double) + 1);
    void *bytes = fth_arena_alloc(arena, (size_t)n * fth_dtype_size(type) + 1);
    if (!numbers || !bytes) return fth_fail(FTH_NO_MEMORY, "no memory");
    FTH_TRY(r->dev->backend->download(r->dev, bytes, r->place[place_owner(r, v)],
                                      n * (int64_t)fth_dtype_size(type)));
    for (int64_t i = 0; i < n; i++) numbers[i] = fth_ref_load(type, bytes, i);
    *out = numbers;
    return FTH_OK;
}

static fth_err fetch_all(run *r, fth_arena *arena, double **result) {
    for (int k = 0; k < r->op->n_in + r->op->n_out; k++) {
        fth_val v = k < r->op->n_in ? r->op->in[k] : r->op->out[k - r->op->n_in];
        fth_val owner = owner_of(&r->t->graph, v);
        if (v && !result[owner]) FTH_TRY(fetch(r, owner, arena, &result[owner]));
    }
    return FTH_OK;
}

fth_err fth_spare_fit(fth_device *dev, int64_t bytes, fth_spare *s) {
    if (s->data && s->bytes == bytes) return FTH_OK;
    fth_spare_fini(dev, s);
    s->bytes = bytes;
    return dev->backend->alloc(dev, bytes, &s->data);
}

void fth_spare_fini(fth_device *dev, fth_spare *s) {
    if (s->data) dev->backend->release(dev, s->data);
    *s = (fth_spare){0};
}

static fth_err run_op(fth_device *dev, const fth_trial *t, int32_t index, int runs, fth_tail tail,
                      fth_spare *spare, fth_arena *arena, double **result) {
    const fth_backend *backend = dev->backend;
    run *r = calloc(1, sizeof *r);
    if (!r) return fth_fail(FTH_NO_MEMORY, "no memory");
    fth_graph one = t->graph; /* the same values, this operation only */
    one.op = &t->graph.op[index];
    one.n_ops = 1;
    *r = (run){.dev = dev, .t = t, .op = one.op, .tail = tail};
    r->exec = (fth_exec){
        .device = dev, .graph = &one, .tensor = r->tensor, .batch = t->batch, .step = t->step};
    memcpy(r->exec.rows, t->rows, sizeof t->rows);
    memcpy(r->exec.capacity, t->capacity, sizeof t->capacity);
    note_written(r, r->op);
    fth_err err = bind_all(r);
    if (err != FTH_OK) goto done;
    fth_scratch scratch = backend->scratch[r->op->kind];
    if (scratch) r->exec.scratch_bytes = scratch(dev, &one, r->op, t->capacity);
    FTH_TRY_OR(err, fth_spare_fit(dev, r->exec.scratch_bytes, spare), done);
    r->exec.scratch = spare->data;
    FTH_TRY_OR(err, launch(r, runs), done);
    err = fetch_all(r, arena, result);
done:
    for (int v = 0; v < FTH_TRIAL_VALUES; v++)
        if (r->place[v]) backend->release(dev, r->place[v]);
    free(r);
    return err;
}

fth_err fth_harness_run(fth_device *dev, const fth_trial *t, int32_t index, int runs, fth_tail tail,
                        fth_arena *arena, double **result) {
    fth_spare spare = {0};
    fth_err err = run_op(dev, t, index, runs, tail, &spare, arena, result);
    fth_spare_fini(dev, &spare);
    return err;
}

/* Binds all operations of a trial and finds the scratch that they need. */
static fth_err bind_trial(run *r, fth_spare *spare) {
    const fth_graph *g = &r->t->graph;
    for (int32_t i = 0; i < g->n_ops; i++) note_written(r, &g->op[i]);
    int64_t most = 0;
    for (int32_t i = 0; i < g->n_ops; i++) {
        r->op = &g->op[i];
        FTH_TRY(bind_all(r));
        const fth_scratch scratch = r->dev->backend->scratch[r->op->kind];
        const int64_t bytes = scratch ? scratch(r->dev, g, r->op, r->t->capacity) : 0;
        if (bytes > most) most = bytes;
    }
    FTH_TRY(fth_spare_fit(r->dev, most, spare));
    r->exec.scratch = spare->data;
    r->exec.scratch_bytes = most;
    return FTH_OK;
}

fth_err fth_harness_run_together(fth_device *dev, const fth_trial *t, int runs, fth_arena *arena,
                                 double **result) {
    fth_spare spare = {0};
    run *r = calloc(1, sizeof *r);
    if (!r) return fth_fail(FTH_NO_MEMORY, "no memory");
    *r = (run){.dev = dev, .t = t, .tail = FTH_TAIL_FREE};
    r->exec = (fth_exec){
        .device = dev, .graph = &t->graph, .tensor = r->tensor, .batch = t->batch, .step = t->step};
    memcpy(r->exec.rows, t->rows, sizeof t->rows);
    memcpy(r->exec.capacity, t->capacity, sizeof t->capacity);
    fth_err err = bind_trial(r, &spare);
    if (err == FTH_OK) err = launch(r, runs);
    for (int32_t i = 0; i < t->graph.n_ops && err == FTH_OK; i++) {
        r->op = &t->graph.op[i];
        err = fetch_all(r, arena, result);
    }
    for (int v = 0; v < FTH_TRIAL_VALUES; v++)
        if (r->place[v]) dev->backend->release(dev, r->place[v]);
    fth_spare_fini(dev, &spare);
    free(r);
    return err;
}

/* Puts what an operation wrote into the trial's numbers: outputs, and caches among the inputs. */
static void take_over(fth_trial *t, const fth_op *op, double *const *result) {
    for (int k = 0; k < op->n_in + op->n_out; k++) {
        const bool in = k < op->n_in;
        const fth_val v = owner_of(&t->graph, in ? op->in[k] : op->out[k - op->n_in]);
        if (!v || (in && t->graph.value[v].storage != FTH_IN_STATE)) continue;
        memcpy(t->host[v], result[v], (size_t)numbers_of(t, v) * sizeof(double));
    }
}

/* Runs the operations in order, only the forward ones where asked. */
static fth_err run_ops(fth_device *dev, fth_trial *t, bool forward_only) {
    for (int32_t i = 0; i < t->graph.n_ops; i++) {
        const fth_op *op = &t->graph.op[i];
        if (forward_only && op->backward) continue;
        fth_arena arena;
        fth_arena_init(&arena);
        double *result[FTH_TRIAL_VALUES] = {0};
        fth_err err = fth_harness_run(dev, t, i, 1, FTH_TAIL_KEPT, &arena, result);
        if (err == FTH_OK) take_over(t, op, result);
        fth_arena_fini(&arena);
        if (err != FTH_OK) return err;
    }
    return FTH_OK;
}

fth_err fth_harness_run_all(fth_device *dev, fth_trial *t) {
    return run_ops(dev, t, false);
}

/* ---- comparison ---- */

void fth_trial_round(fth_trial *t, const fth_device *dev) {
    for (fth_val v = 1; v < t->graph.n_values; v++) {
        if (!t->host[v]) continue;
        const fth_dtype type = fth_dtype_of(dev, t->graph.value[v].class);
        const int64_t n = capacity_of(t, v) * t->graph.value[v].width;
        for (int64_t i = 0; i < n; i++) {
            double held;
            fth_ref_store(type, &held, 0, t->host[v][i]);
            t->host[v][i] = fth_ref_load(type, &held, 0);
        }
    }
}

/* What errors of a value are measured against besides its numbers of ref, whose sums may cancel, as
 * a part of the trial's size. The gradients of queries and keys are 0 where there is one key: a
 * device that keeps the output of attention rounded finds what the rounding leaves of them. */
static double least_size(const fth_trial *t, double largest) {
    const bool one_key = t->from->shape->src[0] == 1 && strncmp(t->from->name, "attention", 9) == 0;
    return (one_key && largest < 1e-9 * t->size ? 0.1 : 1e-3) * t->size;
}

/* Numbers a of the tested device against b of ref. */
static fth_err check_value(const fth_trial *t, fth_val v, const double *a, const double *b,
                           double tolerance) {
    const int64_t n = numbers_of(t, v);
    double difference = 0, norm = 0, largest = 0, worst = 0;
    if (t->graph.value[v].class == FTH_BITS) tolerance = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isinf(b[i]) && a[i] == b[i]) continue;
        double d = isinf(b[i]) ? (double)NAN : fabs(a[i] - b[i]);
        difference += d * d;
        norm += b[i] * b[i];
        largest = fmax(largest, fabs(b[i]));
        if (d > worst || d != d) worst = d, at = i;
        if (d != d) break;
    }
    difference = sqrt(difference);
    norm = sqrt(norm);
    const double least = least_size(t, largest);
    if (difference <= tolerance * (norm + least * sqrt((double)n)) &&
        worst <= 10 * tolerance * (largest + least))
        return FTH_OK;
    const int width = t->graph.value[v].width;
    return fth_fail(FTH_FAILED,
                    "||a - b|| = %.3g, ||b|| = %.3g, tolerance %.1g; worst at row %lld of %lld, "
                    "column %lld of %d: %.9g, ref has %.9g",
                    difference, norm, tolerance, (long long)(at / width), (long long)rows_of(t, v),
                    (long long)(at % width), width, a[at], b[at]);
}

/* Rows past the batch: poison in outputs, garbage in inputs, both as they were. */
static fth_err check_tail(const fth_trial *t, fth_val v, const double *a, const double *before) {
    const int64_t width = t->graph.value[v].width;
    for (int64_t i = rows_of(t, v) * width; i < capacity_of(t, v) * width; i++) {
        bool same = a[i] == before[i] || (isnan(a[i]) && isnan(before[i]));
        if (!same)
            return fth_fail(FTH_FAILED, "row %lld, past the %lld of the batch, was written",
                            (long long)(i / width), (long long)rows_of(t, v));
    }
    return FTH_OK;
}

/* Whether v is only there to be overwritten by an output that shares its place. */
static bool is_shared_input(const fth_trial *t, fth_val v) {
    for (fth_val k = 0; k < t->graph.n_values; k++)
        if (t->shares[k] == v) return true;
    return false;
}

/* Devices that are compared with ref, and the one at hand. */
typedef struct others {
    fth_device *const *dev; /* [n] */
    fth_spare *spare;       /* [n] */
    int n, at;
    double tolerance;
    fth_tail tail;
} others;

static fth_err check_operands(const fth_trial *t, const fth_op *op, double *const *a,
                              double *const *again, double *const *b, const others *o) {
    const bool has_bits = o->dev[o->at]->backend->keep_bits;
    for (int k = 0; k < op->n_in + op->n_out; k++) {
        const bool in = k < op->n_in;
        const fth_val v = owner_of(&t->graph, in ? op->in[k] : op->out[k - op->n_in]);
        if (!v || (in && is_shared_input(t, v))) continue;
        if (t->graph.value[v].class == FTH_BITS && !has_bits) continue;
        const size_t n = (size_t)numbers_of(t, v);
        fth_err err = check_value(t, v, a[v], b[v], o->tolerance);
        if (err == FTH_OK && o->tail == FTH_TAIL_KEPT) err = check_tail(t, v, a[v], b[v]);
        if (err == FTH_OK && memcmp(a[v], again[v], n * sizeof(double)) != 0)
            err = fth_fail(FTH_FAILED, "run again it has other bits");
        if (err != FTH_OK)
            return fth_fail_in(err, "%s: %s %s %d", t->from->name, fth_kind_name(op->kind),
                               in ? "input" : "output", in ? k : k - op->n_in);
    }
    return FTH_OK;
}

static bool adds_to_gradients(const fth_trial *t, const fth_op *op) {
    for (int k = 0; k < op->n_out; k++)
        if (op->out[k] && t->graph.value[op->out[k]].storage == FTH_IN_GRAD) return true;
    return false;
}

/* Sanitizers see in a second run what they saw in the first: the same bits again, and sums that
 * grow twice, are left to the build that they slow down less. */
#if defined(__SANITIZE_ADDRESS__)
enum { SECOND_RUNS = false };
#else
enum { SECOND_RUNS = true };
#endif

/* Operation i, run `runs` times, on ref and on the others; the trial's numbers become ref's. */
static fth_err compare_op(fth_device *ref, others *o, fth_trial *t, int32_t i, int runs) {
    const fth_op *op = &t->graph.op[i];
    double *b[FTH_TRIAL_VALUES] = {0};
    fth_arena arena;
    fth_arena_init(&arena);
    fth_err err = fth_harness_run(ref, t, i, runs, o->tail, &arena, b);
    for (o->at = 0; err == FTH_OK && o->at < o->n; o->at++) {
        fth_device *dev = o->dev[o->at];
        fth_spare *spare = &o->spare[o->at];
        double *a[FTH_TRIAL_VALUES] = {0}, *again[FTH_TRIAL_VALUES] = {0};
        FTH_TRY_OR(err, run_op(dev, t, i, runs, o->tail, spare, &arena, a), done);
        if (SECOND_RUNS)
            FTH_TRY_OR(err, run_op(dev, t, i, runs, o->tail, spare, &arena, again), done);
        FTH_TRY_OR(err, check_operands(t, op, a, SECOND_RUNS ? again : a, b, o), done);
    }
    if (err == FTH_OK && runs == 1) {
        take_over(t, op, b);
        fth_trial_round(t, o->dev[0]);
    }
done:
    fth_arena_fini(&arena);
    return err;
}

fth_err fth_harness_compare_all(fth_device *ref, fth_device *const *dev, int n,
                                const fth_op_case *c, double tolerance, fth_tail tail, int *at) {
    others o = {.dev = dev, .n = n, .tolerance = tolerance, .tail = tail};
    o.spare = calloc((size_t)n, sizeof *o.spare);
    fth_trial *t = calloc(1, sizeof *t);
    fth_err err = o.spare && t ? fth_trial_init(t, c) : fth_fail(FTH_NO_MEMORY, "no memory");
    if (err == FTH_OK) fth_trial_round(t, dev[0]);
    for (int32_t i = 0; err == FTH_OK && i < t->graph.n_ops; i++) {
        if (SECOND_RUNS && adds_to_gradients(t, &t->graph.op[i]))
            FTH_TRY_OR(err, compare_op(ref, &o, t, i, 2), done);
        err = compare_op(ref, &o, t, i, 1);
    }
done:
    *at = o.at < n ? o.at : 0;
    for (int i = 0; i < n && o.spare; i++) fth_spare_fini(dev[i], &o.spare[i]);
    free(o.spare);
    if (t) fth_trial_fini(t);
    free(t);
    return err;
}

fth_err fth_harness_compare(fth_device *ref, fth_device *dev, const fth_op_case *c,
                            double tolerance, fth_tail tail) {
    int at;
    return fth_harness_compare_all(ref, &dev, 1, c, tolerance, tail, &at);
}

/* ---- finite differences ---- */

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* Runs the forward operations and gives the loss. */
static fth_err evaluate(fth_device *dev, fth_trial *t, double *loss) {
    FTH_TRY(run_ops(dev, t, true));
    *loss = 0;
    for (int i = 0; i < t->n_loss; i++) {
        fth_val v = t->loss[i].value;
        *loss += dot(t->host[v], t->host[t->loss[i].weight], numbers_of(t, v));
    }
    return FTH_OK;
}

/* The derivative of the loss along u [numbers of v], by a central difference. */
static fth_err difference(fth_device *dev, fth_trial *t, fth_val v, const double *u, double *out) {
    const double h = 2e-6;
    const int64_t n = numbers_of(t, v);
    const size_t bytes = (size_t)n * sizeof(double);
    double *here = malloc(bytes + 1), loss[2] = {0};
    if (!here) return fth_fail(FTH_NO_MEMORY, "no memory");
    memcpy(here, t->host[v], bytes);
    fth_err err = FTH_OK;
    for (int side = 0; side < 2 && err == FTH_OK; side++) {
        for (int64_t i = 0; i < n; i++) t->host[v][i] = here[i] + (side ? -h : h) * u[i];
        err = evaluate(dev, t, &loss[side]);
    }
    memcpy(t->host[v], here, bytes);
    free(here);
    *out = (loss[0] - loss[1]) / (2 * h);
    return err;
}

/* Several directions of one value; g [numbers of v] is its gradient. */
static fth_err check_pair(fth_device *dev, fth_trial *t, fth_val v, const double *g) {
    enum { DIRECTIONS = 3 };
    const int64_t n = numbers_of(t, v);
    double *u = malloc((size_t)n * sizeof *u + 1);
    if (!u) return fth_fail(FTH_NO_MEMORY, "no memory");
    fth_err err = FTH_OK;
    for (int k = 0; k < DIRECTIONS && err == FTH_OK; k++) {
        double found = 0;
        for (int64_t i = 0; i < n; i++) u[i] = fth_rng_normal(&t->rng);
        err = difference(dev, t, v, u, &found);
        const double expected = dot(g, u, n);
        const double size = sqrt(dot(g, g, n)) + fabs(expected);
        if (err == FTH_OK && !is_close(found, expected, 1e-6 * size + 1e-7))
            err = fth_fail(FTH_FAILED, "%s: derivative by value %d is %.9g, its gradient says %.9g",
                           t->from->name, v, found, expected);
    }
    free(u);
    return err;
}

/* Runs everything once; gradient[k] gets pair k's: for parameters what was added. */
static fth_err gradients(fth_device *dev, fth_trial *t, double **gradient) {
    for (int k = 0; k < t->n_pairs; k++) {
        const fth_val v = t->pair[k].grad;
        const size_t bytes = (size_t)numbers_of(t, v) * sizeof(double);
        gradient[k] = trial_alloc(t, bytes);
        if (!gradient[k]) return t->graph.err;
        if (t->graph.value[v].storage == FTH_IN_GRAD) memcpy(gradient[k], t->host[v], bytes);
    }
    FTH_TRY(run_ops(dev, t, false));
    for (int k = 0; k < t->n_pairs; k++) {
        const double *after = t->host[t->pair[k].grad];
        for (int64_t i = 0; i < numbers_of(t, t->pair[k].grad); i++)
            gradient[k][i] = after[i] - gradient[k][i];
    }
    return FTH_OK;
}

fth_err fth_harness_gradient(fth_device *dev, const fth_op_case *c) {
    fth_trial *t = calloc(1, sizeof *t);
    if (!t) return fth_fail(FTH_NO_MEMORY, "no memory");
    double *gradient[FTH_TRIAL_PAIRS] = {0};
    fth_err err = fth_trial_init(t, c);
    if (err == FTH_OK) err = gradients(dev, t, gradient);
    for (int k = 0; k < t->n_pairs && err == FTH_OK; k++)
        err = check_pair(dev, t, t->pair[k].value, gradient[k]);
    fth_trial_fini(t);
    free(t);
    return err;
}
