/* gemm_pairs_panels.c: products of few rows of bf16 with weights that were packed for vectors of
 * pairs (backend/cpu/tile/pairs.h) when the program was made. Reads n k weights once; bound by
 * the memory. */
#include "backend/cpu/product/gemm_panels.h"

#ifdef FTH_REAL_IS_bf16

#include "backend/cpu/product/gemm_pairs_end.h"

enum { DEPTH = 2048 }; /* most of k at a time */

/* A block of rows and of k, and what it is multiplied in. */
typedef struct block {
    int64_t row, n_rows, l, depth, pairs;
    real *a;  /* [FTH_PAIRS_ROWS][DEPTH] rows, filled up with 0 */
    float *c; /* [FTH_PAIRS_ROWS][FTH_PAIRS_COLUMNS] */
} block;

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void copy_rows(const gemm *g, const block *b) {
    const int64_t ld = 2 * b->pairs, n = b->depth;
    for (int64_t i = 0; i < b->n_rows; i++) {
        real *to = b->a + i * ld;
        memcpy(to, g->a.data + (b->row + i) * g->a.ld + b->l, sizeof *to * (size_t)n);
        memset(to + n, 0, sizeof *to * (size_t)(ld - n));
    }
}

/* One panel with a block of rows, over all of k. Rows of at most DEPTH have been copied already. */
static void multiply_panel(const gemm *g, block *b, const real *panel, int64_t column) {
    const int64_t n = least(FTH_PAIRS_COLUMNS, g->n - column);
    const bool direct = n == FTH_PAIRS_COLUMNS && gemm_pairs_direct(g, DEPTH);
    for (b->l = 0; b->l < g->k; b->l += DEPTH) {
        fth_cpu_pairs_end end = {.floats = b->l > 0 ? b->c : NULL,
                                 .ld_floats = FTH_PAIRS_COLUMNS,
                                 .full = b->c,
                                 .ld = FTH_PAIRS_COLUMNS};
        if (direct) end = gemm_pairs_end(g, b->row, column, 0);
        b->depth = least(DEPTH, g->k - b->l);
        b->pairs = fth_text_pairs_of(g->pairs, b->depth);
        if (g->k > DEPTH) copy_rows(g, b);
        g->pairs->product(b->n_rows, (fth_cpu_pairs_a){b->a, 2 * b->pairs, false},
                          panel + b->l * FTH_PAIRS_COLUMNS, b->pairs, &end);
    }
    for (int64_t i = 0; i < b->n_rows && !direct; i++)
        FTH_NAME(gemm_finish_row)(g, b->row + i, column, n, 0, b->c + i * FTH_PAIRS_COLUMNS);
}

void FTH_NAME(gemm_pairs_panels)(const gemm *g, const void *panels, fth_cpu_share rows_,
                                 fth_cpu_share mine, void *own) {
    block b = {.a = own, .depth = g->k, .pairs = fth_text_pairs_of(g->pairs, g->k)};
    b.c = (float *)(void *)(b.a + FTH_PAIRS_ROWS * DEPTH);
    const int64_t size = fth_cpu_pairs_panel(g->pairs, g->k);
    for (b.row = rows_.begin; b.row < rows_.end; b.row += FTH_PAIRS_ROWS) {
        b.n_rows = least(FTH_PAIRS_ROWS, rows_.end - b.row);
        b.l = 0;
        if (g->k <= DEPTH) copy_rows(g, &b);
        for (int64_t p = mine.begin; p < mine.end; p++)
            multiply_panel(g, &b, (const real *)panels + p * size, p * FTH_PAIRS_COLUMNS);
    }
}

#endif
