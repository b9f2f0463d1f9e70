/* philox.c: ten rounds of Philox, uniform numbers from the upper bits, and normal ones by Box and
 * Muller. */
#include "base/philox.h"

#include <math.h>

void fth_rng_init(fth_rng *r, uint64_t key, uint64_t stream) {
    *r = (fth_rng){.key = key, .stream = stream};
}

uint32_t fth_rng_u32(fth_rng *r) {
    if (r->n_left == 0) {
        const uint32_t counter[4] = {(uint32_t)r->next, (uint32_t)(r->next >> 32),
                                     (uint32_t)r->stream, (uint32_t)(r->stream >> 32)};
        fth_philox(r->key, counter, r->left);
        r->next++;
        r->n_left = 4;
    }
    return r->left[4 - r->n_left--];
}

static uint64_t next_u64(fth_rng *r) {
    uint64_t low = fth_rng_u32(r);
    return low | (uint64_t)fth_rng_u32(r) << 32;
}

uint64_t fth_rng_below(fth_rng *r, uint64_t n) {
    if (n == 0) return 0;
    /* 2^64 mod n values at the bottom are thrown away; what stays is a multiple of n */
    uint64_t first = (0 - n) % n, x;
    do x = next_u64(r);
    while (x < first);
    return x % n;
}

double fth_rng_uniform(fth_rng *r) {
    return (double)(next_u64(r) >> 11) * 0x1p-53;
}

double fth_rng_normal(fth_rng *r) {
    /* Box and Muller; the second number of the pair is not kept, so that the state stays small */
    double radius = sqrt(-2.0 * log(1.0 - fth_rng_uniform(r)));
    return radius * cos(6.283185307179586476925 * fth_rng_uniform(r));
}
