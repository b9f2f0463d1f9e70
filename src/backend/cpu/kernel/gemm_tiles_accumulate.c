/* gemm_tiles_accumulate.c: C += A B on tiles, A by columns: gradients of weights (dW += dy^T x), of bf16 or
 * of floats in three parts (tiles_pack.h). 2 m n k operations, of floats six times as many. Both factors
 * are packed, m k + n k numbers for each block of C that the third-level cache has to bring; that and the
 * unit take their time one after the other, whatever is done to overlap them (doc/performance-notes.md).
 *
 * A thread goes through blocks of C and for each through all of k in chunks, whose factors and C are in its
 * second-level cache together, and 32 rows of A in the first. The unit adds to C where it is. Sums of floats
 * are made apart for each chunk: six products for one, added up one after the other over all of k, would
 * lose more than floats do. Where sums are cut does not depend on the threads. */
#include "backend/cpu/kernel/gemm.h"
#include "backend/cpu/kernel/tiles_pack.h"

enum {
    IN_PLACE = REAL_DTYPE == FTH_BF16,
    ROWS_AT_MOST = 256, /* of C in a block: 512 KB */
    COLUMNS_AT_MOST = 512,
    STEPS = IN_PLACE ? 16 : 4, /* of 32 in a chunk at most: 768 KB of both factors, of floats 576 */
    PLACE = PARTS * SQUARE,    /* numbers of a packed square */
    TWO_TILES = SQUARE * (int)sizeof(uint16_t),
    A_NUMBERS = ROWS_AT_MOST / SIDE * STEPS * PLACE,
    B_NUMBERS = COLUMNS_AT_MOST / SIDE * STEPS * PLACE,
    ONES = PARTS * SQUARE / 2, /* numbers of a tile of ones, and of zeros as its other parts */
    SUMS_OF_ROWS = SIDE * 16   /* of a row of squares of A, each 16 times */
};

/* A part of k for a block of C. */
typedef struct chunk {
    fth_share rows, columns;
    int64_t l, steps;            /* its first of k, and how many squares it is deep */
    int64_t row_squares, strips; /* squares of A and of B side by side */
    bool last;                   /* of k */
} chunk;

/* What a thread works with. */
typedef struct work {
    const gemm *g;
    fth_share rows, columns;
    int64_t n_rows, n_columns, n_chunks; /* blocks of C, and chunks of each */
    uint16_t *a;                         /* [row squares][steps][PLACE] */
    uint16_t *b;                         /* [strips][steps][PLACE] */
    uint16_t *ones;                      /* [PARTS][tile] */
    float *sums;                         /* [SIDE][SIDE] of a square of C */
    float *row_sums;                     /* [row squares][SIDE][16] sums of A over k so far */
    bool narrow;                         /* few tiles are used at a time */
    bool adds_up_a;                      /* a_sums are this thread's to make */
} work;

int64_t FTH_NAME(gemm_tiles_accumulate_bytes)(void) {
    return (A_NUMBERS + B_NUMBERS + ONES) * (int64_t)sizeof(uint16_t) +
           (SQUARE + ROWS_AT_MOST / SIDE * SUMS_OF_ROWS) * (int64_t)sizeof(float);
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t pieces_in(int64_t n, int64_t most) {
    return (n + most - 1) / most;
}

/* Piece i of n, in whole squares. */
static fth_share part_of(fth_share all, int64_t i, int64_t n) {
    const int64_t squares = pieces_in(all.end - all.begin, SIDE);
    return (fth_share){all.begin + squares * i / n * SIDE,
                       least(all.begin + squares * (i + 1) / n * SIDE, all.end)};
}

static chunk chunk_at(const work *w, int64_t number) {
    const int64_t block = number / w->n_chunks, i = number % w->n_chunks;
    const fth_share k = part_of((fth_share){0, w->g->k}, i, w->n_chunks);
    chunk c = {.rows = part_of(w->rows, block / w->n_columns, w->n_rows),
               .columns = part_of(w->columns, block % w->n_columns, w->n_columns),
               .l = k.begin,
               .steps = pieces_in(k.end - k.begin, SIDE),
               .last = k.end == w->g->k};
    c.row_squares = pieces_in(c.rows.end - c.rows.begin, SIDE);
    c.strips = pieces_in(c.columns.end - c.columns.begin, SIDE);
    return c;
}

/* ---- packing ---- */

/* `squares` squares side by side from (l, column) on, each to its own strip of a chunk. */
inline_ void pack_squares(const packing how, uint16_t *to, rows from, int64_t l, int64_t column,
                          int64_t k, int64_t n, int64_t squares, int64_t steps) {
    for (int64_t i = 0; i < squares; i++, column += SIDE) {
        const square x = {(const char *)(from.data + l * from.ld + column),
                          from.ld * (int64_t)sizeof *from.data, k - l, n - column};
        for (int part = 0; part < TURNED_PARTS; part++) pack(how, to + i * steps * PLACE, x, part);
    }
}

/* Both factors, 32 rows of them after the other. */
static void pack_chunk(const work *w, const chunk *c) {
    const gemm *g = w->g;
    for (int64_t s = 0; s < c->steps; s++) {
        const int64_t l = c->l + s * SIDE;
        pack_squares(TURNED, w->a + s * PLACE, g->a, l, c->rows.begin, g->k, g->m, c->row_squares,
                     c->steps);
        pack_squares(PAIRS, w->b + s * PLACE, g->b, l, c->columns.begin, g->k, g->n, c->strips,
                     c->steps);
    }
}

/* ---- products ---- */

static fth_tiles packed_tiles(const uint16_t *first) {
    return (fth_tiles){first, TILE_LINE, TWO_TILES / 2, PARTS * TWO_TILES, TWO_TILES};
}

/* C's rows [row, row + SIDE) and columns [column, column + SIDE), as far as the chunk has them, get the
 * sums of one square. */
static void add_sums(const work *w, const chunk *c, int64_t row, int64_t column) {
    const full_rows to = w->g->c_full;
    const int64_t n = least(SIDE, c->columns.end - column), end = least(row + SIDE, c->rows.end);
    const bool adds = gemm_adds(w->g, c->l);
    const float *restrict_ sums = w->sums;
    for (; row < end; row++, sums += SIDE) {
        float *restrict_ at = to.data + row * to.ld + column;
        if (n == SIDE)
            for (int j = 0; j < SIDE; j += VW)
                v_store(at + j, adds ? v_add(v_load(at + j), v_load(sums + j)) : v_load(sums + j));
        else
            for (int64_t j = 0; j < n; j++) at[j] = adds ? at[j] + sums[j] : sums[j];
    }
}

/* A row of squares of A with a strip of B. */
static void multiply_square(const work *w, const chunk *c, fth_tiles_block x, int64_t row,
                            int64_t column) {
    const full_rows to = w->g->c_full;
    const bool whole = row + SIDE <= c->rows.end && column + SIDE <= c->columns.end;
    if (IN_PLACE && whole) {
        x.add = gemm_adds(w->g, c->l);
        x.c = to.data + row * to.ld + column;
        x.c_stride = to.ld * (int64_t)sizeof(float);
        w->g->pairs->tiles.product(&x);
        return;
    }
    x.c = w->sums;
    x.c_stride = SIDE * (int64_t)sizeof(float);
    w->g->pairs->tiles.product(&x);
    add_sums(w, c, row, column);
}

/* A row of squares of A with ones: its sums over k. */
static void add_up_row(const work *w, const chunk *c, fth_tiles_block x, int64_t row) {
    float *sums = w->row_sums + (row - c->rows.begin) / SIDE * SUMS_OF_ROWS;
    x.half = true;
    x.add = c->l > 0;
    x.b = (fth_tiles){w->ones, TILE_LINE, 0, 0, TWO_TILES / 2};
    x.c = sums;
    x.c_stride = TILE_LINE;
    w->g->pairs->tiles.product(&x);
    for (int64_t i = 0; c->last && i < least(SIDE, c->rows.end - row); i++)
        w->g->a_sums[row + i] += sums[i * 16];
}

static void multiply_chunk(const work *w, const chunk *c) {
    for (int64_t i = 0; i < c->row_squares; i++) {
        const int64_t row = c->rows.begin + i * SIDE;
        fth_tiles_block x = {.two = c->rows.end - row > TILE_ROWS,
                             .narrow = w->narrow,
                             .parts = PARTS > 1,
                             .a = packed_tiles(w->a + i * c->steps * PLACE),
                             .steps = c->steps};
        if (w->adds_up_a && c->columns.begin == w->columns.begin) add_up_row(w, c, x, row);
        for (int64_t j = 0; j < c->strips; j++) {
            x.b = packed_tiles(w->b + j * c->steps * PLACE);
            multiply_square(w, c, x, row, c->columns.begin + j * SIDE);
        }
    }
}

/* ---- threads ---- */

void FTH_NAME(gemm_tiles_accumulate)(const gemm *g, const fth_team *team, void *own) {
    const int by_rows = gemm_row_threads(team, g, ROWS_AT_MOST, COLUMNS_AT_MOST);
    const int by_columns = team->n_threads / by_rows;
    const fth_team row_team = {team->thread / by_columns, by_rows, NULL};
    const fth_team column_team = {team->thread % by_columns, by_columns, NULL};
    const fth_share rows_ = fth_team_share(&row_team, g->m, SIDE);
    const fth_share columns = fth_team_share(&column_team, g->n, SIDE);
    const int64_t high = rows_.end - rows_.begin, wide = columns.end - columns.begin;
    if (high <= 0 || wide <= 0) return;
    uint16_t *a = own, *b = a + A_NUMBERS, *ones = b + B_NUMBERS;
    float *sums = (float *)(void *)(ones + ONES);
    const work w = {.g = g,
                    .rows = rows_,
                    .columns = columns,
                    .n_rows = pieces_in(high, ROWS_AT_MOST),
                    .n_columns = pieces_in(wide, COLUMNS_AT_MOST),
                    .n_chunks = pieces_in(g->k, STEPS * SIDE),
                    .a = a,
                    .b = b,
                    .ones = ones,
                    .sums = sums,
                    .row_sums = sums + SQUARE,
                    .narrow =
                        g->pairs->tiles.crowded && g->pairs->tiles.crowded(high * wide * g->k),
                    .adds_up_a = g->a_sums && column_team.thread == 0};
    for (int i = 0; i < ONES; i++) ones[i] = i < SQUARE / 2 ? 0x3f80 : 0; /* 1 */
    g->pairs->tiles.begin();
    for (int64_t i = 0; i < w.n_rows * w.n_columns * w.n_chunks; i++) {
        const chunk c = chunk_at(&w, i);
        pack_chunk(&w, &c);
        multiply_chunk(&w, &c);
    }
    g->pairs->tiles.end();
}
