/* philox.h: random numbers that are counted, not drawn.
 *
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) turns a key
 * and a counter into four random words without any state: any number can be made again at any time,
 * in any order, on any number of threads. fth_rng walks along one stream of such blocks for code
 * that wants one number after the other. */
#ifndef FTH_BASE_PHILOX_H
#define FTH_BASE_PHILOX_H

#include <stdint.h>

/* One block: out = Philox4x32(counter) under key (low word first), by so many rounds. From seven on
 * no test of the authors tells it from chance. */
static inline void fth_philox_by(int rounds, uint64_t key, const uint32_t counter[4],
                                 uint32_t out[4]) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < rounds; round++) {
        uint64_t p0 = (uint64_t)UINT32_C(0xD2511F53) * c0;
        uint64_t p1 = (uint64_t)UINT32_C(0xCD9E8D57) * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* By ten, as Philox4x32-10 is known. */
static inline void fth_philox(uint64_t key, const uint32_t counter[4], uint32_t out[4]) {
    fth_philox_by(10, key, counter, out);
}

/* Block i of stream s under a key has the counter {i low, i high, s low, s high}. The three numbers
 * of an fth_rng, with what is left of the newest block, are its whole state and may be stored. */
typedef struct fth_rng {
    uint64_t key, stream, next; /* next: the block to make when left is used up */
    uint32_t left[4]; /* words of the newest block; the last n_left are still to be used */
    int n_left;
} fth_rng;

void fth_rng_init(fth_rng *r, uint64_t key, uint64_t stream);
uint32_t fth_rng_u32(fth_rng *r);

/* A whole number in [0, n), each with the same probability; 0 when n is 0. */
uint64_t fth_rng_below(fth_rng *r, uint64_t n);

/* A multiple of 2^-53 in [0, 1). */
double fth_rng_uniform(fth_rng *r);

/* From the normal distribution with mean 0 and variance 1. */
double fth_rng_normal(fth_rng *r);

/* n such numbers from a stream at once, several times faster (normal.c). */
void fth_normals(uint64_t key, uint64_t stream, int64_t n, float *out);

#endif
