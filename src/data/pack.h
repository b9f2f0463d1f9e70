/* pack.h: divides a window of items into batches that are nearly full.
 *
 * A batch takes the items in the order they come in until one does not fit; the room that is left
 * is filled from buckets of the later items by length, the best fit first. All batches of a window
 * get nearly the same number of rows, so that none is a small rest. */
#ifndef FTH_DATA_PACK_H
#define FTH_DATA_PACK_H

#include <stdint.h>

#include "base/error.h"

/* An item and its rows on each side. */
typedef struct fth_pack_item {
    int64_t index;
    int32_t src, tgt;
} fth_pack_item;

typedef struct fth_pack_limits {
    int32_t rows;      /* of a batch on each side; every item fits alone */
    int32_t sentences; /* of a batch; 0: no bound */
} fth_pack_limits;

/* Batch b is items[begin[b]] .. items[begin[b + 1] - 1]. */
typedef struct fth_packing {
    int32_t *begin; /* [n_batches + 1] */
    int32_t n_batches;
    /* room to work in, kept between calls */
    fth_pack_item *sorted; /* [n] */
    int32_t *by_length;    /* [n] places of items, by their rows on the fuller side */
    int32_t *first, *last; /* [longest + 2] places of items with k rows are by_length[first[k]] ..
                              by_length[last[k] - 1] */
    uint8_t *used;         /* [n] */
    int32_t items_capacity, bucket_capacity;
} fth_packing;

/* A zeroed packing is ready and may be freed. Reorders items[0..n). */
fth_err fth_pack(fth_packing *p, fth_pack_item *items, int32_t n, fth_pack_limits limits);

/* The same without reordering: a batch ends where the next item does not fit. */
fth_err fth_pack_in_order(fth_packing *p, const fth_pack_item *items, int32_t n,
                          fth_pack_limits limits);
void fth_packing_fini(fth_packing *p);

#endif
