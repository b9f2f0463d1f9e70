/* random.cuh: dropout by the counters of graph/dropout.h, on the GPU. */
#ifndef FTH_BACKEND_CUDA_RANDOM_CUH
#define FTH_BACKEND_CUDA_RANDOM_CUH

#include "backend/cuda/vec.cuh"

/* A place of dropout as kernels know it. */
struct drop_place {
    uint32_t threshold; /* lanes below it are dropped; 0: none are */
    uint32_t site;
    float scale; /* of the survivors */
    int base;    /* which row_base counts; -1: none */
    int width;   /* of the value */
};

static inline drop_place drop_at(const fth_drop *drop, const fth_tensor *t) {
    const int base = (int)t->extent < FTH_ROW_EXTENTS ? (int)t->extent : -1;
    const bool on = drop->p > 0;
    return {on ? fth_drop_threshold(drop->p) : 0, drop->site, on ? fth_drop_scale(drop->p) : 1.0f,
            base, t->width};
}

/* Philox4x32 (base/philox.h), by the rounds of dropout. */
static __device__ __forceinline__ uint4 philox(uint64_t key, uint4 c) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
#pragma unroll
    for (int round = 0; round < FTH_DROP_ROUNDS; round++) {
        uint64_t p0, p1; /* said so that it becomes one instruction each */
        asm("mul.wide.u32 %0, %1, %2;" : "=l"(p0) : "r"(c.x), "n"(0xD2511F53u));
        asm("mul.wide.u32 %0, %1, %2;" : "=l"(p1) : "r"(c.z), "n"(0xCD9E8D57u));
        c = make_uint4((uint32_t)(p1 >> 32) ^ c.y ^ k0, (uint32_t)p1,
                       (uint32_t)(p0 >> 32) ^ c.w ^ k1, (uint32_t)p0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

static __device__ __forceinline__ uint4 drop_block(const fth_cuda_step *step, uint32_t site,
                                                   uint64_t block) {
    return philox(step->seed,
                  make_uint4((uint32_t)block, (uint32_t)(block >> 32), site, step->update));
}

/* Whether element e survives. */
static __device__ __forceinline__ bool drop_keeps(const fth_cuda_step *step, uint32_t threshold,
                                                  uint32_t site, uint64_t e) {
    const uint4 block = drop_block(step, site, e >> 3);
    const uint32_t k = (uint32_t)(e & 7);
    const uint32_t word = k < 2 ? block.x : k < 4 ? block.y : k < 6 ? block.z : block.w;
    return (word >> 16 * (k & 1) & 0xffffu) >= threshold;
}

/* Which of the eight elements from e on survive, bit by bit; e is no multiple of 8. Not inlined:
 * odd widths need not be fast, and the code stays small. */
static __device__ __noinline__ uint32_t drop_mask_odd(const fth_cuda_step *step, uint32_t threshold,
                                                      uint32_t site, uint64_t e) {
    uint32_t mask = 0;
    for (int i = 0; i < 8; i++)
        mask |= (uint32_t)drop_keeps(step, threshold, site, e + (uint64_t)i) << i;
    return mask;
}

/* What dropout needs of a step, for kernels that keep it in registers. */
struct drop_key {
    uint64_t seed;
    int64_t base; /* number of row 0 */
    uint32_t update;
};

static __device__ __forceinline__ drop_key drop_key_of(const fth_cuda_step *step, drop_place d) {
    return {step->seed, d.base < 0 ? 0 : step->row_base[d.base], step->update};
}

static __device__ __forceinline__ uint64_t drop_element(const drop_key &key, drop_place d,
                                                        int64_t row, int column) {
    return (uint64_t)(key.base + row) * (uint64_t)d.width + (uint64_t)column;
}

/* Which of the eight elements from (row, column) on survive, bit by bit, where any are dropped;
 * width and column are multiples of 8. */
static __device__ __forceinline__ uint32_t drop_bits(const drop_key &key, drop_place d, int64_t row,
                                                     int column) {
    const uint64_t block = drop_element(key, d, row, column) >> 3;
    const uint4 drawn =
        philox(key.seed, make_uint4((uint32_t)block, (uint32_t)(block >> 32), d.site, key.update));
    const uint32_t words[4] = {drawn.x, drawn.y, drawn.z, drawn.w};
    uint32_t mask = 0;
#pragma unroll
    for (int i = 0; i < 8; i++)
        mask |= (uint32_t)((words[i / 2] >> 16 * (i & 1) & 0xffffu) >= d.threshold) << i;
    return mask;
}

/* Which of the eight elements from (row, column) on survive, bit by bit. even: width and column are
 * multiples of 8. */
static __device__ __forceinline__ uint32_t drop_mask(const fth_cuda_step *step, drop_place d,
                                                     int64_t row, int column, bool even) {
    if (d.threshold == 0) return 0xffu;
    const drop_key key = drop_key_of(step, d);
    const uint64_t e = drop_element(key, d, row, column);
    if (!even && (e & 7) != 0) return drop_mask_odd(step, d.threshold, d.site, e);
    return drop_bits(key, d, row, column);
}

/* What elements are multiplied with of which those in the mask survive. */
static __device__ __forceinline__ void kept_factors(drop_place d, uint32_t mask, float v[8]) {
    const float scale = d.threshold == 0 ? 1.0f : d.scale;
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = mask >> i & 1 ? scale : 0.0f;
}

/* What the eight elements from (row, column) on are multiplied with. */
static __device__ __forceinline__ void drop_factors(const fth_cuda_step *step, drop_place d,
                                                    int64_t row, int column, bool even,
                                                    float v[8]) {
    kept_factors(d, drop_mask(step, d, row, column, even), v);
}

#endif
