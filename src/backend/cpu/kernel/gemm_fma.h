/* gemm_fma.h: the inner product kernel on fused multiply-add: a tile of up to MR rows and NR columns
 * of C in registers, one broadcast of A and two vectors of B per two multiply-adds. AVX-512: 14 x 32
 * (28 of 32 registers), AVX2: 6 x 16 (12 of 16). */
#ifndef FTH_BACKEND_CPU_KERNEL_GEMM_FMA_H
#define FTH_BACKEND_CPU_KERNEL_GEMM_FMA_H

#include "backend/cpu/kernel/kernel.h"
#include "backend/cpu/kernel/vec.h"

#if defined(__AVX512F__)
enum { MR = 14 };
#elif defined(__AVX2__)
enum { MR = 6 };
#else
enum { MR = 4 };
#endif
enum {
    NR = 2 * VW,
    KC = 512,          /* of k at a time: a tile of A stays in the first-level cache */
    A_STRIDE = KC + 16 /* floats from row to row of a packed tile: rows fall into different sets */
};

/* Where a tile of C begins and ends. */
typedef struct gemm_tile {
    const float *init; /* the tile starts from this; NULL: from 0 */
    int64_t ld_init;   /* 0: one row for all */
    float *c;
    int64_t ldc;
    bool relu;
    const float *gate; /* C is 0 where this is not positive; NULL: everywhere kept */
    int64_t ld_gate;
} gemm_tile;

/* ---- packing ---- */

/* A tile of A: [rows][A_STRIDE], or by column [k][MR]. */
static void pack_a(float *restrict_ to, const real *restrict_ from, int64_t ld, bool by_column,
                   int64_t rows_, int64_t k) {
    if (!by_column) {
        for (int64_t i = 0; i < rows_; i++)
#pragma omp simd
            for (int64_t l = 0; l < k; l++) to[i * A_STRIDE + l] = from_real(from[i * ld + l]);
        return;
    }
    if (rows_ == MR) {
        for (int64_t l = 0; l < k; l++)
#pragma omp simd
            for (int64_t i = 0; i < MR; i++) to[l * MR + i] = from_real(from[l * ld + i]);
        return;
    }
    for (int64_t l = 0; l < k; l++)
        for (int64_t i = 0; i < rows_; i++) to[l * MR + i] = from_real(from[l * ld + i]);
}

/* VW columns of a panel from VW rows of b, over k: a transposition. */
static void pack_columns(float *restrict_ to, const real *restrict_ from, int64_t ld, int64_t k) {
    int64_t l = 0;
    for (; l + VW <= k; l += VW) {
        vf r[VW];
        float block[VW][VW];
        for (int i = 0; i < VW; i++) {
#pragma omp simd
            for (int j = 0; j < VW; j++) block[i][j] = from_real(from[i * ld + l + j]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < VW; i++) r[i] = v_load(block[i]);
        v_transpose(r);
#pragma GCC unroll 16
        for (int i = 0; i < VW; i++) v_store(to + (l + i) * NR, r[i]);
    }
    for (; l < k; l++)
        for (int i = 0; i < VW; i++) to[l * NR + i] = from_real(from[i * ld + l]);
}

/* Part of a panel of B: [k][NR], columns beyond cols are 0. */
static void pack_b(float *restrict_ to, const real *restrict_ from, int64_t ld, bool by_column,
                   int64_t cols, int64_t k) {
    if (cols == NR && by_column) {
        pack_columns(to, from, ld, k);
        pack_columns(to + VW, from + VW * ld, ld, k);
        return;
    }
    if (cols == NR) {
        for (int64_t l = 0; l < k; l++)
#pragma omp simd
            for (int64_t j = 0; j < NR; j++) to[l * NR + j] = from_real(from[l * ld + j]);
        return;
    }
    for (int64_t l = 0; l < k; l++)
        for (int64_t j = 0; j < NR; j++)
            to[l * NR + j] = j >= cols ? 0 : from_real(from[by_column ? j * ld + l : l * ld + j]);
}

/* ---- the tile ---- */

inline_ void tile_of(const int rows_, const bool by_column, int64_t k, const float *restrict_ a,
                     const float *restrict_ b, const gemm_tile *t) {
    vf acc[MR][2];
#pragma GCC unroll 14
    for (int i = 0; i < rows_; i++) {
        acc[i][0] = t->init ? v_load(t->init + i * t->ld_init) : v_zero();
        acc[i][1] = t->init ? v_load(t->init + i * t->ld_init + VW) : v_zero();
    }
    for (int64_t l = 0; l < k; l++, b += NR, a += by_column ? MR : 1) {
        const vf b0 = v_load(b), b1 = v_load(b + VW);
#pragma GCC unroll 14
        for (int i = 0; i < rows_; i++) {
            const vf x = v_set(a[by_column ? i : i * A_STRIDE]);
            acc[i][0] = v_fma(x, b0, acc[i][0]);
            acc[i][1] = v_fma(x, b1, acc[i][1]);
        }
    }
#pragma GCC unroll 14
    for (int i = 0; i < rows_; i++)
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            vf x = acc[i][j];
            if (t->relu) x = v_relu(x);
            if (t->gate) x = v_gate(x, v_load(t->gate + i * t->ld_gate + j * VW));
            v_store(t->c + i * t->ldc + j * VW, x);
        }
}

#define TILE_CASE(n)                                                                               \
    case n:                                                                                        \
        if (by_column)                                                                             \
            tile_of(n, true, k, a, b, t);                                                          \
        else                                                                                       \
            tile_of(n, false, k, a, b, t);                                                         \
        break;

static void multiply_tile(int64_t rows_, bool by_column, int64_t k, const float *a, const float *b,
                          const gemm_tile *t) {
    switch (rows_) {
        TILE_CASE(1)
        TILE_CASE(2) TILE_CASE(3) TILE_CASE(4)
#if defined(__AVX2__)
            TILE_CASE(5) TILE_CASE(6)
#endif
#if defined(__AVX512F__)
                TILE_CASE(7) TILE_CASE(8) TILE_CASE(9) TILE_CASE(10) TILE_CASE(11) TILE_CASE(12)
                    TILE_CASE(13) TILE_CASE(14)
#endif
    }
}

#endif
