/* shuffle.h: a random order of n things that takes no memory.
 *
 * A Feistel network of Philox rounds over the smallest 4^k >= n, walked until it lands below n: a
 * one-to-one map of [0, n) onto itself for every seed and epoch, computed for any place on its
 * own. */
#ifndef FTH_DATA_SHUFFLE_H
#define FTH_DATA_SHUFFLE_H

#include <stdint.h>

typedef struct fth_shuffle {
    uint64_t seed, n;
    int64_t epoch;
    int half; /* bits of one half of a number */
} fth_shuffle;

void fth_shuffle_init(fth_shuffle *s, uint64_t seed, int64_t epoch, uint64_t n);

/* The thing at a place; place in [0, n). */
uint64_t fth_shuffle_at(const fth_shuffle *s, uint64_t place);

#endif
