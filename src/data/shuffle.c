/* shuffle.c: six rounds of a Feistel network over 4^k numbers, walked again while the result is n
 * or more. */
#include "data/shuffle.h"

#include "base/philox.h"

enum { ROUNDS = 6 };

void fth_shuffle_init(fth_shuffle *s, uint64_t seed, int64_t epoch, uint64_t n) {
    *s = (fth_shuffle){.seed = seed, .epoch = epoch, .n = n, .half = 1};
    while (s->half < 32 && (UINT64_C(1) << (2 * s->half)) < n) s->half++;
}

static uint64_t feistel(const fth_shuffle *s, uint64_t x) {
    uint64_t mask = (UINT64_C(1) << s->half) - 1;
    uint32_t left = (uint32_t)(x >> s->half), right = (uint32_t)(x & mask);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t counter[4] = {right, round, (uint32_t)s->epoch, (uint32_t)(s->epoch >> 32)};
        uint32_t out[4];
        fth_philox(s->seed ^ UINT64_C(0x73687566666c65), counter, out);
        uint32_t mixed = left ^ (out[0] & (uint32_t)mask);
        left = right;
        right = mixed;
    }
    return (uint64_t)left << s->half | right;
}

uint64_t fth_shuffle_at(const fth_shuffle *s, uint64_t place) {
    do place = feistel(s, place);
    while (place >= s->n);
    return place;
}
