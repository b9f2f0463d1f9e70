/* ter_distance.h: the edit distance that TER uses: unit costs, and only cells near the diagonal.
 *
 * Tercom looks at a beam of cells around the diagonal of the table. For long lines that differ much
 * the result may be larger than the true distance, so the beam is part of the definition.
 *
 * The words of the hypothesis stay where they are; a shifted hypothesis is an order of them. */
#ifndef FTH_METRIC_TER_DISTANCE_H
#define FTH_METRIC_TER_DISTANCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "metric/words.h"

/* How a cell was reached. */
typedef enum fth_ter_op { FTH_TER_KEEP, FTH_TER_REPLACE, FTH_TER_DROP, FTH_TER_INSERT } fth_ter_op;

/* Column i of the bit-vector form of the table (align.h), for references of at most 64 words. */
typedef struct fth_ter_bits {
    uint64_t mask;        /* bit j: word i of the hypothesis is word j of the reference */
    uint64_t plus, minus; /* bit j: the cost changes by +1, -1 from j to j + 1 */
    uint64_t cost;        /* of the last cell */
} fth_ter_bits;

/* The table for one reference and one hypothesis in different orders. Zeroed it is empty. */
typedef struct fth_ter_distance {
    const uint32_t *hyp, *ref; /* [n], [m] borrowed */
    size_t n, m;
    int whole;            /* no cell is outside the beam */
    size_t width;         /* most cells in a row */
    size_t *low, *high;   /* [n + 1] row i has the cells low[i] <= j < high[i] */
    uint32_t *cost;       /* [n + 1][width] the table of the newest order; row 0 is not used */
    uint8_t *op;          /* [n + 1][width] */
    uint32_t *now, *next; /* [m + 2] two rows; cell j is at j + 1 */
    fth_ter_bits *bits;   /* [n + 1] mask by word, the others by order */
    size_t n_rows, n_cells, n_row; /* room in low, high and bits; in cost and op; in now, next */
} fth_ter_distance;

void fth_ter_distance_fini(fth_ter_distance *d);

/* Prepares for a hypothesis and a reference; neither is empty. */
fth_err fth_ter_distance_start(fth_ter_distance *d, const fth_word_ids *hyp,
                               const fth_word_ids *ref);

/* Fills the table for an order of the hypothesis; returns the distance. */
size_t fth_ter_distance_table(fth_ter_distance *d, const uint32_t *order /* [n] */);

/* The last operation for the first i words of the order and the first j of the reference. */
fth_ter_op fth_ter_distance_op(const fth_ter_distance *d, size_t i, size_t j);

/* The distance of another order, which begins with the same words as that of the table. */
size_t fth_ter_distance_of(fth_ter_distance *d, const uint32_t *order, size_t same);

#endif
