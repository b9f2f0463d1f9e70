/* tiles_pack.h: squares of 32 x 32 numbers as tiles of bf16 for the matrix unit: two tiles, one
 * behind the other, of 16 rows of A each, or of 16 columns of B, from either order in memory; of
 * floats three times two, since a float is the sum of three numbers of bf16. How the numbers of a
 * square lie in its tiles: tiles_pack_pairs.h, tiles_pack_parts.h. Squares at an edge are filled up
 * with 0. Squares are packed in parts, each of a few lines: the unit works meanwhile, and would
 * wait for its operands behind many loads and stores at once. */
#ifndef FTH_BACKEND_CPU_PRODUCT_TILES_PACK_H
#define FTH_BACKEND_CPU_PRODUCT_TILES_PACK_H

#include "backend/cpu/kernel/kernel.h"

enum {
    SIDE = FTH_TILES_SIDE,
    SQUARE = SIDE * SIDE, /* numbers of two tiles */
    TILE_ROWS = 16,
    TILE_PAIRS = 16,
    TILE_LINE = 64 /* bytes of a row of a tile */
};

/* A square, of which some rows and columns exist; bytes from row to row. */
typedef struct square {
    const char *first;
    int64_t stride, rows, columns;
} square;

/* How squares are packed: A, whose rows are rows of the tiles or columns; B, whose rows are its
 * columns or go along k; the same of floats that are rounded. */
typedef enum packing { ROWS, TURNED, PAIRS_TURNED, PAIRS, FLOATS_TURNED, FLOATS } packing;

/* Squares are packed in parts: of ROWS_AT_ONCE rows where rows stay rows, else of one tile or half
 * of the rows. */
enum { ROWS_AT_ONCE = 4, ROW_PARTS = SIDE / ROWS_AT_ONCE, TURNED_PARTS = 2 };

#ifdef FTH_REAL_IS_bf16
#include "backend/cpu/product/tiles_pack_pairs.h"
#else
#include "backend/cpu/product/tiles_pack_parts.h"
#endif

static inline bool packs_floats(packing how) {
    return REAL_DTYPE == FTH_F32 || how == FLOATS || how == FLOATS_TURNED;
}

/* Asks for some rows of it, to the second-level cache. */
inline_ void ask_for(const packing how, square x, int first, int n) {
#pragma GCC unroll 16
    for (int i = 0; i < n; i++) {
        const char *row = x.first + (first + i) * x.stride;
        __builtin_prefetch(row, 0, 2);
        if (packs_floats(how)) __builtin_prefetch(row + 64, 0, 2);
    }
}

/* A part of a square at an edge, filled up with 0. */
static __attribute__((noinline)) void pack_edge(packing how, uint16_t *to, const square *x,
                                                int part) {
    uint32_t whole[SQUARE] = {0}; /* floats; numbers of bf16 take half of each row */
    const size_t size = packs_floats(how) ? sizeof(float) : sizeof(uint16_t);
    const int64_t n = x->columns < SIDE ? x->columns : SIDE;
    for (int64_t i = 0; i < SIDE && i < x->rows; i++)
        memcpy(whole + i * SIDE, x->first + i * x->stride, size * (size_t)n);
    const square filled = {(const char *)whole, SIDE * sizeof *whole, SIDE, SIDE};
    pack_part(how, to, filled, part);
}

/* A part of any square. */
inline_ void pack(const packing how, uint16_t *to, square x, int part) {
    if (x.rows >= SIDE && x.columns >= SIDE)
        pack_part(how, to, x, part);
    else
        pack_edge(how, to, &(square){x.first, x.stride, x.rows, x.columns}, part);
}

/* The same, and the square that comes next is asked for, so that nothing waits for the memory while
 * the unit could work. */
inline_ void pack_and_ask(const packing how, uint16_t *to, square x, square next, int part) {
    const int lines = how == ROWS ? ROWS_AT_ONCE : SIDE / TURNED_PARTS;
    ask_for(how, next, part * lines, lines);
    pack(how, to, x, part);
}

#endif
