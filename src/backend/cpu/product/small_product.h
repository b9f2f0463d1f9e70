/* small_product.h: products of the small matrices inside of attention, by one thread, operands as
 * they lie: C[m, n] (+)= A B, n whole vectors. In bf16 factors may be pairs of numbers along k,
 * each in the place of a float, for a unit that multiplies vectors of them, or tiles. */
#ifndef FTH_BACKEND_CPU_PRODUCT_SMALL_PRODUCT_H
#define FTH_BACKEND_CPU_PRODUCT_SMALL_PRODUCT_H

#include <stdbool.h>

#include "backend/cpu/tile/pairs.h"
#ifdef FTH_REAL_IS_bf16
#include "backend/cpu/product/pairs_turn.h"
#else
#include "backend/cpu/kernel/vec.h"
#endif

/* Floats, or pairs, in rows. */
typedef struct view {
    const float *data;
    int64_t ld;
} view;

/* What does not change from tile to tile. */
typedef struct small {
    int64_t k;
    view a; /* A(i, l) = a[i, l]; by column, not on tiles: a[l, i] */
    bool by_column;
    view b; /* B(l, j) = b[l, j] */
    float *c;
    int64_t ldc;
    bool add;
    const fth_cpu_pairs_path *unit; /* for pairs, which k counts; NULL: floats. bf16 alone */
} small;

/* How A and B lie, as far as the compiler should know it. */
typedef struct small_kind {
    bool by_column, pairs;
} small_kind;

/* Rows of bf16 are read as pairs where they lie. */
inline_ vf same_number(const float *at) {
    float x;
    memcpy(&x, at, sizeof x);
    return v_set(x);
}

inline_ vf small_step(const bool pairs, vf x, vf y, vf sum) {
#ifdef FTH_REAL_IS_bf16
    if (pairs) return v_dot_pairs(x, y, sum);
#endif
    (void)pairs;
    return v_fma(x, y, sum);
}

inline_ void small_tile(const int rows_, const int vectors, const small_kind kind, const small *s,
                        int64_t i0, int64_t j0) {
    const bool by_column = kind.by_column;
    const float *a = s->a.data + (by_column ? i0 : i0 * s->a.ld), *b = s->b.data + j0;
    const int64_t lda = s->a.ld, ldb = s->b.ld;
    float *c = s->c + i0 * s->ldc + j0;
    vf acc[12][4];
#pragma GCC unroll 12
    for (int i = 0; i < rows_; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            acc[i][j] = s->add ? v_load(c + i * s->ldc + j * VW) : v_zero();
    for (int64_t l = 0; l < s->k; l++, b += ldb) {
        vf x[4];
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) x[j] = v_load(b + j * VW);
#pragma GCC unroll 12
        for (int i = 0; i < rows_; i++) {
            const vf y = same_number(by_column ? a + l * lda + i : a + i * lda + l);
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++)
                acc[i][j] = small_step(kind.pairs, y, x[j], acc[i][j]);
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < rows_; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) v_store(c + i * s->ldc + j * VW, acc[i][j]);
}

/* All rows with `vectors` vectors of columns from j on. */
inline_ void small_columns(const int vectors, const small_kind kind, const small *s, int64_t m,
                           int64_t j) {
#if defined(__AVX512F__)
    const int high = vectors == 4 ? 6 : 12;
#else
    const int high = vectors == 4 ? 2 : 4;
#endif
    int64_t i = 0;
    /* a tile takes as long as its chain of sums, however few its rows are: 16 are twice 8 */
    if (high == 12 && m > 12 && m % 12 == 4)
        for (; i < 8; i += 8) small_tile(8, vectors, kind, s, i, j);
    for (; i + high <= m; i += high) small_tile(high, vectors, kind, s, i, j);
    for (; i + 8 <= m && high > 8; i += 8) small_tile(8, vectors, kind, s, i, j);
    for (; i + 4 <= m && high > 4; i += 4) small_tile(4, vectors, kind, s, i, j);
    for (; i + 2 <= m && high > 2; i += 2) small_tile(2, vectors, kind, s, i, j);
    for (; i < m; i++) small_tile(1, vectors, kind, s, i, j);
}

inline_ void small_all(const small_kind kind, const small *s, int64_t m, int64_t n) {
    int64_t j = 0;
    for (; j + 4 * VW <= n; j += 4 * VW) small_columns(4, kind, s, m, j);
    for (; j + 2 * VW <= n; j += 2 * VW) small_columns(2, kind, s, m, j);
    for (; j < n; j += VW) small_columns(1, kind, s, m, j);
}

#ifdef FTH_REAL_IS_bf16
/* On tiles k is whole tiles of pairs; rows of A and C and columns of B and C are there up to whole
 * tiles. */
static inline void small_tiles(int64_t m, int64_t n, const small *s) {
    enum { TILE = 16, BOTH = 2 * TILE };
    const int64_t size = sizeof(float), a_stride = s->a.ld * size, b_stride = s->b.ld * size;
    fth_tiles_block x = {.narrow = true,
                         .add = s->add,
                         .a = {NULL, a_stride, TILE * a_stride, TILE * size},
                         .b = {NULL, b_stride, TILE * size, TILE * b_stride},
                         .steps = s->k / TILE,
                         .c_stride = s->ldc * size};
    for (int64_t i = 0; i < m; i += BOTH)
        for (int64_t j = 0; j < n; j += BOTH) {
            x.two = m - i > TILE;
            x.half = n - j <= TILE;
            x.a.first = s->a.data + i * s->a.ld;
            x.b.first = s->b.data + j;
            x.c = s->c + i * s->ldc + j;
            s->unit->tiles.product(&x);
        }
}
#endif

static inline void small_product(int64_t m, int64_t n, const small *s) {
#ifdef FTH_REAL_IS_bf16
    if (fth_cpu_pairs_on_tiles(s->unit)) {
        small_tiles(m, n, s);
        return;
    }
    if (s->unit && s->by_column) {
        small_all((small_kind){.by_column = true, .pairs = true}, s, m, n);
        return;
    }
    if (s->unit) {
        small_all((small_kind){.pairs = true}, s, m, n);
        return;
    }
#endif
    if (s->by_column)
        small_all((small_kind){.by_column = true}, s, m, n);
    else
        small_all((small_kind){.by_column = false}, s, m, n);
}

#endif
