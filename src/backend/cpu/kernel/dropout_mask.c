/* dropout_mask.c: which elements survive (graph/dropout.h), as factors. Seven rounds of two
 * products per 8 elements; AVX-512 makes 8 blocks at a time in 64-bit lanes, whose upper halves may
 * hold anything: the products read the lower halves only. About half a cycle per element. */
#include "backend/cpu/kernel/kernel.h"

#include "backend/cpu/kernel/vec.h"
#include "graph/dropout.h"

/* One place of one update. */
typedef struct place {
    uint64_t seed;
    uint32_t update, site, threshold;
    float survivor; /* factor of an element that stays */
} place;

/* Elements first, ..., first + n - 1 of one block, first + n <= 8. */
static void within_block(const place *p, uint64_t block, int first, int n, float *factor) {
    uint32_t words[4];
    fth_drop_block(p->seed, p->update, p->site, block, words);
    for (int i = 0; i < n; i++) {
        const int lane = first + i;
        const uint32_t draw = words[lane >> 1] >> (16 * (lane & 1)) & 0xffffu;
        factor[i] = draw >= p->threshold ? p->survivor : 0.0f;
    }
}

#if defined(__AVX512F__)

enum { GROUP = 8 }; /* blocks made at a time */

inline_ __m512i upper_halves(__m512i x) {
    return _mm512_shuffle_epi32(x, (_MM_PERM_ENUM)0xf5);
}

/* Factors of a group from the four words of its blocks. */
inline_ void store_group(const place *p, const __m512i c[4], float *factor) {
    const __m512i w01 = _mm512_mask_shuffle_epi32(c[0], 0xaaaa, c[1], (_MM_PERM_ENUM)0xa0);
    const __m512i w23 = _mm512_mask_shuffle_epi32(c[2], 0xaaaa, c[3], (_MM_PERM_ENUM)0xa0);
    const __m512i threshold = _mm512_set1_epi16((short)p->threshold);
    const uint32_t even = _mm512_cmpge_epu16_mask(_mm512_unpacklo_epi64(w01, w23), threshold);
    const uint32_t odd = _mm512_cmpge_epu16_mask(_mm512_unpackhi_epi64(w01, w23), threshold);
    const __m512 survivor = _mm512_set1_ps(p->survivor);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { /* blocks 2 i and 2 i + 1 */
        const uint32_t keep = (even >> 8 * i & 0xff) | (odd >> 8 * i & 0xff) << 8;
        _mm512_storeu_ps(factor + 16 * i, _mm512_maskz_mov_ps((__mmask16)keep, survivor));
    }
}

/* Some groups at once, since a round waits for its products. */
inline_ void some_groups(const int n, const place *p, uint64_t block, float *factor) {
    const __m512i m0 = _mm512_set1_epi64(0xD2511F53), m1 = _mm512_set1_epi64(0xCD9E8D57);
    const __m512i count = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    __m512i c[2][4];
#pragma GCC unroll 2
    for (int i = 0; i < n; i++) {
        c[i][0] = _mm512_add_epi64(_mm512_set1_epi64((long long)block + i * GROUP), count);
        c[i][1] = _mm512_srli_epi64(c[i][0], 32);
        c[i][2] = _mm512_set1_epi64(p->site);
        c[i][3] = _mm512_set1_epi64(p->update);
    }
    uint32_t k0 = (uint32_t)p->seed, k1 = (uint32_t)(p->seed >> 32);
#pragma GCC unroll 7
    for (int round = 0; round < FTH_DROP_ROUNDS; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        const __m512i key0 = _mm512_set1_epi32((int)k0), key1 = _mm512_set1_epi32((int)k1);
#pragma GCC unroll 2
        for (int i = 0; i < n; i++) {
            const __m512i p0 = _mm512_mul_epu32(c[i][0], m0), p1 = _mm512_mul_epu32(c[i][2], m1);
            c[i][0] = _mm512_ternarylogic_epi64(upper_halves(p1), c[i][1], key0, 0x96); /* xor */
            c[i][2] = _mm512_ternarylogic_epi64(upper_halves(p0), c[i][3], key1, 0x96);
            c[i][1] = p1;
            c[i][3] = p0;
        }
    }
#pragma GCC unroll 2
    for (int i = 0; i < n; i++) store_group(p, c[i], factor + i * GROUP * 8);
}

static void whole_group(const place *p, uint64_t block, float *factor) {
    some_groups(1, p, block, factor);
}

static void two_groups(const place *p, uint64_t block, float *factor) {
    some_groups(2, p, block, factor);
}

#elif defined(__AVX2__)

enum { GROUP = 4 };

inline_ __m256i upper_halves(__m256i x) {
    return _mm256_shuffle_epi32(x, 0xf5);
}

/* Factors of one block from its 8 lanes of 16 bits. */
inline_ void store_block(float *factor, __m128i lanes, __m128i threshold, __m256 survivor) {
    const __m128i keep = _mm_cmpeq_epi16(_mm_max_epu16(lanes, threshold), lanes);
    const __m256 mask = _mm256_castsi256_ps(_mm256_cvtepi16_epi32(keep));
    _mm256_storeu_ps(factor, _mm256_and_ps(mask, survivor));
}

static void whole_group(const place *p, uint64_t block, float *factor) {
    const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
    __m256i c0 =
        _mm256_add_epi64(_mm256_set1_epi64x((long long)block), _mm256_set_epi64x(3, 2, 1, 0));
    __m256i c1 = _mm256_srli_epi64(c0, 32);
    __m256i c2 = _mm256_set1_epi64x(p->site), c3 = _mm256_set1_epi64x(p->update);
    uint32_t k0 = (uint32_t)p->seed, k1 = (uint32_t)(p->seed >> 32);
#pragma GCC unroll 7
    for (int round = 0; round < FTH_DROP_ROUNDS; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        const __m256i p0 = _mm256_mul_epu32(c0, m0), p1 = _mm256_mul_epu32(c2, m1);
        const __m256i key0 = _mm256_set1_epi32((int)k0), key1 = _mm256_set1_epi32((int)k1);
        c0 = _mm256_xor_si256(_mm256_xor_si256(upper_halves(p1), c1), key0);
        c2 = _mm256_xor_si256(_mm256_xor_si256(upper_halves(p0), c3), key1);
        c1 = p1;
        c3 = p0;
    }
    const __m256i w01 = _mm256_blend_epi32(c0, _mm256_slli_epi64(c1, 32), 0xaa);
    const __m256i w23 = _mm256_blend_epi32(c2, _mm256_slli_epi64(c3, 32), 0xaa);
    const __m256i even = _mm256_unpacklo_epi64(w01, w23), odd = _mm256_unpackhi_epi64(w01, w23);
    const __m128i threshold = _mm_set1_epi16((short)p->threshold);
    const __m256 survivor = _mm256_set1_ps(p->survivor);
    store_block(factor, _mm256_castsi256_si128(even), threshold, survivor);
    store_block(factor + 8, _mm256_castsi256_si128(odd), threshold, survivor);
    store_block(factor + 16, _mm256_extracti128_si256(even, 1), threshold, survivor);
    store_block(factor + 24, _mm256_extracti128_si256(odd, 1), threshold, survivor);
}

#else

enum { GROUP = 1 };

static void whole_group(const place *p, uint64_t block, float *factor) {
    within_block(p, block, 0, 8, factor);
}

#endif

void FTH_NAME(drop_factors)(const fth_exec *ex, const fth_drop *drop, uint64_t e, int64_t n,
                            float *restrict_ factor) {
    const place p = {.seed = ex->step.seed,
                     .update = ex->step.update,
                     .site = drop->site,
                     .threshold = fth_drop_threshold(drop->p),
                     .survivor = fth_drop_scale(drop->p)};
    if (p.threshold > 0xffffu) { /* a probability of one, to 1/65536: nothing survives */
        memset(factor, 0, sizeof *factor * (size_t)n);
        return;
    }
    uint64_t block = e >> 3;
    const int first = (int)(e & 7);
    if (first > 0 && n > 0) {
        const int head = n < 8 - first ? (int)n : 8 - first;
        within_block(&p, block++, first, head, factor);
        factor += head;
        n -= head;
    }
#if defined(__AVX512F__)
    for (; n >= 16 * GROUP; n -= 16 * GROUP, factor += 16 * GROUP, block += 2 * GROUP)
        two_groups(&p, block, factor);
#endif
    for (; n >= 8 * GROUP; n -= 8 * GROUP, factor += 8 * GROUP, block += GROUP)
        whole_group(&p, block, factor);
    for (; n > 0; n -= 8, factor += 8) within_block(&p, block++, 0, n < 8 ? (int)n : 8, factor);
}

/* n factors as bits. */
static void to_bits(const float *restrict_ factor, int64_t n, uint8_t *restrict_ bits) {
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16) {
        const __mmask16 kept = _mm512_cmp_ps_mask(v_load(factor + i), v_zero(), _CMP_NEQ_UQ);
        memcpy(bits + i / 8, &kept, sizeof kept);
    }
#endif
    for (; i < n; i += 8) {
        const int64_t end = n - i < 8 ? n - i : 8;
        unsigned byte = 0;
        for (int64_t k = 0; k < end; k++) byte |= (unsigned)(factor[i + k] != 0) << k;
        bits[i / 8] = (uint8_t)byte;
    }
}

static void from_bits(const uint8_t *restrict_ bits, int64_t n, float survivor,
                      float *restrict_ factor) {
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16) {
        __mmask16 kept;
        memcpy(&kept, bits + i / 8, sizeof kept);
        v_store(factor + i, _mm512_maskz_mov_ps(kept, v_set(survivor)));
    }
#endif
    for (; i < n; i++) factor[i] = bits[i / 8] >> (i % 8) & 1 ? survivor : 0.0f;
}

/* Rows of whole bytes without gaps are one long row. */
static bool is_one_row(const fth_tensor *bits, int64_t width) {
    return bits->ld * 8 == width;
}

void FTH_NAME(drop_to_bits)(const float *factor, int64_t width, const fth_tensor *bits,
                            int64_t first, int64_t n) {
    uint8_t *to = (uint8_t *)bits->data + first * bits->ld;
    if (is_one_row(bits, width))
        to_bits(factor, n * width, to);
    else
        for (int64_t i = 0; i < n; i++) to_bits(factor + i * width, width, to + i * bits->ld);
}

void FTH_NAME(drop_from_bits)(const fth_drop *drop, const fth_tensor *bits, int64_t first,
                              int64_t n, int64_t width, float *factor) {
    const uint8_t *from = (const uint8_t *)bits->data + first * bits->ld;
    const float survivor = fth_drop_scale(drop->p);
    if (is_one_row(bits, width))
        from_bits(from, n * width, survivor, factor);
    else
        for (int64_t i = 0; i < n; i++)
            from_bits(from + i * bits->ld, width, survivor, factor + i * width);
}
