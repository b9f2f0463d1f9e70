/* gemm_fma.h: the inner product kernel on fused multiply-add: a tile of up to MR rows and NR columns
 * of C in registers. What counts beside the multiply-adds is the number of other instructions:
 * AVX-512's 6 x 64 has 10 loads for 24 multiply-adds and runs at 98 % of the units' peak (14 x 32:
 * 16 for 28 and 90 %). */
#ifndef FTH_BACKEND_CPU_KERNEL_GEMM_FMA_H
#define FTH_BACKEND_CPU_KERNEL_GEMM_FMA_H

#include "backend/cpu/kernel/kernel.h"
#include "backend/cpu/kernel/vec.h"

#if defined(__AVX512F__)
enum { MR = 6, NV = 4 }; /* 24 of 32 registers */
#elif defined(__AVX2__)
enum { MR = 6, NV = 2 }; /* 12 of 16 */
#else
enum { MR = 4, NV = 2 };
#endif
enum {
    NR = NV * VW,
    KC = 512,           /* of k at a time: a tile of A stays in the first-level cache */
    A_STRIDE = KC + 16, /* floats from row to row of a packed tile: rows fall into different sets */
    A_TILES = 8,        /* tiles packed at a time where A lies by columns: whole cache lines */
    A_COLUMNS = A_TILES * MR,
    AHEAD = 8 /* rows that are asked for before they are used */
};

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

/* A tile of rows of A: [n][A_STRIDE]. */
static void pack_rows(float *restrict_ to, const real *restrict_ from, int64_t ld, int64_t n,
                      int64_t k) {
    int64_t l = 0;
    for (; l + VW <= k; l += VW)
        for (int64_t i = 0; i < n; i++)
            v_store(to + i * A_STRIDE + l, v_load_real(from + i * ld + l));
    for (; l < k; l++)
        for (int64_t i = 0; i < n; i++) to[i * A_STRIDE + l] = from_real(from[i * ld + l]);
}

/* Floats from tile to tile of packed columns of A: some more than the tile has, since copies of a
 * row's part are made in whole vectors. */
inline_ int64_t tile_stride(int64_t k) {
    return k * MR + 8;
}

/* At least MR numbers; up to 8 are read and written. */
inline_ void copy_tile_row(float *restrict_ to, const real *restrict_ from) {
#if defined(__AVX2__) && defined(FTH_REAL_IS_bf16)
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));
    _mm256_storeu_ps(to, _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)));
#elif defined(__AVX2__)
    _mm256_storeu_ps(to, _mm256_loadu_ps(from));
#else
    for (int i = 0; i < MR; i++) to[i] = from_real(from[i]);
#endif
}

/* n columns of A, at most A_COLUMNS, as tiles: [tiles][k][MR]. Rows are asked for some rows ahead:
 * they lie too far apart for the processor to see them coming. */
static void pack_columns(float *restrict_ to, const real *restrict_ from, int64_t ld, int64_t n,
                         int64_t k) {
    const int64_t stride = tile_stride(k), safe = n - 8; /* last place where 8 can be read */
    for (int64_t l = 0; l < k; l++, from += ld, to += MR) {
        for (int64_t i = 0; i < n && l + AHEAD < k; i += 64 / (int64_t)sizeof(real))
            __builtin_prefetch(from + AHEAD * ld + i);
        float *tile = to;
        int64_t i = 0;
        for (; i <= safe; i += MR, tile += stride) copy_tile_row(tile, from + i);
        for (; i < n; i += MR, tile += stride)
            for (int64_t c = i; c < n && c < i + MR; c++) tile[c - i] = from_real(from[c]);
    }
}

/* Floats from panel to panel of packed B: neighbours fall into different sets of the cache. */
inline_ int64_t panel_stride(int64_t k) {
    return k * NR + 16;
}

/* Columns [j, j + n) of B that lie in rows of b: [panels][k][NR], filled up with 0. */
static void pack_b_rows(float *restrict_ to, const real *restrict_ from, int64_t ld, int64_t n,
                        int64_t k) {
    for (int64_t l = 0; l < k; l++, from += ld) {
        float *panel = to + l * NR;
        int64_t j = 0;
        for (; j + NR <= n; j += NR, panel += panel_stride(k))
#pragma GCC unroll 4
            for (int i = 0; i < NR; i += VW) v_store(panel + i, v_load_real(from + j + i));
        for (int64_t i = 0; j < n && i < NR; i++) panel[i] = j + i < n ? from_real(from[j + i]) : 0;
    }
}

/* VW columns of a panel from VW rows of b, over k: a transposition. */
static void pack_transposed(float *restrict_ to, const real *restrict_ from, int64_t ld,
                            int64_t k) {
    int64_t l = 0;
    for (; l + VW <= k; l += VW) {
        vf r[VW];
#pragma GCC unroll 16
        for (int i = 0; i < VW; i++) r[i] = v_load_real(from + i * ld + l);
        v_transpose(r);
#pragma GCC unroll 16
        for (int i = 0; i < VW; i++) v_store(to + (l + i) * NR, r[i]);
    }
    for (; l < k; l++)
        for (int i = 0; i < VW; i++) to[l * NR + i] = from_real(from[i * ld + l]);
}

/* The same where the columns of B lie in rows of b. */
static void pack_b_columns(float *restrict_ to, const real *restrict_ from, int64_t ld, int64_t n,
                           int64_t k) {
    for (int64_t j = 0; j < n; j += VW) {
        float *panel = to + j / NR * panel_stride(k) + j % NR;
        if (j + VW <= n) {
            pack_transposed(panel, from + j * ld, ld, k);
            continue;
        }
        for (int64_t l = 0; l < k; l++)
            for (int64_t i = 0; i < VW; i++)
                panel[l * NR + i] = j + i < n ? from_real(from[(j + i) * ld + l]) : 0;
    }
    for (int64_t j = v_round(n); j % NR; j += VW) { /* the rest of the last panel */
        float *panel = to + j / NR * panel_stride(k) + j % NR;
        for (int64_t l = 0; l < k; l++) v_store(panel + l * NR, v_zero());
    }
}

/* ---- the tile ---- */

/* Where the tile's factors are. */
typedef struct gemm_factors {
    int64_t k;
    const float *a; /* A(i, l) at a[i * a_step + l]; by column at a[l * a_step + i] */
    int64_t a_step;
    bool by_column;
    const float *b; /* B(l, j) at b[l * b_step + j] */
    int64_t b_step;
} gemm_factors;

inline_ void tile_of(const int rows_, const bool by_column, const gemm_factors *f,
                     const gemm_tile *t) {
    const float *restrict_ a = f->a, *restrict_ b = f->b;
    const int64_t k = f->k, a_step = f->a_step, b_step = f->b_step;
    vf acc[MR][NV];
#pragma GCC unroll 6
    for (int i = 0; i < rows_; i++)
#pragma GCC unroll 4
        for (int j = 0; j < NV; j++) {
            acc[i][j] = v_zero();
            if (t->addend) __builtin_prefetch(t->addend + i * t->ld_addend + j * VW);
        }
#pragma GCC unroll 2
    for (int64_t l = 0; l < k; l++, b += b_step) {
        vf y[NV];
#pragma GCC unroll 4
        for (int j = 0; j < NV; j++) y[j] = v_load(b + j * VW);
#pragma GCC unroll 6
        for (int i = 0; i < rows_; i++) {
            const vf x = v_set(by_column ? a[l * a_step + i] : a[i * a_step + l]);
#pragma GCC unroll 4
            for (int j = 0; j < NV; j++) acc[i][j] = v_fma(x, y[j], acc[i][j]);
        }
    }
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
    case n:                                                                                        \
        if (f->by_column)                                                                          \
            tile_of(n, true, f, t);                                                                \
        else                                                                                       \
            tile_of(n, false, f, t);                                                               \
        break;

static void multiply_tile(int64_t rows_, const gemm_factors *f, const gemm_tile *t) {
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
