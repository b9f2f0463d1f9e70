/* tiles_pack_pairs.h: squares of bf16 as tiles: A [16 rows][32 numbers], B [16 pairs along k][16
 * columns][2]; B may be floats, which are rounded. Part of tiles_pack.h. */
#ifndef FTH_BACKEND_CPU_PRODUCT_TILES_PACK_PAIRS_H
#define FTH_BACKEND_CPU_PRODUCT_TILES_PACK_PAIRS_H

#include "backend/cpu/product/pairs_turn.h"

enum { PARTS = 1 };

/* Two rows of a square as pairs, a row of each tile. */
inline_ void store_pairs(uint16_t *to, const void *first, const void *second) {
#if defined(__AVX512BW__)
    const __m512i a = _mm512_loadu_si512(first), b = _mm512_loadu_si512(second);
    const __m512i low = _mm512_unpacklo_epi16(a, b), high = _mm512_unpackhi_epi16(a, b);
    const __m512i left = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
    const __m512i right = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
    _mm512_storeu_si512(to, _mm512_permutex2var_epi64(low, left, high));
    _mm512_storeu_si512(to + SQUARE / 2, _mm512_permutex2var_epi64(low, right, high));
#else
    const uint16_t *a = first, *b = second;
    for (int j = 0; j < SIDE; j += VW) {
        const vf pairs = v_pairs_of_rows(a + j, b + j);
        memcpy(to + j / 16 * (SQUARE / 2) + j % 16 * 2, &pairs, sizeof pairs);
    }
#endif
}

/* The same of rows of floats. */
inline_ void store_floats(uint16_t *to, const void *first, const void *second) {
    const float *a = first, *b = second;
#pragma GCC unroll 8
    for (int j = 0; j < SIDE; j += VW) {
        const vf pairs = v_pairs_rounded(v_load(a + j), v_load(b + j));
        memcpy(to + j / 16 * (SQUARE / 2) + j % 16 * 2, &pairs, sizeof pairs);
    }
}

/* A: rows of the square are rows of the tiles. */
inline_ void pack_rows(uint16_t *to, square x, int part) {
    const char *from = x.first + part * ROWS_AT_ONCE * x.stride;
    to += part * ROWS_AT_ONCE * SIDE;
#pragma GCC unroll 4
    for (int i = 0; i < ROWS_AT_ONCE; i++) memcpy(to + i * SIDE, from + i * x.stride, TILE_LINE);
}

/* A: columns of the square are rows of the tiles, even ones in the first part, odd ones in the
 * second. Of two rows of the square the lower halves of their numbers of 32 bits make the pairs of
 * even columns, the upper ones those of odd columns. Whole lines are read at once, since in wide
 * matrices they drive each other out of the cache. */
inline_ void pack_turned(uint16_t *to, square x, int part) {
    for (int j = 0; j < SIDE; j += 2 * VW)
        for (int p = 0; p < TILE_PAIRS; p += VW) {
            vu pairs[VW]; /* [pair][column] */
#pragma GCC unroll 16
            for (int q = 0; q < VW; q++) {
                const char *from = x.first + 2 * (p + q) * x.stride + 2 * j;
                vu first, second;
                memcpy(&first, from, sizeof first);
                memcpy(&second, from + x.stride, sizeof second);
                pairs[q] =
                    part ? first >> 16 | (second & 0xffff0000) : (first & 0xffff) | second << 16;
            }
            turn_pairs(to + (j + part) * SIDE + 2 * p, 2 * TILE_LINE, pairs, sizeof *pairs);
        }
}

/* B: rows of the square are its columns; a part is a tile. */
inline_ void pack_pairs_turned(uint16_t *to, square x, const bool floats, int part) {
    for (int j = 16 * part; j < 16 * (part + 1); j += VW)
        for (int p = 0; p < TILE_PAIRS; p += VW) {
            uint16_t *place = to + part * (SQUARE / 2) + p * SIDE + j % 16 * 2;
            const char *from = x.first + j * x.stride;
            if (floats)
                turn_floats(place, TILE_LINE, from + 8 * p, x.stride);
            else
                turn_pairs(place, TILE_LINE, from + 4 * p, x.stride);
        }
}

/* B: rows of the square go along k. */
inline_ void pack_pairs(uint16_t *to, square x, const bool floats, int part) {
    enum { AT_ONCE = TILE_PAIRS / TURNED_PARTS };
#pragma GCC unroll 8
    for (int p = part * AT_ONCE; p < (part + 1) * AT_ONCE; p++) {
        const char *first = x.first + 2 * p * x.stride, *second = first + x.stride;
        if (floats)
            store_floats(to + p * SIDE, first, second);
        else
            store_pairs(to + p * SIDE, first, second);
    }
}

inline_ void pack_part(const packing how, uint16_t *to, square x, int part) {
    switch (how) {
    case ROWS: pack_rows(to, x, part); return;
    case TURNED: pack_turned(to, x, part); return;
    case PAIRS_TURNED: pack_pairs_turned(to, x, false, part); return;
    case PAIRS: pack_pairs(to, x, false, part); return;
    case FLOATS_TURNED: pack_pairs_turned(to, x, true, part); return;
    case FLOATS: pack_pairs(to, x, true, part); return;
    }
}

#endif
