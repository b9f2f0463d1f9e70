/* cpu.c: the backend's table: a program is one call of the pool, in which every thread walks the
 * whole list of operations and waits for the others after each. */
#include "backend/cpu/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "backend/cpu/tile/packed.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

/* Numbers below 1e-38 (Adam's second moments have many) are taken as zero while kernels run: the
 * processor handles them a hundred times slower than others. Returns what to restore. */
static unsigned flush_tiny(void) {
#if defined(__SSE2__)
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040u);
    return before;
#else
    return 0;
#endif
}

static void restore_tiny(unsigned before) {
#if defined(__SSE2__)
    _mm_setcsr(before);
#else
    (void)before;
#endif
}

static const fth_cpu *cpu_of(const fth_device *dev) {
    return (const fth_cpu *)dev;
}

/* ---- running ---- */

typedef struct op_list {
    fth_exec *ex;
    const fth_op *op; /* [n] */
    int32_t n;
    atomic_int end; /* operations to do: fewer than n once the run was asked to stop */
} op_list;

/* Watch operations do not wait for one another: each is one thread's, and only the host reads what
 * they write. */
static bool is_watch(const fth_op *op) {
    return op->kind == FTH_KIND_gauge || op->kind == FTH_KIND_gauge_positions ||
           op->kind == FTH_KIND_gauge_entropy;
}

/* Whether the run may end after the operation at i and is asked to. One thread decides, before all
 * meet; what it decides is about the operation after that, so a thread that looks late sees the
 * same. */
static void look_for_stop(op_list *list, int32_t i) {
    const volatile sig_atomic_t *stop = list->ex->device->stop;
    if (!stop || !*stop || i >= list->ex->first_update) return;
    if (i + 1 < atomic_load_explicit(&list->end, memory_order_relaxed))
        atomic_store_explicit(&list->end, i + 1, memory_order_relaxed);
}

/* Every thread walks the whole list. */
static void walk(const fth_team *team, void *context) {
    op_list *list = context;
    const fth_cpu_table *table = cpu_of(list->ex->device)->table;
    const unsigned mode = flush_tiny();
    for (int32_t i = 0; i < atomic_load_explicit(&list->end, memory_order_relaxed); i++) {
        table->part[list->op[i].kind](list->ex, &list->op[i], team);
        if (i + 1 < list->n && is_watch(&list->op[i]) && is_watch(&list->op[i + 1])) continue;
        if (team->thread == 0) look_for_stop(list, i);
        fth_team_wait(team);
    }
    restore_tiny(mode);
}

static fth_err run(fth_exec *ex) {
    op_list list = {ex, ex->graph->op, ex->graph->n_ops, ex->graph->n_ops};
    fth_pool_run(cpu_of(ex->device)->pool, walk, &list);
    return atomic_load(&list.end) == list.n ? FTH_OK : fth_stopped();
}

static fth_err run_one(fth_exec *ex, const fth_op *op) {
    op_list list = {ex, op, 1, 1};
    fth_pool_run(cpu_of(ex->device)->pool, walk, &list);
    return FTH_OK;
}

static int64_t scratch_of(const fth_device *dev, const fth_graph *g, const fth_op *op,
                          const int64_t capacity[FTH_N_EXTENTS]) {
    const fth_scratch need = cpu_of(dev)->table->scratch[op->kind];
    return need ? need(dev, g, op, capacity) : 0;
}

/* ---- flat arenas ---- */

/* Work on arenas: what the threads need to know. */
typedef struct flat_work {
    fth_cpu *cpu;
    const float *x; /* [n] */
    int64_t n;
    const fth_arenas *arenas;
    const fth_adam *args;
    int64_t piece;
    float *to;
    const fth_addends *addends;
    double *out; /* [n_ranges, FTH_RANGE_SUMS], or one for each piece */
} flat_work;

static void sum_part(const fth_team *team, void *context) {
    const flat_work *w = context;
    w->cpu->table->sum_squares(w->x, w->n, w->cpu->sums, team);
}

static fth_err sum_squares(fth_device *dev, const void *full, int64_t n, double *out) {
    fth_cpu *cpu = (fth_cpu *)dev;
    fth_pool_run(cpu->pool, sum_part, &(flat_work){.cpu = cpu, .x = full, .n = n});
    *out = 0;
    for (int i = 0; i < FTH_CPU_PIECES; i++) *out += cpu->sums[i];
    return FTH_OK;
}

static void pieces_part(const fth_team *team, void *context) {
    const flat_work *w = context;
    w->cpu->table->square_sums(w->x, w->n, w->piece, w->out, team);
}

static fth_err square_sums(fth_device *dev, const void *full, int64_t n, int64_t piece,
                           double *out) {
    fth_cpu *cpu = (fth_cpu *)dev;
    flat_work work = {.cpu = cpu, .x = full, .n = n, .piece = piece, .out = out};
    fth_pool_run(cpu->pool, pieces_part, &work);
    return FTH_OK;
}

static void add_up_part(const fth_team *team, void *context) {
    const flat_work *w = context;
    w->cpu->table->add_up(w->to, w->addends, w->n, team);
}

static fth_err add_up(fth_device *dev, void *to, const fth_addends *from, int64_t n) {
    fth_cpu *cpu = (fth_cpu *)dev;
    fth_pool_run(cpu->pool, add_up_part,
                 &(flat_work){.cpu = cpu, .to = to, .addends = from, .n = n});
    return FTH_OK;
}

static void adam_part(const fth_team *team, void *context) {
    const flat_work *w = context;
    const unsigned mode = flush_tiny();
    w->cpu->table->adam(w->arenas, w->args, team);
    restore_tiny(mode);
}

static fth_err adam(fth_device *dev, const fth_arenas *a, const fth_adam *args) {
    fth_cpu *cpu = (fth_cpu *)dev;
    fth_pool_run(cpu->pool, adam_part, &(flat_work){.cpu = cpu, .arenas = a, .args = args});
    return FTH_OK;
}

static void refresh_part(const fth_team *team, void *context) {
    const flat_work *w = context;
    w->cpu->table->refresh(w->arenas, team);
}

static fth_err refresh_weights(fth_device *dev, const fth_arenas *a) {
    fth_cpu *cpu = (fth_cpu *)dev;
    if (a->weights == a->master) return FTH_OK;
    fth_pool_run(cpu->pool, refresh_part, &(flat_work){.cpu = cpu, .arenas = a});
    return FTH_OK;
}

static void range_part(const fth_team *team, void *context) {
    const flat_work *w = context;
    const unsigned mode = flush_tiny();
    w->cpu->table->range_sums(w->arenas, w->args, w->out, team);
    restore_tiny(mode);
}

static fth_err range_sums(fth_device *dev, const fth_arenas *a, const fth_adam *args, double *out) {
    fth_cpu *cpu = (fth_cpu *)dev;
    flat_work work = {.cpu = cpu, .arenas = a, .args = args, .out = out};
    fth_pool_run(cpu->pool, range_part, &work);
    return FTH_OK;
}

/* ---- opening ---- */

fth_err fth_cpu_open_isa(const char *isa, fth_precision precision, int threads, fth_device **out) {
    *out = NULL;
    if (threads < 1) return fth_fail(FTH_USAGE, "threads %d is less than 1", threads);
    fth_cpu_choice choice;
    FTH_TRY(fth_cpu_choose(isa, precision, &choice));
    fth_cpu *cpu = calloc(1, sizeof *cpu);
    if (!cpu) return fth_fail(FTH_NO_MEMORY, "no memory for a device");
    *cpu = (fth_cpu){.base = {.backend = fth_backend_cpu(),
                              .precision = precision,
                              .threads = threads,
                              .real = precision == FTH_PRECISION_BF16 ? FTH_BF16 : FTH_F32,
                              .full = FTH_F32},
                     .table = choice.table,
                     .isa = choice.name,
                     .pairs = choice.pairs,
                     .parts = choice.parts};
    fth_err err = fth_pool_new(threads, &cpu->pool);
    if (err != FTH_OK) {
        free(cpu);
        return err;
    }
    *out = &cpu->base;
    return FTH_OK;
}

/* FATHOM_CPU_ISA names an instruction set to use instead of the best one. */
static fth_err open_best(const fth_backend *self, fth_precision precision, int threads,
                         fth_device **out) {
    (void)self;
    return fth_cpu_open_isa(getenv("FATHOM_CPU_ISA"), precision, threads, out);
}

static fth_err quantize(fth_device *dev) {
    fth_cpu *cpu = (fth_cpu *)dev;
    cpu->int8 = fth_int8_path_for(cpu->isa);
    return FTH_OK;
}

static void close_device(fth_device *dev) {
    fth_pool_free(((fth_cpu *)dev)->pool);
    free(dev);
}

static const fth_backend cpu_backend = {
    .name = "cpu",
    .on_host = true,
    .open = open_best,
    .close = close_device,
    .alloc = fth_cpu_alloc,
    .release = fth_cpu_release,
    .upload = fth_cpu_copy,
    .download = fth_cpu_copy,
    .zero = fth_cpu_zero,
    .memory = fth_cpu_memory,
    .run = run,
    .recompute_norms = true,
    .rounds_weights = true,
    .keep_bits = true,
    .quantize = quantize,
    .prepare = fth_cpu_pack,
    .unprepare = fth_cpu_unpack,
    .sum_squares = sum_squares,
    .square_sums = square_sums,
    .add_up = add_up,
    .adam = adam,
    .refresh_weights = refresh_weights,
    .range_sums = range_sums,
#define KIND(name, text) .kernel[FTH_KIND_##name] = run_one, .scratch[FTH_KIND_##name] = scratch_of,
#include "graph/kinds.def"
#undef KIND
};

const fth_backend *fth_backend_cpu(void) {
    return &cpu_backend;
}
