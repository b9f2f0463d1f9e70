/* gemm_panels.c: products of few rows with weights in panels, as steps of generation have them.
 * Reads n k weights once, end to end; 2 m n k operations. One row: bound by the memory; 32: by
 * both, so what comes next is asked for while the units work.
 *
 * A block of a panel stays in the first-level cache while all rows meet it. 32 rows, two cores of
 * an Ice Lake, 105 MB of weights: 6.9 ms, of which reading alone takes 5.1 and the multiply-adds
 * 5.3; with panels that come from the second-level cache for each tile 7.6, without asking ahead
 * 10. */
#include "backend/cpu/product/gemm_panels.h"

#include "backend/cpu/kernel/vec.h"

#if defined(__AVX2__)
enum { HIGH = 6 }; /* rows of a tile: AVX-512 holds 24 sums in 32 registers, AVX2 12 in 16 */
#else
enum { HIGH = 4 };
#endif
enum {
    NR = GEMM_PANEL_COLUMNS,
    WIDE = NR / VW,                /* vectors of a tile */
    DEPTH = 4096 / NR,             /* of k at a time */
    MOST_ROWS = 96,                /* at a time */
    LINE = 64 / (int)sizeof(real), /* numbers of a cache line */
    LINES = NR > LINE ? NR / LINE : 1,
    AHEAD = 32768 / (int)sizeof(real) /* numbers between what is used and what is asked for */
};

int64_t FTH_NAME(gemm_panels_bytes)(void) {
    return (int64_t)sizeof(float) * MOST_ROWS * (NR + DEPTH);
}

/* ---- packing ---- */

/* VW columns of a panel from VW rows of weights. */
static void pack_vectors(real *restrict_ to, const real *restrict_ from, int64_t ld, int64_t k) {
    int64_t l = 0;
    for (; l + VW <= k; l += VW) {
        vf r[VW];
#pragma GCC unroll 16
        for (int i = 0; i < VW; i++) r[i] = v_load_real(from + i * ld + l);
        v_transpose(r);
#pragma GCC unroll 16
        for (int i = 0; i < VW; i++) v_store_real(to + (l + i) * NR, r[i]);
    }
    for (; l < k; l++)
        for (int i = 0; i < VW; i++) to[l * NR + i] = from[i * ld + l];
}

void FTH_NAME(pack_panels)(const fth_tensor *w, fth_cpu_share panels, void *to) {
    const int64_t k = w->width;
    for (int64_t j = panels.begin * NR; j < panels.end * NR; j += VW) {
        const real *from = (const real *)w->data + j * w->ld;
        real *place = (real *)to + j / NR * k * NR + j % NR;
        if (j + VW <= w->rows) {
            pack_vectors(place, from, w->ld, k);
            continue;
        }
        for (int64_t l = 0; l < k; l++)
            for (int64_t i = 0; i < VW; i++)
                place[l * NR + i] = j + i < w->rows ? from[i * w->ld + l] : 0;
    }
}

/* ---- the tile ---- */

/* Rows of A and the block of a panel that they meet. */
typedef struct factors {
    const float *a; /* [..][lda] */
    int64_t lda, k;
    const real *b; /* [k][NR] */
    float *sums;   /* [..][NR] */
    bool add;      /* to sums */
    int64_t ahead; /* from a number of b to one that is asked for */
} factors;

/* lines: how many lines are asked for with each row of the panel. */
inline_ void tile_of(const int high, const int lines, const factors *f) {
    vf acc[HIGH][WIDE];
    const real *restrict_ b = f->b;
#pragma GCC unroll 6
    for (int i = 0; i < high; i++)
#pragma GCC unroll 4
        for (int j = 0; j < WIDE; j++)
            acc[i][j] = f->add ? v_load(f->sums + i * NR + j * VW) : v_zero();
    const real *next = b + f->ahead;
    for (int64_t l = 0; l < f->k; l++, b += NR, next += lines * LINE) {
        vf y[WIDE];
#pragma GCC unroll 4
        for (int j = 0; j < lines; j++) __builtin_prefetch(next + j * LINE, 0, 2);
#pragma GCC unroll 4
        for (int j = 0; j < WIDE; j++) y[j] = v_load_real(b + j * VW);
#pragma GCC unroll 6
        for (int i = 0; i < high; i++) {
            const vf x = v_set(f->a[i * f->lda + l]);
#pragma GCC unroll 4
            for (int j = 0; j < WIDE; j++) acc[i][j] = v_fma(x, y[j], acc[i][j]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < high; i++)
#pragma GCC unroll 4
        for (int j = 0; j < WIDE; j++) v_store(f->sums + i * NR + j * VW, acc[i][j]);
}

#define TILE_CASE(n)                                                                               \
    case n:                                                                                        \
        if (lines == 0)                                                                            \
            tile_of(n, 0, f);                                                                      \
        else if (lines == 1)                                                                       \
            tile_of(n, 1, f);                                                                      \
        else                                                                                       \
            tile_of(n, LINES, f);                                                                  \
        break;

static void multiply_tile(int64_t high, int lines, const factors *f) {
    switch (high) {
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

/* ---- the product ---- */

/* What a thread works with. */
typedef struct work {
    float *sums;     /* [MOST_ROWS][NR] */
    float *a;        /* [MOST_ROWS][DEPTH], where rows have to be made floats */
    const real *end; /* of the thread's panels: nothing behind is asked for */
} work;

/* Rows from `row` on of A for a block of k: where they lie, or copied. */
static const float *rows_of_a(const gemm *g, const work *w, int64_t row, int64_t n, int64_t l,
                              int64_t depth, int64_t *ld) {
    const real *from = g->a.data + row * g->a.ld + l;
    *ld = g->a.ld;
    if (REAL_DTYPE == FTH_F32) return (const float *)(const void *)from;
    *ld = DEPTH;
    for (int64_t i = 0; i < n; i++, from += g->a.ld)
#pragma omp simd
        for (int64_t c = 0; c < depth; c++) w->a[i * DEPTH + c] = from_real(from[c]);
    return w->a;
}

/* All tiles of n rows with a block of a panel. The lines of the block that lies AHEAD are asked for
 * by the first tiles, in as even a stream as there are tiles for. */
static void multiply_block(const gemm *g, const work *w, const real *b, int64_t row, int64_t n,
                           int64_t l, int64_t depth) {
    factors f = {.k = depth, .b = b, .add = l > 0, .ahead = AHEAD};
    const float *a = rows_of_a(g, w, row, n, l, depth, &f.lda);
    const int64_t tiles = (n + HIGH - 1) / HIGH;
    const bool asks = b + AHEAD < w->end;
    const int lines = tiles < LINES ? LINES : 1;
    for (int64_t t = 0; t < tiles; t++) { /* of nearly the same height */
        const int64_t i = n * t / tiles;
        f.a = a + i * f.lda;
        f.sums = w->sums + i * NR;
        multiply_tile(n * (t + 1) / tiles - i, asks && t * lines < LINES ? lines : 0, &f);
        f.ahead += depth * lines * LINE;
    }
}

/* A thread's rows and panels. */
static void multiply_share(const gemm *g, const real *b, fth_cpu_share rows_, fth_cpu_share mine,
                           float *sums) {
    const int64_t size = g->k * NR;
    const work w = {sums, sums + MOST_ROWS * NR, b + mine.end * size};
    for (int64_t p = mine.begin; p < mine.end; p++) {
        const int64_t column = p * NR, n = g->n - column < NR ? g->n - column : NR;
        for (int64_t row = rows_.begin; row < rows_.end; row += MOST_ROWS) {
            const int64_t high = rows_.end - row < MOST_ROWS ? rows_.end - row : MOST_ROWS;
            for (int64_t l = 0; l < g->k; l += DEPTH)
                multiply_block(g, &w, b + p * size + l * NR, row, high, l,
                               g->k - l < DEPTH ? g->k - l : DEPTH);
            for (int64_t i = 0; i < high; i++)
                FTH_NAME(gemm_finish_row)(g, row + i, column, n, 0, sums + i * NR);
        }
    }
}

/* Threads share panels; where there are fewer panels than threads, rows too. */
static int row_threads(const fth_team *team, int64_t panels, int64_t m) {
    const int64_t wanted = team->n_threads / panels, most = (m + HIGH - 1) / HIGH;
    const int64_t n = wanted < most ? wanted : most;
    return n > 1 ? (int)n : 1;
}

void FTH_NAME(gemm_panels)(const gemm *g, const void *panels, const fth_team *team, void *own) {
    const int64_t columns = g->pairs ? FTH_PAIRS_COLUMNS : NR;
    const int64_t n_panels = (g->n + columns - 1) / columns;
    if (g->m == 0) return;
    const int by_rows = row_threads(team, n_panels, g->m), by_panels = team->n_threads / by_rows;
    if (team->thread >= by_rows * by_panels) return;
    const fth_team row_team = {team->thread / by_panels, by_rows, NULL};
    const fth_team panel_team = {team->thread % by_panels, by_panels, NULL};
    const fth_cpu_share rows_ = fth_team_share(&row_team, g->m, 1);
    const fth_cpu_share mine = fth_team_share(&panel_team, n_panels, 1);
    if (fth_cpu_pairs_on_tiles(g->pairs)) {
        const int64_t end = mine.end * columns;
        const fth_cpu_share columns_ = {mine.begin * columns, end < g->n ? end : g->n};
        FTH_NAME(gemm_tiles)(g, panels, rows_, columns_, own);
        return;
    }
#ifdef FTH_REAL_IS_bf16
    if (g->pairs) {
        FTH_NAME(gemm_pairs_panels)(g, panels, rows_, mine, own);
        return;
    }
#endif
    multiply_share(g, panels, rows_, mine, own);
}
