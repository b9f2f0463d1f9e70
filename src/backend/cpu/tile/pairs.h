/* pairs.h: products of bf16 numbers by the units that multiply pairs of them and add both to a
 * float: AVX-512 BF16 and AMX tiles. Each has a twin in plain C of the same source, so that the
 * code is tested on machines that lack the unit. */
#ifndef FTH_BACKEND_CPU_TILE_PAIRS_H
#define FTH_BACKEND_CPU_TILE_PAIRS_H

#include "backend/cpu/tile/amx.h"

enum {
    FTH_PAIRS_COLUMNS = 64, /* of C that a panel of B makes */
    FTH_PAIRS_ROWS = 96,    /* most rows of A for one call, on vectors */
    FTH_TILES_SIDE = 32 /* rows and columns of C that tiles make at a time, and of k in a step */
};

/* What becomes of the sums of a product on vectors. Everything begins at the first row and column
 * of the panel's C; ld: numbers from row to row. */
typedef struct fth_cpu_pairs_end {
    const float *floats; /* added; a bias has ld 0. NULL: nothing */
    int64_t ld_floats;
    const uint16_t *addend; /* bf16, added; NULL: nothing */
    int64_t ld_addend;
    const uint16_t *gate; /* bf16: C is 0 where this is not positive; NULL: kept everywhere */
    int64_t ld_gate;
    bool relu;
    float *full;       /* C as floats, or */
    uint16_t *rounded; /* as bf16 */
    int64_t ld;
} fth_cpu_pairs_end;

/* Rows of A: [m][ld] numbers; turned: pairs along k of all rows side by side, [pairs][ld]
 * numbers. */
typedef struct fth_cpu_pairs_a {
    const uint16_t *first;
    int64_t ld;
    bool turned;
} fth_cpu_pairs_a;

/* On vectors: C[m] = A B and what follows, for one panel. */
typedef void fth_cpu_pairs_product(int64_t m, fth_cpu_pairs_a a, const uint16_t *panel,
                                   int64_t pairs, const fth_cpu_pairs_end *end);

typedef struct fth_cpu_pairs_path {
    const char *name;
    int64_t pairs; /* those of a panel are a multiple of this */
    bool (*present)(void);
    fth_cpu_pairs_product *product; /* NULL: tiles */
    struct {
        void (*begin)(void); /* gives a thread its tiles */
        fth_tiles_product *product;
        void (*end)(void);
        bool (*crowded)(int64_t multiplications); /* few tiles should be used; NULL: never */
    } tiles;
} fth_cpu_pairs_path;

/* Whether a path, if any, multiplies tiles. */
static inline bool fth_cpu_pairs_on_tiles(const fth_cpu_pairs_path *path) {
    return path && !path->product;
}

/* A path by name: "avx512-bf16", "amx", or their twins "plain-bf16", "plain-amx". NULL: there is no
 * such path, or the machine lacks its unit. */
const fth_cpu_pairs_path *fth_cpu_pairs_path_named(const char *name);

/* Pairs of a panel of depth k, filled up to what a path takes, and numbers of such a panel. */
static inline int64_t fth_text_pairs_of(const fth_cpu_pairs_path *path, int64_t k) {
    return ((k + 1) / 2 + path->pairs - 1) / path->pairs * path->pairs;
}

static inline int64_t fth_cpu_pairs_panel(const fth_cpu_pairs_path *path, int64_t k) {
    return fth_text_pairs_of(path, k) * 2 * FTH_PAIRS_COLUMNS;
}

/* How numbers lie in a panel, neighbours along k side by side. Vectors:
 * [pairs][FTH_PAIRS_COLUMNS][2]. Tiles: strips of 32 columns, [2 strips][pairs / 16][2 tiles][16
 * pairs][16 columns][2]. */
enum { FTH_PARTS = 3 }; /* numbers of bf16 whose sum is a float */

#endif
