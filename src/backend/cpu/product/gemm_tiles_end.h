/* gemm_tiles_end.h: what becomes of the sums of a block of C that tiles have made: bias, addend,
 * activation or its slope, rounding. */
#ifndef FTH_BACKEND_CPU_PRODUCT_GEMM_TILES_END_H
#define FTH_BACKEND_CPU_PRODUCT_GEMM_TILES_END_H

#include "backend/cpu/product/gemm.h"
#include "backend/cpu/product/tiles_pack.h"

enum { VECTORS = SIDE / VW }; /* of a row of a block */

/* Rows of a block of C whose sums are complete, and which are left to become results. */
typedef struct result {
    int64_t row, column, n_rows, n_columns;
    float *sums; /* [n_rows][SIDE] */
} result;

/* What is to be done for a block, as far as the compiler should know it: nothing but a bias and
 * ReLU; results are floats. */
typedef struct ending {
    bool bare, full;
} ending;

/* A row in the type of activations. */
inline_ void store_row(real *to, const vf x[VECTORS]) {
#ifdef FTH_REAL_IS_bf16
#pragma GCC unroll 4
    for (int i = 0; i < VECTORS; i += 2) {
        const vf both = v_two_rounded(x[i], x[i + 1]);
        memcpy(to + i * VW, &both, sizeof both);
    }
#else
#pragma GCC unroll 8
    for (int i = 0; i < VECTORS; i++) v_store(to + i * VW, x[i]);
#endif
}

/* Asks for what finishing the block to the right will read. */
inline_ void ask_for_row(const gemm *g, int64_t row, int64_t column, const ending t) {
    enum { LINE = 64 / (int)sizeof(real) }; /* numbers of a line of the cache */
    const int64_t j = column + SIDE;
    for (int i = 0; i < SIDE && !t.bare; i += LINE) {
        if (g->addend.data) __builtin_prefetch(g->addend.data + row * g->addend.ld + j + i, 0, 2);
        if (g->saved.data) __builtin_prefetch(g->saved.data + row * g->saved.ld + j + i, 0, 2);
    }
}

/* A row of a block of whole rows. */
inline_ void finish_row(const gemm *g, int64_t row, int64_t column, const float *sums,
                        const vf bias[VECTORS], const ending t) {
    const bool relu_ = g->act == FTH_ACT_RELU;
    vf x[VECTORS];
    ask_for_row(g, row, column, t);
#pragma GCC unroll 8
    for (int i = 0; i < VECTORS; i++) {
        x[i] = v_add(v_load(sums + i * VW), bias[i]);
        if (!t.bare && g->addend.data)
            x[i] = v_add(x[i], v_load_real(g->addend.data + row * g->addend.ld + column + i * VW));
    }
    if (!t.bare && g->pre.data) store_row(g->pre.data + row * g->pre.ld + column, x);
#pragma GCC unroll 8
    for (int i = 0; i < VECTORS; i++) {
        const int64_t j = column + i * VW;
        if (!t.bare && relu_ && g->saved.data)
            x[i] = v_gate(x[i], v_load_real(g->saved.data + row * g->saved.ld + j));
        else if (relu_)
            x[i] = v_relu(x[i]);
        if (t.full) v_store(g->c_full.data + row * g->c_full.ld + j, x[i]);
    }
    if (!t.full) store_row(g->c.data + row * g->c.ld + column, x);
}

/* The next n of them have become results. */
inline_ void leave_rows(result *r, int64_t n) {
    r->row += n;
    r->sums += n * SIDE;
    r->n_rows -= n;
}

/* They become results; all columns of the block exist. */
inline_ void finish_rows(const gemm *g, result *r, int64_t n, const ending t) {
    const int64_t row = r->row, column = r->column;
    const float *sums = r->sums;
    vf bias[VECTORS];
    for (int i = 0; i < VECTORS; i++) /* a sum with -0 is what it was */
        bias[i] = g->bias ? v_load(g->bias + column + i * VW) : v_set(-0.0f);
    for (int64_t i = 0; i < n; i++) finish_row(g, row + i, column, sums + i * SIDE, bias, t);
    leave_rows(r, n);
}

#endif
