/* gemm_dots.c: products of few rows in programs whose weights are not packed (gemm_panels.c has the
 * others): short batches. Both factors lie in rows, so every number of C is a dot product of two of
 * them, and weights are read once, where they lie. */
#include "backend/cpu/product/gemm.h"
#include "backend/cpu/kernel/vec.h"

#if defined(__AVX512F__)
enum { HIGH = 6 }; /* rows of A at a time: 24 of 32 registers hold sums */
#else
enum { HIGH = 2 };
#endif
enum {
    WIDE = 4,    /* rows of B at a time */
    BLOCK = 64,  /* rows of B that all rows of A meet before the next come */
    DEPTH = 1024 /* of k at a time: a tile's rows of A and B stay in the first-level cache */
};

/* Rows of A and of B, and the place of their dots. */
typedef struct dots {
    const real *a, *b;
    int64_t lda, ldb, k;
    bool add; /* to c */
    float *c; /* [..][BLOCK] */
} dots;

inline_ void dots_tile(const int high, const int wide, const dots *d) {
    vf acc[HIGH][WIDE];
    float tail[HIGH][WIDE];
#pragma GCC unroll 6
    for (int i = 0; i < high; i++)
#pragma GCC unroll 4
        for (int j = 0; j < WIDE; j++) acc[i][j] = v_zero();
    int64_t l = 0;
    for (; l + VW <= d->k; l += VW) {
        vf y[WIDE];
#pragma GCC unroll 4
        for (int j = 0; j < wide; j++) {
            y[j] = v_load_real(d->b + j * d->ldb + l);
            if (high == 1) __builtin_prefetch(d->b + (j + WIDE) * d->ldb + l);
        }
#pragma GCC unroll 6
        for (int i = 0; i < high; i++) {
            const vf x = v_load_real(d->a + i * d->lda + l);
#pragma GCC unroll 4
            for (int j = 0; j < wide; j++) acc[i][j] = v_fma(x, y[j], acc[i][j]);
        }
    }
    for (int i = 0; i < high; i++)
        for (int j = 0; j < wide; j++) {
            tail[i][j] = d->add ? d->c[i * BLOCK + j] : 0;
            for (int64_t t = l; t < d->k; t++)
                tail[i][j] += from_real(d->a[i * d->lda + t]) * from_real(d->b[j * d->ldb + t]);
        }
#pragma GCC unroll 6
    for (int i = 0; i < high; i++) {
        float sums[WIDE];
        v_sums4(acc[i], sums);
        for (int j = 0; j < wide; j++) d->c[i * BLOCK + j] = tail[i][j] + sums[j];
    }
}

inline_ void dots_rows(const int high, int64_t wide, const dots *d) {
    switch (wide) {
    case 1: dots_tile(high, 1, d); break;
    case 2: dots_tile(high, 2, d); break;
    case 3: dots_tile(high, 3, d); break;
    default: dots_tile(high, 4, d); break;
    }
}

static void dots_of(int64_t high, int64_t wide, const dots *d) {
    switch (high) {
    case 1: dots_rows(1, wide, d); break;
#if defined(__AVX512F__)
    case 2: dots_rows(2, wide, d); break;
    case 3: dots_rows(3, wide, d); break;
    case 4: dots_rows(4, wide, d); break;
    case 5: dots_rows(5, wide, d); break;
#endif
    default: dots_rows(HIGH, wide, d); break;
    }
}

/* Rows [j, j + n) of B with all rows of A. */
static void dots_block(const gemm *g, int64_t j, int64_t n, float *acc) {
    const int64_t tiles = (g->m + HIGH - 1) / HIGH;
    for (int64_t l = 0; l < g->k; l += DEPTH)
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t i = g->m * t / tiles, high = g->m * (t + 1) / tiles - i;
            dots d = {.a = g->a.data + i * g->a.ld + l,
                      .lda = g->a.ld,
                      .ldb = g->b.ld,
                      .k = g->k - l < DEPTH ? g->k - l : DEPTH,
                      .add = l > 0};
            for (int64_t c = 0; c < n; c += WIDE) {
                d.b = g->b.data + (j + c) * g->b.ld + l;
                d.c = acc + i * BLOCK + c;
                dots_of(high, n - c, &d);
            }
        }
    for (int64_t i = 0; i < g->m; i++) FTH_NAME(gemm_finish_row)(g, i, j, n, 0, acc + i * BLOCK);
}

/* own: [GEMM_FEW_ROWS][BLOCK] floats at least */
void FTH_NAME(gemm_dots)(const gemm *g, const fth_team *team, void *own) {
    const fth_cpu_share mine = fth_team_share(team, g->n, 16);
    for (int64_t j = mine.begin; j < mine.end; j += BLOCK)
        dots_block(g, j, mine.end - j < BLOCK ? mine.end - j : BLOCK, own);
}
