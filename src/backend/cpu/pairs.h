/* pairs.h: products of bf16 numbers by the units that multiply pairs of them and add both to a float:
 * AVX-512 BF16 and AMX tiles. Each has a twin in plain C of the same source, so that the code is tested
 * on machines that lack the unit. */
#ifndef FTH_BACKEND_CPU_PAIRS_H
#define FTH_BACKEND_CPU_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FTH_PAIRS_COLUMNS = 64, /* of C that a panel of B makes */
    FTH_PAIRS_ROWS = 96     /* most rows of A for one call */
};

/* C[m][ldc] = A B, or C + A B, for one panel. A: [m][lda] bf16; panel: [pairs][FTH_PAIRS_COLUMNS][2],
 * neighbours along k side by side. m and pairs are multiples of what the path asks for. */
typedef void fth_pairs_product(int64_t m, const uint16_t *a, int64_t lda, const uint16_t *panel,
                               int64_t pairs, float *c, int64_t ldc, bool add);

typedef struct fth_pairs_path {
    const char *name;
    int64_t rows, pairs; /* m and pairs are multiples of these */
    bool (*present)(void);
    fth_pairs_product *product;
} fth_pairs_path;

/* A path by name: "avx512-bf16", "amx", or their twins "plain-bf16", "plain-amx". NULL: there is no
 * such path, or the machine lacks its unit. */
const fth_pairs_path *fth_pairs_path_named(const char *name);

/* Pairs of a panel of depth k, filled up to what a path takes, and numbers of such a panel. */
static inline int64_t fth_pairs_of(const fth_pairs_path *path, int64_t k) {
    return ((k + 1) / 2 + path->pairs - 1) / path->pairs * path->pairs;
}

static inline int64_t fth_pairs_panel(const fth_pairs_path *path, int64_t k) {
    return fth_pairs_of(path, k) * 2 * FTH_PAIRS_COLUMNS;
}

#endif
