/* cpu.h: the cpu backend inside. A program runs in ONE parallel region: every thread walks the list
 * of operations, does its part of each and waits for the others in between, so that a thousand thin
 * layers start no thread. Kernels (kernel/) are compiled once per instruction set and type of
 * activations; a device holds the table of the best one that the machine has. */
#ifndef FTH_BACKEND_CPU_CPU_H
#define FTH_BACKEND_CPU_CPU_H

#include "backend/backend.h"
#include "backend/cpu/tile/int8.h"
#include "backend/cpu/tile/pairs.h"
#include "backend/cpu/pool.h"

/* The part of an operation that one thread of the team does. */
typedef void (*fth_part)(fth_exec *ex, const fth_op *op, const fth_team *team);

/* Sums of squares go over this many pieces of an arena, whatever the number of threads, so that
 * the sum does not depend on it. */
enum { FTH_CPU_PIECES = 1024 };

/* The kernels of one instruction set and one type of activations. */
typedef struct fth_cpu_table {
    const char *isa;
    fth_part part[FTH_N_KINDS];
    fth_scratch scratch[FTH_N_KINDS]; /* NULL: none */
    void (*adam)(const fth_arenas *a, const fth_adam *args, const fth_team *team);
    /* sums: [FTH_CPU_PIECES] */
    void (*sum_squares)(const float *x, int64_t n, double *sums, const fth_team *team);
    void (*square_sums)(const float *x, int64_t n, int64_t piece, double *sums,
                        const fth_team *team);
    void (*add_up)(float *to, const fth_addends *from, int64_t n, const fth_team *team);
    void (*refresh)(const fth_arenas *a, const fth_team *team);
    void (*range_sums)(const fth_arenas *a, const fth_adam *args, double *out,
                       const fth_team *team);
    /* Rows of weights [n, k] as panels [panels][k][panel_columns], filled up with 0 (packed.h). */
    int64_t panel_columns;
    void (*pack_panels)(const fth_tensor *w, fth_cpu_share panels, void *to);
    /* The same for tiles, FTH_PAIRS_COLUMNS to a panel (pairs.h); bf16 alone. */
    void (*pack_tiles)(const fth_tensor *w, fth_cpu_share panels, void *to);
} fth_cpu_table;

typedef struct fth_cpu {
    fth_device base;
    const fth_cpu_table *table;
    const char *isa; /* that was asked for; NULL: the best */
    fth_cpu_pool *pool;
    const fth_cpu_pairs_path *pairs; /* a unit that multiplies pairs of bf16; NULL: not used */
    const fth_cpu_pairs_path *parts; /* tiles for floats in parts of bf16; NULL: not used */
    const fth_int8_path *int8; /* how weights of 8 bits are multiplied; NULL: weights stay whole */
    double sums[FTH_CPU_PIECES];
} fth_cpu;

/* The kernels of an instruction set, and the unit that multiplies pairs of bf16 with it. */
typedef struct fth_cpu_choice {
    const char *name; /* that was asked for; NULL: the best */
    const fth_cpu_table *table;
    const fth_cpu_pairs_path *pairs; /* NULL: none, or not for this precision */
    const fth_cpu_pairs_path *parts; /* the same for floats, on tiles */
} fth_cpu_choice;

/* The best instruction set of this machine, or the one that name asks for (NULL: the best):
 * "plain", "avx2", "avx512"; "avx512-bf16" and "amx" are avx512 with that unit; for tests,
 * "plain-bf16", "plain-amx", "avx512-plain-bf16" and "avx512-plain-amx" have the units' twins in C.
 * The best does not have vectors of pairs where floats are multiplied faster. Fails when the
 * machine does not have what is asked for. */
fth_err fth_cpu_choose(const char *name, fth_precision precision, fth_cpu_choice *out);

/* Opens a device with a chosen instruction set (tests, benches). */
fth_err fth_cpu_open_isa(const char *isa, fth_precision precision, int threads, fth_device **out);

/* Memory (device_memory.c): see backend.h. Pages are touched first by the threads that will use
 * them. */
fth_err fth_cpu_alloc(fth_device *dev, int64_t bytes, void **out);
void fth_cpu_release(fth_device *dev, void *data);
fth_err fth_cpu_copy(fth_device *dev, void *to, const void *from, int64_t bytes);
fth_err fth_cpu_zero(fth_device *dev, void *data, int64_t bytes);
fth_err fth_cpu_memory(fth_device *dev, int64_t *free_bytes, int64_t *total_bytes);

#endif
