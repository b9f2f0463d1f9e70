/* dropout.h: which elements are dropped. Counted, not drawn: any mask can be made again by any
 * backend, on a recompute, after a resume or in another process.
 *
 * Element e of a place: e = (row_base + row) * width + column, row_base = rows of this update in
 * earlier micro-batches. Attention probabilities: e = (((row_base + query row) * heads + head)
 * << 16) + key's index in its sentence. Word dropout: e = row_base + row.
 * One block of Philox4x32-7 gives 8 lanes of 16 bits: element e has lane e % 8 of block e / 8. */
#ifndef FTH_GRAPH_DROPOUT_H
#define FTH_GRAPH_DROPOUT_H

#include <stdint.h>

#include "base/philox.h"

/* Seven rounds are enough, and what they cost is most of what dropout costs. */
enum { FTH_DROP_ROUNDS = 7 };

/* A lane below this is dropped; probabilities are multiples of 1/65536. */
static inline uint32_t fth_drop_threshold(float p) {
    return (uint32_t)(p * 65536.0f + 0.5f);
}

/* Survivors are multiplied by this, so that the mean is kept exactly. */
static inline float fth_drop_scale(float p) {
    return (float)(65536.0 / (65536.0 - (double)fth_drop_threshold(p)));
}

/* The 8 lanes of block number `block`, as four words of two lanes, low half first. */
static inline void fth_drop_block(uint64_t seed, uint32_t update, uint32_t site, uint64_t block,
                                  uint32_t out[4]) {
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), site, update};
    fth_philox_by(FTH_DROP_ROUNDS, seed, counter, out);
}

/* Whether element e survives: the plain form that the fast ones are compared with. */
static inline int fth_drop_keeps(uint64_t seed, uint32_t update, uint32_t site, float p,
                                 uint64_t e) {
    uint32_t words[4];
    fth_drop_block(seed, update, site, e >> 3, words);
    uint32_t lane = (words[(e & 7) >> 1] >> (16 * (e & 1))) & 0xffffu;
    return lane >= fth_drop_threshold(p);
}

#endif
