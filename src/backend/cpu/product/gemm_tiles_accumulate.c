/* gemm_tiles_accumulate.c: C += A B on tiles, A by columns: gradients of weights (dW += dy^T x), of
 * bf16 or of floats in three parts (tiles_pack.h). 2 m n k operations, of floats six times as many.
 * Both factors are packed, m k + n k numbers that the third-level cache has to bring, and C goes
 * through the caches once for each chunk of k; that and the unit take their time one after the
 * other, whatever is asked for ahead (doc/internals/performance.md).
 *
 * A thread goes through k in chunks. Its columns of B are packed into the second-level cache, 32
 * rows of A at a time into the first, where every strip of B meets them. A square of C begins with
 * zeros and ends in one of two places that stay in the first-level cache as well; its rows are
 * added to C while the unit makes the next one. (The unit adding to C where it lies waits for lines
 * that are far apart: 35 % more time than the products take, instead of 20.) Where sums are cut
 * does not depend on the threads. */
#include "backend/cpu/product/gemm.h"
#include "backend/cpu/product/tiles_pack.h"

enum {
    COLUMNS_AT_MOST = 512, /* of B in a chunk */
    STEPS =
        REAL_DTYPE == FTH_BF16 ? 16 : 4, /* of 32 in a chunk at most: 32 KB of A, of floats 24 */
    FAR = 2048,                          /* numbers from row to row of A, and more: rows of */
    GROUP = 4,                           /* so many squares are read at once */
    PLACE = PARTS * SQUARE,              /* numbers of a packed square */
    TWO_TILES = SQUARE * (int)sizeof(uint16_t),
    A_NUMBERS = GROUP * STEPS * PLACE,
    B_NUMBERS = COLUMNS_AT_MOST / SIDE * STEPS * PLACE,
    ONES = PARTS * SQUARE / 2, /* numbers of a tile of ones, and of zeros as its other parts */
    RING = 2,                  /* squares of sums */
    ROW_SUMS = SIDE * 16       /* of 32 rows of A, each 16 times */
};

/* A part of k for some columns of C. */
typedef struct chunk {
    fth_cpu_share columns;
    int64_t l, steps; /* its first of k, and how many squares it is deep */
    int64_t strips;   /* squares of B side by side */
    bool adds;        /* to C; else C is what it makes */
} chunk;

/* Rows of a square of C whose sums are made, and which are left to be added. */
typedef struct result {
    float *to;
    int64_t ld;
    const float *sums; /* [n_rows][SIDE] */
    int64_t n_rows, n_columns;
    bool adds; /* else C is what they are */
} result;

/* What a thread works with. */
typedef struct work {
    const gemm *g;
    fth_cpu_share rows, columns;
    uint16_t *a;    /* [GROUP][steps][PLACE] */
    uint16_t *b;    /* [strips][steps][PLACE] */
    uint16_t *ones; /* [PARTS][tile] */
    float *sums;    /* [RING][SIDE][SIDE] */
    float *row_sums;
    bool narrow;    /* few tiles are used at a time */
    bool adds_up_a; /* a_sums are this thread's to make */
    int64_t number; /* of squares of C so far */
    result done;
} work;

int64_t FTH_NAME(gemm_tiles_accumulate_bytes)(void) {
    return (A_NUMBERS + B_NUMBERS + ONES) * (int64_t)sizeof(uint16_t) +
           (RING * SQUARE + ROW_SUMS) * (int64_t)sizeof(float);
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t pieces_in(int64_t n, int64_t most) {
    return (n + most - 1) / most;
}

/* Piece i of n, in whole squares. */
static fth_cpu_share part_of(fth_cpu_share all, int64_t i, int64_t n) {
    const int64_t squares = pieces_in(all.end - all.begin, SIDE);
    return (fth_cpu_share){all.begin + squares * i / n * SIDE,
                           least(all.begin + squares * (i + 1) / n * SIDE, all.end)};
}

/* ---- packing ---- */

/* Squares side by side from (l, column) on, each to its own strip of a chunk. */
inline_ void pack_squares(const packing how, uint16_t *to, rows from, int64_t l, int64_t column,
                          int64_t k, int64_t n, int64_t squares, int64_t steps) {
    for (int64_t i = 0; i < squares; i++, column += SIDE) {
        const square x = {(const char *)(from.data + l * from.ld + column),
                          from.ld * (int64_t)sizeof *from.data, k - l, n - column};
        for (int part = 0; part < TURNED_PARTS; part++) pack(how, to + i * steps * PLACE, x, part);
    }
}

static void pack_columns(const work *w, const chunk *c) {
    const gemm *g = w->g;
    for (int64_t s = 0; s < c->steps; s++)
        pack_squares(PAIRS, w->b + s * PLACE, g->b, c->l + s * SIDE, c->columns.begin, g->k, g->n,
                     c->strips, c->steps);
}

static void pack_rows_of_a(const work *w, const chunk *c, int64_t row, int64_t squares) {
    const gemm *g = w->g;
    for (int64_t s = 0; s < c->steps; s++)
        pack_squares(TURNED, w->a + s * PLACE, g->a, c->l + s * SIDE, row, g->k, g->m, squares,
                     c->steps);
}

/* ---- sums ---- */

/* Some rows of a square that has all of its columns. */
inline_ void add_whole_rows(result *r, const int n, const bool adds) {
#pragma GCC unroll 2
    for (int i = 0; i < n; i++)
#pragma GCC unroll 8
        for (int j = 0; j < SIDE; j += VW) {
            float *at = r->to + i * r->ld + j;
            const vf sum = v_load(r->sums + i * SIDE + j);
            v_store(at, adds ? v_add(v_load(at), sum) : sum);
        }
    r->to += n * r->ld;
    r->sums += n * SIDE;
    r->n_rows -= n;
}

/* Two rows at a time, in as few instructions as can be: they are done between those of the unit. */
static void add_two_rows(void *context) {
    result *r = context;
    if (r->n_rows >= 2) add_whole_rows(r, 2, true);
}

static void store_two_rows(void *context) {
    result *r = context;
    if (r->n_rows >= 2) add_whole_rows(r, 2, false);
}

/* What is left of it. */
static void complete(result *r) {
    for (; r->n_columns == SIDE && r->n_rows > 0;) add_whole_rows(r, 1, r->adds);
    for (; r->n_rows > 0; r->n_rows--, r->to += r->ld, r->sums += SIDE)
        for (int64_t j = 0; j < r->n_columns; j++)
            r->to[j] = r->adds ? r->to[j] + r->sums[j] : r->sums[j];
}

/* ---- products ---- */

static fth_tiles packed_tiles(const uint16_t *first) {
    return (fth_tiles){first, TILE_LINE, TWO_TILES / 2, PARTS * TWO_TILES, TWO_TILES};
}

/* 32 rows of A with ones: their sums. */
static void add_up_rows(const work *w, fth_tiles_block x, int64_t row) {
    x.half = true;
    x.b = (fth_tiles){w->ones, TILE_LINE, 0, 0, TWO_TILES / 2};
    x.c = w->row_sums;
    x.c_stride = TILE_LINE;
    w->g->pairs->tiles.product(&x);
    for (int64_t i = 0; i < least(SIDE, w->rows.end - row); i++)
        w->g->a_sums[row + i] += w->row_sums[i * 16];
}

/* 32 rows of A, packed, with all strips of the chunk. */
static void multiply_rows(work *w, const chunk *c, const uint16_t *a, int64_t row) {
    const full_rows to = w->g->c_full;
    fth_tiles_block x = {.two = w->rows.end - row > TILE_ROWS,
                         .narrow = w->narrow,
                         .parts = PARTS > 1,
                         .a = packed_tiles(a),
                         .steps = c->steps,
                         .c_stride = SIDE * (int64_t)sizeof(float)};
    if (w->adds_up_a && c->columns.begin == w->columns.begin) add_up_rows(w, x, row);
    x.context = &w->done;
    for (int64_t j = 0; j < c->strips; j++) {
        const int64_t column = c->columns.begin + j * SIDE;
        float *sums = w->sums + w->number++ % RING * SQUARE;
        x.b = packed_tiles(w->b + j * c->steps * PLACE);
        x.c = sums;
        x.meanwhile[0] = w->done.n_columns < SIDE ? NULL
                         : w->done.adds           ? add_two_rows
                                                  : store_two_rows;
        w->g->pairs->tiles.product(&x);
        complete(&w->done);
        w->done = (result){.to = to.data + row * to.ld + column,
                           .ld = to.ld,
                           .sums = sums,
                           .n_rows = least(SIDE, w->rows.end - row),
                           .n_columns = least(SIDE, c->columns.end - column),
                           .adds = c->adds};
    }
}

static void multiply_chunk(work *w, const chunk *c) {
    const int64_t rows_at_once = (w->g->a.ld < FAR ? 1 : GROUP) * SIDE;
    pack_columns(w, c);
    for (int64_t row = w->rows.begin; row < w->rows.end; row += rows_at_once) {
        const int64_t squares = pieces_in(least(rows_at_once, w->rows.end - row), SIDE);
        pack_rows_of_a(w, c, row, squares);
        for (int64_t i = 0; i < squares; i++)
            multiply_rows(w, c, w->a + i * c->steps * PLACE, row + i * SIDE);
    }
}

static void multiply_share(work *w) {
    const gemm *g = w->g;
    const int64_t n_columns = pieces_in(w->columns.end - w->columns.begin, COLUMNS_AT_MOST);
    const int64_t n_chunks = pieces_in(g->k, STEPS * SIDE);
    for (int64_t i = 0; i < n_columns * n_chunks; i++) {
        const fth_cpu_share columns = part_of(w->columns, i / n_chunks, n_columns);
        const fth_cpu_share k = part_of((fth_cpu_share){0, g->k}, i % n_chunks, n_chunks);
        multiply_chunk(w, &(chunk){.columns = columns,
                                   .l = k.begin,
                                   .steps = pieces_in(k.end - k.begin, SIDE),
                                   .strips = pieces_in(columns.end - columns.begin, SIDE),
                                   .adds = gemm_adds(g, k.begin)});
    }
    complete(&w->done);
}

void FTH_NAME(gemm_tiles_accumulate)(const gemm *g, const fth_team *team, void *own) {
    const int by_rows = gemm_row_threads(team, g, g->m, COLUMNS_AT_MOST);
    const int by_columns = team->n_threads / by_rows;
    const fth_team row_team = {team->thread / by_columns, by_rows, NULL};
    const fth_team column_team = {team->thread % by_columns, by_columns, NULL};
    const fth_cpu_share rows_ = fth_team_share(&row_team, g->m, SIDE);
    const fth_cpu_share columns = fth_team_share(&column_team, g->n, SIDE);
    const int64_t high = rows_.end - rows_.begin, wide = columns.end - columns.begin;
    if (high <= 0 || wide <= 0) return;
    uint16_t *a = own, *b = a + A_NUMBERS, *ones = b + B_NUMBERS;
    float *sums = (float *)(void *)(ones + ONES);
    work w = {.g = g,
              .rows = rows_,
              .columns = columns,
              .a = a,
              .b = b,
              .ones = ones,
              .sums = sums,
              .row_sums = sums + RING * SQUARE,
              .narrow = g->pairs->tiles.crowded && g->pairs->tiles.crowded(high * wide * g->k),
              .adds_up_a = g->a_sums && column_team.thread == 0};
    for (int i = 0; i < ONES; i++) ones[i] = i < SQUARE / 2 ? 0x3f80 : 0; /* 1 */
    g->pairs->tiles.begin();
    multiply_share(&w);
    g->pairs->tiles.end();
}
