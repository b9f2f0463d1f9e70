/* tiles_pack.h: squares of 32 x 32 numbers of bf16 as two tiles for the matrix unit, one behind the
 * other: 16 rows of 32 numbers of A each, or [16 pairs along k][16 columns][2] of B, from either order in
 * memory. Squares at an edge are filled up with 0. */
#ifndef FTH_BACKEND_CPU_KERNEL_TILES_PACK_H
#define FTH_BACKEND_CPU_KERNEL_TILES_PACK_H

#include "backend/cpu/kernel/pairs_turn.h"
#include "backend/cpu/pairs.h"

enum {
    SIDE = FTH_TILES_SIDE,
    SQUARE = SIDE * SIDE, /* numbers of two tiles */
    TILE_ROWS = 16,
    TILE_PAIRS = 16,
    TILE_LINE = 64 /* bytes of a row of a tile */
};

/* A square, of which some rows and columns exist. */
typedef struct square {
    const uint16_t *first;
    int64_t ld, rows, columns;
} square;

/* Asks for its lines, to the second-level cache. */
static inline void ask_for(square x) {
    for (int i = 0; i < SIDE; i++) __builtin_prefetch(x.first + i * x.ld, 0, 2);
}

/* The numbers of a whole square: where they are, or in `whole`. */
static inline square filled(square x, uint16_t whole[SQUARE]) {
    if (x.rows >= SIDE && x.columns >= SIDE) return x;
    const int64_t n = x.columns < SIDE ? x.columns : SIDE;
    memset(whole, 0, sizeof *whole * SQUARE);
    for (int64_t i = 0; i < SIDE && i < x.rows; i++)
        memcpy(whole + i * SIDE, x.first + i * x.ld, sizeof *whole * (size_t)n);
    return (square){whole, SIDE, SIDE, SIDE};
}

typedef uint32_t vu __attribute__((vector_size(sizeof(vf))));

/* VW pairs of two rows. */
inline_ vf pairs_of_rows(const uint16_t *first, const uint16_t *second) {
    return (vf)((vu)v_load_real(first) >> 16 | (vu)v_load_real(second));
}

/* A: rows of the square are rows of the tiles. */
static inline void pack_rows(uint16_t *to, square x) {
    uint16_t whole[SQUARE];
    x = filled(x, whole);
#pragma GCC unroll 8
    for (int i = 0; i < SIDE; i++) memcpy(to + i * SIDE, x.first + i * x.ld, TILE_LINE);
}

/* A: columns of the square are rows of the tiles. Two rows of the square at a time: the lower halves of
 * their numbers of 32 bits make the pairs of even columns, the upper ones those of odd columns. Whole
 * lines are read at once, since in wide matrices they drive each other out of the cache. */
static inline void pack_turned(uint16_t *to, square x) {
    uint16_t whole[SQUARE];
    x = filled(x, whole);
    for (int j = 0; j < SIDE; j += 2 * VW)
        for (int p = 0; p < TILE_PAIRS; p += VW) {
            vu even[VW], odd[VW]; /* [pair][column] */
#pragma GCC unroll 16
            for (int q = 0; q < VW; q++) {
                const uint16_t *from = x.first + 2 * (p + q) * x.ld + j;
                vu first, second;
                memcpy(&first, from, sizeof first);
                memcpy(&second, from + x.ld, sizeof second);
                even[q] = (first & 0xffff) | second << 16;
                odd[q] = first >> 16 | (second & 0xffff0000);
            }
            turn_pairs(to + j * SIDE + 2 * p, 2 * TILE_LINE, even, sizeof *even);
            turn_pairs(to + (j + 1) * SIDE + 2 * p, 2 * TILE_LINE, odd, sizeof *odd);
        }
}

/* B: rows of the square are its columns. */
static inline void pack_pairs_turned(uint16_t *to, square x) {
    uint16_t whole[SQUARE];
    x = filled(x, whole);
    for (int j = 0; j < SIDE; j += VW)
        for (int p = 0; p < TILE_PAIRS; p += VW)
            turn_pairs(to + j / 16 * (SQUARE / 2) + p * SIDE + j % 16 * 2, TILE_LINE,
                       x.first + j * x.ld + 2 * p, 2 * x.ld);
}

/* B: rows of the square go along k. */
static inline void pack_pairs(uint16_t *to, square x) {
    uint16_t whole[SQUARE];
    x = filled(x, whole);
    for (int p = 0; p < TILE_PAIRS; p++) {
        const uint16_t *first = x.first + 2 * p * x.ld;
#pragma GCC unroll 8
        for (int j = 0; j < SIDE; j += VW) {
            const vf pairs = pairs_of_rows(first + j, first + x.ld + j);
            memcpy(to + j / 16 * (SQUARE / 2) + p * SIDE + j % 16 * 2, &pairs, sizeof pairs);
        }
    }
}

#endif
