/* digits.h: linear maps with floats in fixed point, for generation, on tiles of 8 bits.
 *
 * A row of W is a scale times whole numbers of three digits to the base of 256, from -128 to 127; a
 * row x is a power of two times whole numbers of four. The products of their digits are whole
 * numbers too, and those of digits r and q that have the same r + q are added up exactly. Of the
 * twelve the nine up to r + q = 3 are taken. So a weight is wrong by 2^-24 of the largest of its
 * row at most, where a float is by 2^-25 of itself, and nothing else by more than 2^-31 of the
 * largest: less than sums of floats lose by rounding, as long as a row's largest weight is not
 * FTH_DIGITS_PEAK times the usual one. A weight takes 3 bytes and nine products of 8 bits; as three
 * numbers of bf16 (kernel/tiles_pack_parts.h) it takes 6, and as much of the unit as twelve. */
#ifndef FTH_BACKEND_CPU_TILE_DIGITS_H
#define FTH_BACKEND_CPU_TILE_DIGITS_H

#include "backend/cpu/tile/int8.h"

enum {
    FTH_DIGITS_W = 3,      /* digits of a weight */
    FTH_DIGITS_X = 4,      /* of an activation */
    FTH_DIGITS_SIDE = 16,  /* rows and columns of y that are made at a time */
    FTH_DIGITS_DEPTH = 64, /* numbers along l in a step */
    FTH_DIGITS_TILE = FTH_DIGITS_SIDE * FTH_DIGITS_DEPTH,    /* bytes */
    FTH_DIGITS_SUMS = 4 * FTH_DIGITS_SIDE * FTH_DIGITS_SIDE, /* numbers: [r + q][rows][columns] */
    FTH_DIGITS_DEEPEST = 1 << 15,                            /* k whose sums 32 bits hold */
    FTH_DIGITS_PEAK = 32
};

/* sums = x W^T, or are added to. Weights (fth_int8.packed) are [strips of 16
 * columns][steps][FTH_DIGITS_W] tiles [16 groups][16 columns][4]. */
typedef struct fth_digits_block {
    const int8_t *x; /* [steps][FTH_DIGITS_X] tiles [16 rows][64] */
    const int8_t *w; /* [steps][FTH_DIGITS_W] tiles */
    int64_t steps;
    bool add;
    int32_t *sums;                    /* [FTH_DIGITS_SUMS] */
    void (*meanwhile)(void *context); /* called once a step: work for the rest of the core */
    void *context;
} fth_digits_block;

typedef void fth_digits_product(const fth_digits_block *b);

typedef struct fth_digits_path {
    fth_int8_path weights; /* how they are packed */
    void (*begin)(void);   /* gives a thread its tiles */
    fth_digits_product *product;
    fth_digits_product *narrow; /* the same with few tiles in use, for a crowded core */
    void (*end)(void);
    bool (*crowded)(int64_t multiplications); /* amx.h */
} fth_digits_path;

/* A path by name: "amx" or its twin "plain-amx". NULL: there is no such path, or the machine lacks
 * its unit. */
const fth_digits_path *fth_digits_path_named(const char *name);

#endif
