/* gemm_fma.h: the inner product kernel on fused multiply-add: a tile of up to MR rows and NR
 * columns of C in registers. What counts beside the multiply-adds is the number of other
 * instructions: AVX-512's 6 x 64 has 10 loads for 24 multiply-adds and runs at 98 % of the units'
 * peak (14 x 32: 16 for 28 and 90 %). */
#ifndef FTH_BACKEND_CPU_PRODUCT_GEMM_FMA_H
#define FTH_BACKEND_CPU_PRODUCT_GEMM_FMA_H

#include "backend/cpu/product/gemm.h"
#include "backend/cpu/kernel/vec.h"

#if defined(__AVX512F__)
enum { MR = 6, NV = 4 }; /* 24 of 32 registers */
#elif defined(__AVX2__)
enum { MR = 6, NV = 2 }; /* 12 of 16 */
#else
enum { MR = 4, NV = 2 };
#endif
enum { NR = NV * VW };

/* Where a tile of C begins and ends. */
typedef struct gemm_tile {
    const float *addend; /* NULL: none */
    int64_t ld_addend;   /* 0: one row for all */
    float *c;
    int64_t ldc;
    bool relu;
    const float *gate; /* C is 0 where this is not positive; NULL: everywhere kept */
    int64_t ld_gate;
} gemm_tile;

/* ---- packing ---- */

/* Floats from panel to panel of packed B: neighbours fall into different sets of the cache. */
inline_ int64_t panel_stride(int64_t k) {
    return k * NR + 16;
}

/* n columns of B that lie in rows of b, for a part of k: into panels [..][NR] that lie `stride`
 * apart, filled up with 0. */
inline_ void pack_b_rows(float *restrict_ to, int64_t stride, const real *restrict_ from,
                         int64_t ld, int64_t n, int64_t k) {
    for (int64_t l = 0; l < k; l++, from += ld) {
        float *panel = to + l * NR;
        int64_t j = 0;
        for (; j + NR <= n; j += NR, panel += stride)
#pragma GCC unroll 4
            for (int i = 0; i < NR; i += VW) v_store(panel + i, v_load_real(from + j + i));
        for (int64_t i = 0; j < n && i < NR; i++) panel[i] = j + i < n ? from_real(from[j + i]) : 0;
    }
}

/* ---- the tile ---- */

/* Where the tile's factors are. */
typedef struct gemm_factors {
    int64_t k;
    const float *a; /* A(i, l) at a[i * a_step + l]; by column at a[l * a_step + i] */
    int64_t a_step;
    const float *b; /* B(l, j) at b[l * b_step + j] */
    int64_t b_step;
} gemm_factors;

/* A step of k: a's numbers lie a_step apart. */
inline_ void tile_step(const int rows_, const float *restrict_ a, const int64_t a_step,
                       const float *restrict_ b, vf acc[MR][NV]) {
    vf y[NV];
#pragma GCC unroll 4
    for (int j = 0; j < NV; j++) y[j] = v_load(b + j * VW);
#pragma GCC unroll 6
    for (int i = 0; i < rows_; i++) {
        const vf x = v_set(a[i * a_step]);
#pragma GCC unroll 4
        for (int j = 0; j < NV; j++) acc[i][j] = v_fma(x, y[j], acc[i][j]);
    }
}

inline_ void tile_of(const int rows_, const bool by_column, const gemm_factors *from,
                     const gemm_tile *t) {
    const gemm_factors f = *from;
    vf acc[MR][NV];
#pragma GCC unroll 6
    for (int i = 0; i < rows_; i++)
#pragma GCC unroll 4
        for (int j = 0; j < NV; j++) {
            acc[i][j] = v_zero();
            if (t->addend) __builtin_prefetch(t->addend + i * t->ld_addend + j * VW);
        }
#pragma GCC unroll 2
    for (int64_t l = 0; l < f.k; l++)
        tile_step(rows_, by_column ? f.a + l * f.a_step : f.a + l, by_column ? 1 : f.a_step,
                  f.b + l * f.b_step, acc);
#pragma GCC unroll 6
    for (int i = 0; i < rows_; i++)
#pragma GCC unroll 4
        for (int j = 0; j < NV; j++) {
            vf x = acc[i][j];
            if (t->addend) x = v_add(x, v_load(t->addend + i * t->ld_addend + j * VW));
            if (t->relu) x = v_relu(x);
            if (t->gate) x = v_gate(x, v_load(t->gate + i * t->ld_gate + j * VW));
            v_store(t->c + i * t->ldc + j * VW, x);
        }
}

#define TILE_CASE(n)                                                                               \
    case n: tile_of(n, by_column, f, t); break;

inline_ void multiply_tile(int64_t rows_, const bool by_column, const gemm_factors *f,
                           const gemm_tile *t) {
    switch (rows_) {
        TILE_CASE(1)
        TILE_CASE(2)
        TILE_CASE(3)
        TILE_CASE(4)
#if defined(__AVX2__)
        TILE_CASE(5)
        TILE_CASE(6)
#endif
    }
}

#undef TILE_CASE

#endif
