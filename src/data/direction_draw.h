/* direction_draw.h: an epoch in which directions come by temperature, without any memory of what
 * came before.
 *
 * Direction k has q_k = n_k^(1/T) / sum_j n_j^(1/T) of an epoch's items, at least one; all together
 * are about as many as there are sentences. Its items go through its sentences in an endless row of
 * shuffles (data/shuffle.h), each of which has every sentence once, and an epoch begins where the
 * one before it ended. So a sentence is a function of seed, epoch and item, and the sentences of a
 * direction differ by one at most in how often they have come. */
#ifndef FTH_DATA_DIRECTION_DRAW_H
#define FTH_DATA_DIRECTION_DRAW_H

#include <stdint.h>

#include "base/error.h"
#include "data/dataset.h"

/* Zeroed: no draw, may be freed. */
typedef struct fth_direction_draw {
    const int64_t *sentences; /* [n + 1] first sentence of each direction; the data set's */
    int64_t *items;           /* [n + 1] first item of each direction */
    int32_t n;                /* directions; 0: sentences come as they are */
    uint64_t seed;
} fth_direction_draw;

/* How many of an epoch's items are of a direction with so many sentences. total: the sum of
 * sentences^(1/temperature) over the directions. */
int64_t fth_direction_share(int64_t sentences, double temperature, double total, int64_t all);

/* The data set must outlive the draw. A temperature of 1, or a data set without directions, makes
 * no draw. */
fth_err fth_direction_draw_init(fth_direction_draw *d, const fth_dataset *data, double temperature,
                                uint64_t seed);
void fth_direction_draw_fini(fth_direction_draw *d);

/* Items of an epoch. */
int64_t fth_direction_draw_items(const fth_direction_draw *d);

/* The sentence that an item is in an epoch, from 1. */
int64_t fth_direction_draw_at(const fth_direction_draw *d, int64_t epoch, int64_t item);

#endif
