/* gemm.h: products of matrices with what comes before and after them, done by a team.
 *
 * C[m, n] = act(A[m, k] B[k, n] + bias) and its relatives. B is cut into slabs; the team packs a slab
 * into panels of NR columns together, waits, and then every thread multiplies its own rows of A with
 * it, tile by tile. A tile of C stays in registers for a whole block of k. */
#ifndef FTH_BACKEND_CPU_KERNEL_GEMM_H
#define FTH_BACKEND_CPU_KERNEL_GEMM_H

#include "backend/cpu/kernel/kernel.h"

typedef struct gemm {
    int64_t m, n, k;
    rows a; /* A(i, l) = a[i, l]; a_by_column: a[l, i] */
    rows b; /* B(l, j) = b[l, j]; b_by_column: b[j, l] */
    bool a_by_column, b_by_column;
    const float *bias; /* [n] added to every row; NULL: none */
    rows addend;       /* [m, n] added; data NULL: none */
    rows saved;        /* [m, n] what act's slope is taken at; data NULL: act is applied itself */
    fth_act act;
    rows pre;         /* [m, n] gets the value before act; data NULL: not wanted */
    rows c;           /* [m, n] the result in the type of activations, or */
    full_rows c_full; /* the result as floats */
    bool accumulate;  /* c_full is added to */
} gemm;

/* The whole team calls this; all scratch is given by the caller. Nobody waits at the end. */
void FTH_NAME(gemm)(const gemm *g, const fth_team *team, void *shared, void *own);
/* Bytes that the team shares for any product up to n, k; bytes that each thread needs. */
int64_t FTH_NAME(gemm_shared_bytes)(int64_t n, int64_t k);
int64_t FTH_NAME(gemm_own_bytes)(void);

/* A kernel that only needs products: shared bytes first, then the threads' own. */
static inline int64_t gemm_scratch_bytes(const fth_device *dev, int64_t n, int64_t k) {
    return FTH_NAME(gemm_shared_bytes)(n, k) + dev->threads * FTH_NAME(gemm_own_bytes)();
}

static inline void gemm_in_scratch(const fth_exec *ex, const gemm *g, const fth_team *team,
                                   int64_t n, int64_t k) {
    char *shared = ex->scratch;
    char *own = shared + FTH_NAME(gemm_shared_bytes)(n, k);
    FTH_NAME(gemm)(g, team, shared, own + team->thread * FTH_NAME(gemm_own_bytes)());
}

#endif
