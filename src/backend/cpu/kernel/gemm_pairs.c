/* gemm_pairs.c: products of bf16 on vectors of pairs (backend/cpu/pairs.h). B is packed into
 * panels with neighbours along k side by side, for a whole block of k, and stays in the second-level
 * cache; A is read where it lies, or turned where it lies by columns. */
#include "backend/cpu/kernel/gemm.h"

#ifdef FTH_REAL_IS_bf16

#include "backend/cpu/kernel/pairs_turn.h"

enum {
    DEPTH = 2048,                              /* most of k at a time */
    A_NUMBERS = FTH_PAIRS_ROWS * DEPTH,        /* of bf16: a block of rows of A */
    B_NUMBERS = 2 * FTH_PAIRS_COLUMNS * DEPTH, /* of bf16: panels of B */
    MOST_COLUMNS = 512,                        /* of a block of C */
    C_FLOATS = FTH_PAIRS_ROWS * MOST_COLUMNS
};

int64_t FTH_NAME(gemm_pairs_bytes)(void) {
    return (int64_t)sizeof(real) * (A_NUMBERS + B_NUMBERS) + (int64_t)sizeof(float) * C_FLOATS;
}

/* A block of C and of k that a thread is at, and what it works with. */
typedef struct block {
    int64_t row, n_rows, column, n_columns, l, depth;
    int64_t pairs; /* of depth, filled up to what the unit takes */
    real *a, *b;   /* [FTH_PAIRS_ROWS][2 pairs], [panels][pairs][FTH_PAIRS_COLUMNS][2] */
    float *c;      /* [FTH_PAIRS_ROWS][MOST_COLUMNS] */
} block;

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t round_up(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}

/* VW rows of numbers, of which n exist and have `depth` numbers, as rows of `pairs` pairs. */
static void pairs_of_rows(uint32_t *to, int64_t ld, const real *from, int64_t ld_from, int64_t n,
                          int64_t depth, int64_t pairs) {
    for (int64_t i = 0; i < VW; i++)
        for (int64_t p = 0; p < pairs; p++) {
            const real *x = from + i * ld_from + 2 * p;
            const bool first = i < n && 2 * p < depth, second = i < n && 2 * p + 1 < depth;
            to[i * ld + p] = pair_of(first ? x[0] : 0, second ? x[1] : 0);
        }
}

/* One panel of B whose columns lie in rows of b. */
static void pack_columns(const gemm *g, const block *b, int64_t column, uint32_t *to) {
    const int64_t n = g->n - column;
    for (int64_t j = 0; j < FTH_PAIRS_COLUMNS; j += VW)
        for (int64_t p = 0; p < b->pairs; p += VW) {
            const real *from = g->b.data + (column + j) * g->b.ld + b->l + 2 * p;
            uint32_t *place = to + p * FTH_PAIRS_COLUMNS + j, rows_[VW * VW];
            const int64_t depth = b->depth - 2 * p, wide = least(VW, b->pairs - p);
            if (j + VW <= n && depth >= 2 * VW && wide == VW) {
                turn_pairs(place, 4 * FTH_PAIRS_COLUMNS, from, 2 * g->b.ld);
                continue;
            }
            pairs_of_rows(rows_, VW, from, g->b.ld, n - j, depth, VW);
            for (int64_t q = 0; q < wide; q++)
                for (int64_t i = 0; i < VW; i++)
                    place[q * FTH_PAIRS_COLUMNS + i] = rows_[i * VW + q];
        }
}

/* One panel of B that lies in rows of b. */
static void pack_rows(const gemm *g, const block *b, int64_t column, uint32_t *restrict_ to) {
    const int64_t n = least(FTH_PAIRS_COLUMNS, g->n - column);
    for (int64_t p = 0; p < b->pairs; p++, to += FTH_PAIRS_COLUMNS) {
        const real *first = g->b.data + (b->l + 2 * p) * g->b.ld + column;
        const real *second = first + g->b.ld;
        const int64_t left = b->depth - 2 * p;
        if (left >= 2 && n == FTH_PAIRS_COLUMNS) {
#pragma omp simd
            for (int64_t j = 0; j < FTH_PAIRS_COLUMNS; j++) to[j] = pair_of(first[j], second[j]);
            continue;
        }
        for (int64_t j = 0; j < FTH_PAIRS_COLUMNS; j++)
            to[j] = pair_of(left > 0 && j < n ? first[j] : 0, left > 1 && j < n ? second[j] : 0);
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

/* Rows of A that lie in columns of a. */
static void turn_a(const gemm *g, const block *b) {
    uint32_t *to = (uint32_t *)(void *)b->a;
    for (int64_t p = 0; p < b->pairs; p += VW) {
        const int64_t wide = least(VW, b->pairs - p);
        for (int64_t i = 0; i < b->n_rows; i += VW) {
            uint32_t found[VW * VW]; /* [pair][row] */
            const int64_t high = least(VW, b->n_rows - i);
            for (int64_t q = 0; q < VW; q++) {
                const real *first = g->a.data + (b->l + 2 * (p + q)) * g->a.ld + b->row + i;
                const int64_t left = b->depth - 2 * (p + q);
                if (left >= 2 && high == VW) {
                    const real *second = first + g->a.ld;
#pragma omp simd
                    for (int64_t c = 0; c < VW; c++)
                        found[q * VW + c] = pair_of(first[c], second[c]);
                    continue;
                }
                for (int64_t c = 0; c < VW; c++)
                    found[q * VW + c] = pair_of(left > 0 && c < high ? first[c] : 0,
                                                left > 1 && c < high ? first[g->a.ld + c] : 0);
            }
            uint32_t *place = to + i * b->pairs + p;
            if (wide == VW && high == VW) {
                turn_pairs(place, 4 * b->pairs, found, 4 * VW);
                continue;
            }
            for (int64_t c = 0; c < high; c++)
                for (int64_t q = 0; q < wide; q++) place[c * b->pairs + q] = found[q * VW + c];
        }
    }
}

/* All panels of the block with its rows of A. */
static void multiply(const gemm *g, const block *b) {
    const real *a = b->a;
    int64_t lda = 2 * b->pairs;
    if (g->accumulate) {
        turn_a(g, b);
    } else if (2 * b->pairs == b->depth) {
        a = g->a.data + b->row * g->a.ld + b->l;
        lda = g->a.ld;
    } else {
        copy_a(g, b);
    }
    for (int64_t j = 0; j < b->n_columns; j += FTH_PAIRS_COLUMNS)
        g->pairs->product(b->n_rows, a, lda, b->b + 2 * j * b->pairs, b->pairs, b->c + j,
                          MOST_COLUMNS, b->l > 0 && !g->accumulate);
}

static void finish(const gemm *g, const block *b) {
    for (int64_t i = 0; i < b->n_rows; i++) {
        float *sums = b->c + i * MOST_COLUMNS;
        FTH_NAME(gemm_finish_row)(g, b->row + i, b->column, b->n_columns, b->l, sums);
    }
}

void FTH_NAME(gemm_pairs)(const gemm *g, fth_share rows_, fth_share columns, void *own) {
    block b = {.a = own};
    b.b = b.a + A_NUMBERS;
    b.c = (float *)(void *)(b.b + B_NUMBERS);
    const int64_t most = least(DEPTH, round_up(g->k, 2 * g->pairs->pairs));
    const int64_t wide =
        least(MOST_COLUMNS, B_NUMBERS / most / FTH_PAIRS_COLUMNS * FTH_PAIRS_COLUMNS);
    const bool once = g->k <= DEPTH; /* what is packed of B serves all rows */
    for (b.column = columns.begin; b.column < columns.end; b.column += wide) {
        b.n_columns = least(wide, columns.end - b.column);
        for (b.row = rows_.begin; b.row < rows_.end; b.row += FTH_PAIRS_ROWS) {
            b.n_rows = least(FTH_PAIRS_ROWS, rows_.end - b.row);
            for (b.l = 0; b.l < g->k; b.l += DEPTH) {
                b.depth = least(DEPTH, g->k - b.l);
                b.pairs = round_up((b.depth + 1) / 2, g->pairs->pairs);
                if (!once || b.row == rows_.begin) pack_b(g, &b);
                multiply(g, &b);
                if (g->accumulate) finish(g, &b);
            }
            if (!g->accumulate) finish(g, &b);
        }
    }
}

#endif
