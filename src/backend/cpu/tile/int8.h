/* int8.h: linear maps with weights of 8 bits, for generation.
 *
 * W[j, l] is about scale[j] q[j, l] with q from -127 to 127; a row x is about s p with p from -127
 * to 127, s found when the row comes. y[j] = s scale[j] sum_l p[l] q[j, l]. The sums are exact, so
 * every path gives the same numbers. */
#ifndef FTH_BACKEND_CPU_TILE_INT8_H
#define FTH_BACKEND_CPU_TILE_INT8_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FTH_INT8_COLUMNS = 64,     /* of y that a panel of weights makes */
    FTH_INT8_DEPTH = 4,        /* neighbours along l that the units multiply and add at once */
    FTH_INT8_ROWS = 96,        /* most rows of x for one call of a product */
    FTH_INT8_DEEPEST = 1 << 17 /* k whose sums 32 bits hold; deeper maps stay as they are */
};

/* Weights of one map: rows of W in panels, filled up with 0. */
typedef struct fth_int8 {
    int64_t n, k;    /* rows and columns of W */
    int64_t groups;  /* of FTH_INT8_DEPTH along l */
    int8_t *packed;  /* [panels][groups][FTH_INT8_COLUMNS][FTH_INT8_DEPTH]; digits lie otherwise */
    float *scale;    /* [panels * FTH_INT8_COLUMNS] */
    int32_t *offset; /* [panels * FTH_INT8_COLUMNS] 128 sum_l q[j, l] */
    const struct fth_int8 *after; /* the map that is read next, in turn; maybe itself */
} fth_int8;

/* Row j of W, into its place; row: [k]. False: this way cannot hold it well. */
typedef bool fth_int8_pack_row(fth_int8 *w, int64_t j, const float *row);

/* sums [m][FTH_INT8_COLUMNS] = x times one panel; x: [m][ldx], groups * FTH_INT8_DEPTH of a row
 * used; m from 1 to FTH_INT8_ROWS. */
typedef void fth_int8_product(int64_t m, const uint8_t *x, int64_t ldx, const int8_t *panel,
                              int64_t groups, int32_t *sums);

/* One way to multiply. */
typedef struct fth_int8_path {
    const char *name;
    bool biased;    /* x holds p + 128: its unit wants one factor without a sign */
    int64_t groups; /* the groups of a panel are a multiple of this */
    bool (*present)(void);
    fth_int8_product *product; /* NULL: digits' own (digits.h) */
    int digits;                /* bytes of a weight */
    fth_int8_pack_row *pack_row;
} fth_int8_path;

/* A path by name: "plain", "avx2", "avx-vnni", "vnni", "amx", or the last one's twin "plain-amx".
 * NULL: there is no such path, or the machine lacks its unit. */
const fth_int8_path *fth_int8_path_named(const char *name);

/* The best path that an instruction set (cpu.h; NULL: any) and this machine allow: "avx512" has
 * vnni and "avx2" avx-vnni where the machine does. */
const fth_int8_path *fth_int8_path_for(const char *isa);

static inline int64_t fth_int8_panels(int64_t n) {
    return (n + FTH_INT8_COLUMNS - 1) / FTH_INT8_COLUMNS;
}

static inline int64_t fth_int8_groups(const fth_int8_path *path, int64_t k) {
    const int64_t groups = (k + FTH_INT8_DEPTH - 1) / FTH_INT8_DEPTH;
    return (groups + path->groups - 1) / path->groups * path->groups;
}

/* Bytes of a map's panels, scales and offsets, and how they lie in them. */
int64_t fth_int8_bytes(const fth_int8_path *path, int64_t n, int64_t k);
void fth_int8_place(const fth_int8_path *path, fth_int8 *w, int64_t n, int64_t k, void *data);

#endif
