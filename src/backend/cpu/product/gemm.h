/* gemm.h: products of matrices with what comes before and after them, done by a team.
 *
 * C[m, n] = act(A[m, k] B[k, n] + bias) and its relatives. Every thread has a block of C of its own
 * and packs what it needs of B into panels that stay in its second-level cache: threads do not wait
 * for each other, and what one has packed never travels to another core. A tile of C stays in
 * registers for a whole block of k. */
#ifndef FTH_BACKEND_CPU_PRODUCT_GEMM_H
#define FTH_BACKEND_CPU_PRODUCT_GEMM_H

#include "backend/cpu/kernel/kernel.h"

typedef struct gemm {
    int64_t m, n, k;
    rows a; /* A(i, l) = a[i, l]; a_by_column: a[l, i] */
    rows b; /* B(l, j) = b[l, j]; b_by_column: b[j, l] */
    bool b_by_column;
    full_rows b_full;  /* in place of b: floats that a unit for pairs rounds when it packs them */
    const float *bias; /* [n] added to every row; NULL: none */
    rows addend;       /* [m, n] added; data NULL: none */
    rows saved;        /* [m, n] what act's slope is taken at; data NULL: act is applied itself */
    fth_act act;
    rows pre;         /* [m, n] gets the value before act; data NULL: not wanted */
    rows c;           /* [m, n] the result in the type of activations, or */
    full_rows c_full; /* the result as floats */
    bool accumulate;  /* c_full += A B, A by columns, and nothing of bias ... pre */
    bool fresh;       /* accumulate: c_full = A B, whatever it holds */
    float *a_sums;    /* [m] += sums over k of A, accumulate, not on vectors of pairs; NULL: no */
    const fth_cpu_pairs_path
        *pairs; /* a unit that multiplies pairs of bf16; NULL: none. For floats tiles */
} gemm;

/* The whole team calls this, each thread with gemm_own_bytes of scratch of its own. Nobody
 * waits. */
void FTH_NAME(gemm)(const gemm *g, const fth_team *team, void *own);
int64_t FTH_NAME(gemm_own_bytes)(const fth_device *dev);

/* Whether the block of k that begins at l is added to c_full. */
static inline bool gemm_adds(const gemm *g, int64_t l) {
    return g->accumulate && (l > 0 || !g->fresh);
}

/* What remains to be done for columns [j, j + n) of a row whose sums over the block of k at l are
 * in acc; l matters to accumulate alone. */
void FTH_NAME(gemm_finish_row)(const gemm *g, int64_t row, int64_t j, int64_t n, int64_t l,
                               float *restrict_ acc);

/* The same for few rows of A, both factors in rows (b_by_column). */
enum { GEMM_FEW_ROWS = 48 };
void FTH_NAME(gemm_dots)(const gemm *g, const fth_team *team, void *own);

/* The same for accumulate without a unit that multiplies pairs. */
void FTH_NAME(gemm_accumulate)(const gemm *g, const fth_team *team, void *own);
int64_t FTH_NAME(gemm_accumulate_bytes)(void);

/* Rows and columns of C on a unit that multiplies pairs: vectors (bf16 alone), or tiles, for which
 * B may have been packed before (panels, by pack_tiles; NULL: not). own: gemm_pairs_bytes,
 * gemm_tiles_bytes. */
void FTH_NAME(gemm_pairs)(const gemm *g, fth_cpu_share rows_, fth_cpu_share columns, void *own);
int64_t FTH_NAME(gemm_pairs_bytes)(void);
void FTH_NAME(gemm_tiles)(const gemm *g, const void *panels, fth_cpu_share rows_,
                          fth_cpu_share columns, void *own);
int64_t FTH_NAME(gemm_tiles_bytes)(void);
void FTH_NAME(pack_tiles)(const fth_tensor *w, fth_cpu_share panels, void *to);

/* The same for accumulate on tiles. */
void FTH_NAME(gemm_tiles_accumulate)(const gemm *g, const fth_team *team, void *own);
int64_t FTH_NAME(gemm_tiles_accumulate_bytes)(void);

/* How many threads share the rows of C += A B; the others of the team share the columns. Both
 * factors are packed, for blocks of C of so many rows and columns: as little as can be, where A's
 * numbers cost twice B's, and B's rows, which are read in short parts, stay whole if it is the
 * same. */
static inline int gemm_row_threads(const fth_team *team, const gemm *g, int64_t most_rows,
                                   int64_t most_columns) {
    int best = 1;
    int64_t least_packed = INT64_MAX;
    for (int by_rows = 1; by_rows <= team->n_threads; by_rows++) {
        if (team->n_threads % by_rows) continue;
        const int by_columns = team->n_threads / by_rows;
        const int64_t high = (g->m + by_rows - 1) / by_rows;
        const int64_t wide = (g->n + by_columns - 1) / by_columns;
        const int64_t packed =
            2 * high * ((wide - 1) / most_columns + 1) + wide * ((high - 1) / most_rows + 1);
        if (packed > least_packed) continue;
        least_packed = packed;
        best = by_rows;
    }
    return best;
}

/* Floats with short rows can be read down the rows where they lie: they fall into all sets of the
 * cache and the processor sees them coming. */
static inline bool gemm_is_thin(rows x) {
    return x.ld <= 256;
}

/* For kernels whose scratch is only for products. */
static inline void gemm_in_scratch(const fth_exec *ex, const gemm *g, const fth_team *team) {
    const int64_t bytes = FTH_NAME(gemm_own_bytes)(ex->device);
    FTH_NAME(gemm)(g, team, (char *)ex->scratch + team->thread * bytes);
}

#endif
