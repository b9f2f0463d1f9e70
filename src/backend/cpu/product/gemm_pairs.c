/* gemm_pairs.c: products of bf16 on vectors of pairs (backend/cpu/tile/pairs.h). 2 m n k
 * operations, bound by the unit. B is packed into panels with neighbours along k side by side, for
 * a whole block of k; the panel that blocks of rows of A meet stays in the second-level cache. A is
 * read where it lies, or becomes pairs too where it lies by columns. */
#include "backend/cpu/product/gemm.h"

#ifdef FTH_REAL_IS_bf16

#include "backend/cpu/product/gemm_pairs_end.h"
#include "backend/cpu/product/pairs_turn.h"

enum {
    DEPTH = 2048,                              /* most of k at a time */
    A_NUMBERS = FTH_PAIRS_ROWS * DEPTH,        /* of bf16: a block of rows of A */
    B_NUMBERS = 4 * FTH_PAIRS_COLUMNS * DEPTH, /* of bf16: panels of B */
    MOST_COLUMNS = 512,                        /* of a block of C */
    C_FLOATS = 2 * FTH_PAIRS_ROWS * MOST_COLUMNS
};

int64_t FTH_NAME(gemm_pairs_bytes)(void) {
    return (int64_t)sizeof(real) * (A_NUMBERS + B_NUMBERS) + (int64_t)sizeof(float) * C_FLOATS;
}

/* A block of C and of k that a thread is at, and what it works with. */
typedef struct block {
    int64_t row, n_rows, column, n_columns, l, depth;
    int64_t pairs; /* of depth */
    bool direct;   /* sums become results at once; else they wait in c */
    real *a, *b;   /* rows of A (fth_cpu_pairs_a), [panels][pairs][FTH_PAIRS_COLUMNS][2] */
    float *c;      /* [rows of C from first on][ldc] */
    int64_t first, ldc;
} block;

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* ---- packing ---- */

/* A number of b. */
static real b_at(const gemm *g, int64_t i, int64_t j) {
    return g->b_full.data ? to_real(g->b_full.data[i * g->b_full.ld + j])
                          : g->b.data[i * g->b.ld + j];
}

/* VW columns of B, which lie in rows of b from `column` on, and VW pairs of them, at an edge. */
static void turn_edge(const gemm *g, const block *b, int64_t column, int64_t pair, uint32_t *to) {
    const int64_t wide = least(VW, b->pairs - pair);
    for (int64_t q = 0; q < wide; q++)
        for (int64_t i = 0; i < VW; i++) {
            const int64_t l = 2 * (pair + q);
            const bool first = column + i < g->n && l < b->depth;
            const bool second = column + i < g->n && l + 1 < b->depth;
            to[q * FTH_PAIRS_COLUMNS + i] = pair_of(first ? b_at(g, column + i, b->l + l) : 0,
                                                    second ? b_at(g, column + i, b->l + l + 1) : 0);
        }
}

/* One panel of B whose columns lie in rows of b. */
static void pack_columns(const gemm *g, const block *b, int64_t column, uint32_t *to) {
    for (int64_t j = 0; j < FTH_PAIRS_COLUMNS; j += VW)
        for (int64_t p = 0; p < b->pairs; p += VW) {
            uint32_t *place = to + p * FTH_PAIRS_COLUMNS + j;
            if (column + j + VW > g->n || b->depth < 2 * (p + VW))
                turn_edge(g, b, column + j, p, place);
            else if (g->b_full.data)
                turn_floats(place, 4 * FTH_PAIRS_COLUMNS,
                            g->b_full.data + (column + j) * g->b_full.ld + b->l + 2 * p,
                            4 * g->b_full.ld);
            else
                turn_pairs(place, 4 * FTH_PAIRS_COLUMNS,
                           g->b.data + (column + j) * g->b.ld + b->l + 2 * p, 2 * g->b.ld);
        }
}

/* Rows l and l + 1 of a whole panel. */
static void pack_pair(const gemm *g, int64_t l, int64_t column, uint32_t *restrict_ to) {
    if (g->b_full.data) {
        const float *first = g->b_full.data + l * g->b_full.ld + column;
        const float *second = first + g->b_full.ld;
#pragma GCC unroll 4
        for (int64_t j = 0; j < FTH_PAIRS_COLUMNS; j += VW) {
            const vf pairs = v_pairs_rounded(v_load(first + j), v_load(second + j));
            memcpy(to + j, &pairs, sizeof pairs);
        }
        return;
    }
    const real *first = g->b.data + l * g->b.ld + column, *second = first + g->b.ld;
#pragma omp simd
    for (int64_t j = 0; j < FTH_PAIRS_COLUMNS; j++) to[j] = pair_of(first[j], second[j]);
}

/* One panel of B that lies in rows of b. */
static void pack_rows(const gemm *g, const block *b, int64_t column, uint32_t *to) {
    const int64_t n = least(FTH_PAIRS_COLUMNS, g->n - column);
    for (int64_t p = 0; p < b->pairs; p++, to += FTH_PAIRS_COLUMNS) {
        const int64_t l = b->l + 2 * p, left = b->depth - 2 * p;
        if (left >= 2 && n == FTH_PAIRS_COLUMNS) {
            pack_pair(g, l, column, to);
            continue;
        }
        for (int64_t j = 0; j < FTH_PAIRS_COLUMNS; j++)
            to[j] = pair_of(j < n ? b_at(g, l, column + j) : 0,
                            j < n && left > 1 ? b_at(g, l + 1, column + j) : 0);
    }
}

static void pack_b(const gemm *g, const block *b) {
    for (int64_t j = 0; j < b->n_columns; j += FTH_PAIRS_COLUMNS) {
        uint32_t *to = (uint32_t *)(void *)b->b + j * b->pairs;
        if (g->b_by_column)
            pack_columns(g, b, b->column + j, to);
        else
            pack_rows(g, b, b->column + j, to);
    }
}

/* Rows of A that lie in rows, filled up with 0. */
static void copy_a(const gemm *g, const block *b) {
    const int64_t ld = 2 * b->pairs, n = b->depth;
    for (int64_t i = 0; i < b->n_rows; i++) {
        real *to = b->a + i * ld;
        memcpy(to, g->a.data + (b->row + i) * g->a.ld + b->l, sizeof *to * (size_t)n);
        memset(to + n, 0, sizeof *to * (size_t)(ld - n));
    }
}

/* Rows of A that lie in columns of a: [pairs][n_rows][2]. */
static void turn_a(const gemm *g, const block *b) {
    const int64_t n = b->n_rows;
    uint32_t *restrict_ to = (uint32_t *)(void *)b->a;
    const real *first = g->a.data + b->l * g->a.ld + b->row;
    for (int64_t l = 0; l + 1 < b->depth; l += 2, first += 2 * g->a.ld, to += n) {
        const real *second = first + g->a.ld;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) to[i] = pair_of(first[i], second[i]);
    }
    for (int64_t i = 0; i < n && b->depth % 2; i++) to[i] = pair_of(first[i], 0);
}

/* The rows of A of a block: where they lie, or packed now. */
static fth_cpu_pairs_a rows_of_a(const gemm *g, const block *b) {
    if (g->accumulate) {
        turn_a(g, b);
        return (fth_cpu_pairs_a){b->a, 2 * b->n_rows, true};
    }
    if (2 * b->pairs == b->depth)
        return (fth_cpu_pairs_a){g->a.data + b->row * g->a.ld + b->l, g->a.ld, false};
    copy_a(g, b);
    return (fth_cpu_pairs_a){b->a, 2 * b->pairs, false};
}

/* ---- the product ---- */

/* What becomes of the sums of columns from j of the block on. */
static fth_cpu_pairs_end end_of(const gemm *g, const block *b, int64_t j) {
    if (b->direct) return gemm_pairs_end(g, b->row, b->column + j, b->l);
    float *c = b->c + (b->row - b->first) * b->ldc + j;
    return (fth_cpu_pairs_end){
        .floats = b->l > 0 ? c : NULL, .ld_floats = b->ldc, .full = c, .ld = b->ldc};
}

/* All panels of the block with its rows of A. */
static void multiply(const gemm *g, const block *b) {
    const fth_cpu_pairs_a a = rows_of_a(g, b);
    for (int64_t j = 0; j < b->n_columns; j += FTH_PAIRS_COLUMNS) {
        const fth_cpu_pairs_end end = end_of(g, b, j);
        g->pairs->product(b->n_rows, a, b->b + 2 * j * b->pairs, b->pairs, &end);
    }
}

/* A block of columns with some rows whose sums can wait. */
static void multiply_rows(const gemm *g, block *b, fth_cpu_share rows_, bool packed) {
    b->first = rows_.begin;
    for (b->l = 0; b->l < g->k; b->l += DEPTH) {
        b->depth = least(DEPTH, g->k - b->l);
        b->pairs = fth_text_pairs_of(g->pairs, b->depth);
        if (!packed) pack_b(g, b);
        for (b->row = rows_.begin; b->row < rows_.end; b->row += FTH_PAIRS_ROWS) {
            b->n_rows = least(FTH_PAIRS_ROWS, rows_.end - b->row);
            multiply(g, b);
        }
    }
    for (int64_t row = rows_.begin; row < rows_.end && !b->direct; row++) FTH_NAME(gemm_finish_row)
    (g, row, b->column, b->n_columns, 0, b->c + (row - b->first) * b->ldc);
}

void FTH_NAME(gemm_pairs)(const gemm *g, fth_cpu_share rows_, fth_cpu_share columns, void *own) {
    const int64_t most = least(DEPTH, 2 * fth_text_pairs_of(g->pairs, g->k));
    const int64_t wide =
        least(MOST_COLUMNS, B_NUMBERS / most / FTH_PAIRS_COLUMNS * FTH_PAIRS_COLUMNS);
    block b = {.a = own, .ldc = wide};
    b.b = b.a + A_NUMBERS;
    b.c = (float *)(void *)(b.b + B_NUMBERS);
    for (b.column = columns.begin; b.column < columns.end; b.column += wide) {
        b.n_columns = least(wide, columns.end - b.column);
        b.direct = b.n_columns % FTH_PAIRS_COLUMNS == 0 && gemm_pairs_direct(g, DEPTH);
        const int64_t high = b.direct ? rows_.end - rows_.begin : C_FLOATS / wide;
        for (int64_t row = rows_.begin; row < rows_.end; row += high)
            multiply_rows(g, &b, (fth_cpu_share){row, least(row + high, rows_.end)},
                          row > rows_.begin && g->k <= DEPTH);
    }
}

#endif
