/* gemm_pairs_end.h: results of products on vectors of pairs that need no second look: written where
 * they belong when a tile's sums are complete. */
#ifndef FTH_BACKEND_CPU_PRODUCT_GEMM_PAIRS_END_H
#define FTH_BACKEND_CPU_PRODUCT_GEMM_PAIRS_END_H

#include "backend/cpu/product/gemm.h"

/* Whether whole panels of columns of C are such; depth: most of k at a time. */
static inline bool gemm_pairs_direct(const gemm *g, int64_t depth) {
    return g->act != FTH_ACT_GELU && !g->pre.data && (g->k <= depth || g->accumulate);
}

/* What becomes of the sums over the block of k at l for the panel at (row, column) of C. */
static inline fth_cpu_pairs_end gemm_pairs_end(const gemm *g, int64_t row, int64_t column,
                                               int64_t l) {
    fth_cpu_pairs_end e = {.relu = g->act == FTH_ACT_RELU && !g->saved.data};
    if (g->c_full.data) {
        e.full = g->c_full.data + row * g->c_full.ld + column;
        e.ld = g->c_full.ld;
    } else {
        e.rounded = g->c.data + row * g->c.ld + column;
        e.ld = g->c.ld;
    }
    if (gemm_adds(g, l)) {
        e.floats = e.full;
        e.ld_floats = e.ld;
    } else if (g->bias) {
        e.floats = g->bias + column;
    }
    if (g->addend.data) {
        e.addend = g->addend.data + row * g->addend.ld + column;
        e.ld_addend = g->addend.ld;
    }
    if (g->saved.data && g->act == FTH_ACT_RELU) {
        e.gate = g->saved.data + row * g->saved.ld + column;
        e.ld_gate = g->saved.ld;
    }
    return e;
}

#endif
