/* tiles_pack_parts.h: squares of floats as tiles of bf16. Part of tiles_pack.h.
 *
 * A float has 24 bits, a number of bf16 has 8: x = high + middle + low, exactly. Of the nine
 * products of two such sums the six that count are taken; what is left out, middle low and less, is
 * 2^-22 of a product at most and 2^-26 on average, of either sign, where rounding a product to a
 * float costs 2^-25 on average. (Below 2^-110 the low parts are numbers that the unit takes for 0;
 * where x is not finite, or within 1/256 of the largest float, the result is not finite.)
 *
 * Numbers p and p + 16 of the 32 along k make pair p, in both factors: a vector of the one goes
 * beside a vector of the other, and no number has to change its lane. Squares are [3 parts][2
 * tiles]: of A [16 rows][16 pairs], of B [16 pairs][16 columns]. */
#ifndef FTH_BACKEND_CPU_PRODUCT_TILES_PACK_PARTS_H
#define FTH_BACKEND_CPU_PRODUCT_TILES_PACK_PARTS_H

#include "backend/cpu/kernel/vec.h"

enum { PARTS = FTH_PARTS };

/* VW pairs, in each part's tile. The first part is rounded, so that the others have either sign. */
inline_ void store_parts(uint16_t *to, vf first, vf second) {
#pragma GCC unroll 3
    for (int part = 0; part < PARTS; part++) {
        const uint32_t half = part == 0 ? 0x8000 : 0;
        const vu x = ((vu)first + half) & 0xffff0000, y = ((vu)second + half) & 0xffff0000;
        const vu pairs = x >> 16 | y;
        memcpy(to + part * SQUARE, &pairs, sizeof pairs);
        first -= (vf)x;
        second -= (vf)y;
    }
}

inline_ vf floats_at(const char *from) {
    return v_load((const float *)(const void *)from);
}

/* VW rows of VW numbers, turned, beside as many others. */
inline_ void store_turned_parts(uint16_t *to, const char *from, const char *other, int64_t stride) {
    vf x[VW], y[VW];
#pragma GCC unroll 16
    for (int i = 0; i < VW; i++) x[i] = floats_at(from + i * stride);
    v_transpose(x);
#pragma GCC unroll 16
    for (int i = 0; i < VW; i++) y[i] = floats_at(other + i * stride);
    v_transpose(y);
#pragma GCC unroll 16
    for (int i = 0; i < VW; i++) store_parts(to + i * SIDE, x[i], y[i]);
}

/* A: rows of the square are rows of the tiles. */
inline_ void pack_rows(uint16_t *to, square x, int part) {
    const int first = part * ROWS_AT_ONCE;
#pragma GCC unroll 4
    for (int i = first; i < first + ROWS_AT_ONCE; i++)
        for (int p = 0; p < TILE_PAIRS; p += VW) {
            const char *from = x.first + i * x.stride + 4 * p;
            store_parts(to + i * SIDE + 2 * p, floats_at(from), floats_at(from + 4 * TILE_PAIRS));
        }
}

/* A: columns of the square are rows of the tiles; a part is a tile. */
inline_ void pack_turned(uint16_t *to, square x, int part) {
    to += part * (SQUARE / 2);
    for (int j = 0; j < 16; j += VW)
        for (int p = 0; p < TILE_PAIRS; p += VW) {
            const char *from = x.first + p * x.stride + 4 * (16 * part + j);
            store_turned_parts(to + j * SIDE + 2 * p, from, from + TILE_PAIRS * x.stride, x.stride);
        }
}

/* B: rows of the square are its columns; a part is a tile. */
inline_ void pack_pairs_turned(uint16_t *to, square x, int part) {
    to += part * (SQUARE / 2);
    for (int j = 0; j < 16; j += VW)
        for (int p = 0; p < TILE_PAIRS; p += VW) {
            const char *from = x.first + (16 * part + j) * x.stride + 4 * p;
            store_turned_parts(to + p * SIDE + 2 * j, from, from + 4 * TILE_PAIRS, x.stride);
        }
}

/* B: rows of the square go along k. */
inline_ void pack_pairs(uint16_t *to, square x, int part) {
    enum { AT_ONCE = TILE_PAIRS / TURNED_PARTS };
#pragma GCC unroll 8
    for (int p = part * AT_ONCE; p < (part + 1) * AT_ONCE; p++)
        for (int j = 0; j < SIDE; j += VW) {
            const char *from = x.first + p * x.stride + 4 * j;
            store_parts(to + j / 16 * (SQUARE / 2) + p * SIDE + j % 16 * 2, floats_at(from),
                        floats_at(from + TILE_PAIRS * x.stride));
        }
}

inline_ void pack_part(const packing how, uint16_t *to, square x, int part) {
    switch (how) {
    case ROWS: pack_rows(to, x, part); return;
    case TURNED: pack_turned(to, x, part); return;
    case PAIRS_TURNED: pack_pairs_turned(to, x, part); return;
    default: pack_pairs(to, x, part); return; /* no other way is used for floats */
    }
}

#endif
