#include "backend/cpu/cpu.h"

#include <omp.h>
#include <stdlib.h>

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

/* Runs n operations; every thread walks the whole list. */
static void walk(fth_exec *ex, const fth_op *op, int32_t n) {
    fth_cpu *cpu = (fth_cpu *)ex->device;
#pragma omp parallel num_threads(cpu->base.threads)
    {
        const unsigned mode = flush_tiny();
        const fth_team team = {omp_get_thread_num(), omp_get_num_threads(), &cpu->barrier};
        for (int32_t i = 0; i < n; i++) {
            cpu->table->part[op[i].kind](ex, &op[i], &team);
            fth_team_wait(&team);
        }
        restore_tiny(mode);
    }
}

static fth_err run(fth_exec *ex) {
    walk(ex, ex->graph->op, ex->graph->n_ops);
    return FTH_OK;
}

static fth_err run_one(fth_exec *ex, const fth_op *op) {
    walk(ex, op, 1);
    return FTH_OK;
}

static int64_t scratch_of(const fth_device *dev, const fth_graph *g, const fth_op *op,
                          const int64_t capacity[FTH_N_EXTENTS]) {
    const fth_scratch need = cpu_of(dev)->table->scratch[op->kind];
    return need ? need(dev, g, op, capacity) : 0;
}

/* ---- flat arenas ---- */

static fth_err sum_squares(fth_device *dev, const void *full, int64_t n, double *out) {
    fth_cpu *cpu = (fth_cpu *)dev;
#pragma omp parallel num_threads(dev->threads)
    {
        const fth_team team = {omp_get_thread_num(), omp_get_num_threads(), &cpu->barrier};
        cpu->table->sum_squares(full, n, cpu->sums, &team);
    }
    *out = 0;
    for (int i = 0; i < FTH_CPU_PIECES; i++) *out += cpu->sums[i];
    return FTH_OK;
}

static fth_err adam(fth_device *dev, const fth_arenas *a, const fth_adam *args) {
    fth_cpu *cpu = (fth_cpu *)dev;
#pragma omp parallel num_threads(dev->threads)
    {
        const unsigned mode = flush_tiny();
        const fth_team team = {omp_get_thread_num(), omp_get_num_threads(), &cpu->barrier};
        cpu->table->adam(a, args, &team);
        restore_tiny(mode);
    }
    return FTH_OK;
}

static fth_err refresh_weights(fth_device *dev, const fth_arenas *a) {
    fth_cpu *cpu = (fth_cpu *)dev;
    if (a->weights == a->master) return FTH_OK;
#pragma omp parallel num_threads(dev->threads)
    {
        const fth_team team = {omp_get_thread_num(), omp_get_num_threads(), &cpu->barrier};
        cpu->table->refresh(a, &team);
    }
    return FTH_OK;
}

/* ---- opening ---- */

fth_err fth_cpu_open_isa(const char *isa, fth_precision precision, int threads, fth_device **out) {
    *out = NULL;
    if (threads < 1) return fth_fail(FTH_USAGE, "threads %d is less than 1", threads);
    const fth_cpu_table *table;
    FTH_TRY(fth_cpu_choose(isa, precision, &table));
    fth_cpu *cpu = aligned_alloc(_Alignof(fth_cpu), sizeof *cpu);
    if (!cpu) return fth_fail(FTH_NO_MEMORY, "no memory for a device");
    *cpu = (fth_cpu){.base = {.backend = fth_backend_cpu(),
                              .precision = precision,
                              .threads = threads,
                              .real = precision == FTH_PREC_BF16 ? FTH_BF16 : FTH_F32,
                              .full = FTH_F32},
                     .table = table};
    *out = &cpu->base;
    return FTH_OK;
}

/* FATHOM_CPU_ISA names an instruction set to use instead of the best one. */
static fth_err open_best(const fth_backend *self, fth_precision precision, int threads,
                         fth_device **out) {
    (void)self;
    return fth_cpu_open_isa(getenv("FATHOM_CPU_ISA"), precision, threads, out);
}

static void close_device(fth_device *dev) {
    free(dev);
}

static const fth_backend cpu_backend = {
    .name = "cpu",
    .open = open_best,
    .close = close_device,
    .alloc = fth_cpu_alloc,
    .release = fth_cpu_release,
    .upload = fth_cpu_copy,
    .download = fth_cpu_copy,
    .zero = fth_cpu_zero,
    .memory = fth_cpu_memory,
    .run = run,
    .sum_squares = sum_squares,
    .adam = adam,
    .refresh_weights = refresh_weights,
#define KIND(name, text) .kernel[FTH_KIND_##name] = run_one, .scratch[FTH_KIND_##name] = scratch_of,
#include "graph/kinds.def"
#undef KIND
};

const fth_backend *fth_backend_cpu(void) {
    return &cpu_backend;
}
