/* vec.h: vectors of floats of the instruction set at hand, for the few places that the compiler
 * does not turn into good vector code by itself: products and transposition. VW floats a vector. */
#ifndef FTH_BACKEND_CPU_KERNEL_VEC_H
#define FTH_BACKEND_CPU_KERNEL_VEC_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define inline_ static inline __attribute__((always_inline))

#if defined(__AVX512F__)

enum { VW = 16 };
typedef __m512 vf;
typedef int32_t vi __attribute__((vector_size(64)));
inline_ vf v_zero(void) {
    return _mm512_setzero_ps();
}
inline_ vf v_set(float x) {
    return _mm512_set1_ps(x);
}
inline_ vf v_load(const float *p) {
    return _mm512_loadu_ps(p);
}
inline_ void v_store(float *p, vf x) {
    _mm512_storeu_ps(p, x);
}
inline_ vf v_add(vf a, vf b) {
    return _mm512_add_ps(a, b);
}
inline_ vf v_max(vf a, vf b) {
    return _mm512_max_ps(a, b);
}
inline_ vf v_min(vf a, vf b) {
    return _mm512_min_ps(a, b);
}
/* p 2^n for whole n from -128 to 128; shifted is n + 1.5 * 2^23 */
inline_ vf v_scale(vf p, vf shifted, vf n) {
    (void)shifted;
    return _mm512_scalef_ps(p, n);
}
inline_ float v_largest(vf x) {
    return _mm512_reduce_max_ps(x);
}
inline_ float v_sum(vf x) {
    return _mm512_reduce_add_ps(x);
}
/* The sums of four vectors. */
inline_ void v_sums4(const vf x[4], float out[4]) {
    const vf ab = _mm512_add_ps(_mm512_unpacklo_ps(x[0], x[1]), _mm512_unpackhi_ps(x[0], x[1]));
    const vf cd = _mm512_add_ps(_mm512_unpacklo_ps(x[2], x[3]), _mm512_unpackhi_ps(x[2], x[3]));
    const vf abcd = _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
    const __m256 two = _mm256_add_ps(_mm512_castps512_ps256(abcd), _mm512_extractf32x8_ps(abcd, 1));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(two), _mm256_extractf128_ps(two, 1)));
}
inline_ vf v_fma(vf a, vf b, vf c) {
    return _mm512_fmadd_ps(a, b, c);
}
/* max(0, x); a NaN stays one */
inline_ vf v_relu(vf x) {
    return _mm512_max_ps(_mm512_setzero_ps(), x);
}
/* x where gate > 0, else 0 */
inline_ vf v_gate(vf x, vf gate) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(gate, _mm512_setzero_ps(), _CMP_GT_OQ), x);
}
/* Turns VW rows of VW floats into columns. */
inline_ void v_transpose(vf r[VW]) {
    vf t[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4)
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            const __m512d a = _mm512_castps_pd(t[i + j]), b = _mm512_castps_pd(t[i + j + 2]);
            r[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
            r[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        const vf ab0 = _mm512_shuffle_f32x4(r[j], r[j + 4], 0x88);
        const vf ab1 = _mm512_shuffle_f32x4(r[j], r[j + 4], 0xdd);
        const vf cd0 = _mm512_shuffle_f32x4(r[j + 8], r[j + 12], 0x88);
        const vf cd1 = _mm512_shuffle_f32x4(r[j + 8], r[j + 12], 0xdd);
        t[j] = _mm512_shuffle_f32x4(ab0, cd0, 0x88);
        t[j + 8] = _mm512_shuffle_f32x4(ab0, cd0, 0xdd);
        t[j + 4] = _mm512_shuffle_f32x4(ab1, cd1, 0x88);
        t[j + 12] = _mm512_shuffle_f32x4(ab1, cd1, 0xdd);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) r[i] = t[i];
}

#elif defined(__AVX2__)

enum { VW = 8 };
typedef __m256 vf;
typedef int32_t vi __attribute__((vector_size(32)));
inline_ vf v_zero(void) {
    return _mm256_setzero_ps();
}
inline_ vf v_set(float x) {
    return _mm256_set1_ps(x);
}
inline_ vf v_load(const float *p) {
    return _mm256_loadu_ps(p);
}
inline_ void v_store(float *p, vf x) {
    _mm256_storeu_ps(p, x);
}
inline_ vf v_add(vf a, vf b) {
    return _mm256_add_ps(a, b);
}
inline_ vf v_max(vf a, vf b) {
    return _mm256_max_ps(a, b);
}
inline_ vf v_min(vf a, vf b) {
    return _mm256_min_ps(a, b);
}
inline_ float v_largest(vf x) {
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}
inline_ float v_sum(vf x) {
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}
inline_ void v_sums4(const vf x[4], float out[4]) {
    const vf ab = _mm256_hadd_ps(x[0], x[1]), cd = _mm256_hadd_ps(x[2], x[3]);
    const vf abcd = _mm256_hadd_ps(ab, cd);
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(abcd), _mm256_extractf128_ps(abcd, 1)));
}
inline_ vf v_fma(vf a, vf b, vf c) {
    return _mm256_fmadd_ps(a, b, c);
}
inline_ vf v_relu(vf x) {
    return _mm256_max_ps(_mm256_setzero_ps(), x);
}
inline_ vf v_gate(vf x, vf gate) {
    return _mm256_and_ps(_mm256_cmp_ps(gate, _mm256_setzero_ps(), _CMP_GT_OQ), x);
}
inline_ void v_transpose(vf r[VW]) {
    vf t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
        t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) r[i] = t[i];
}

#else

enum { VW = 4 };
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
inline_ vf v_zero(void) {
    return (vf){0};
}
inline_ vf v_set(float x) {
    return (vf){x, x, x, x};
}
inline_ vf v_load(const float *p) {
    vf x;
    memcpy(&x, p, sizeof x);
    return x;
}
inline_ void v_store(float *p, vf x) {
    memcpy(p, &x, sizeof x);
}
inline_ vf v_add(vf a, vf b) {
    return a + b;
}
inline_ vf v_max(vf a, vf b) {
    const vi more = a > b;
    return (vf)(((vi)a & more) | ((vi)b & ~more));
}
inline_ vf v_min(vf a, vf b) {
    const vi less = a < b;
    return (vf)(((vi)a & less) | ((vi)b & ~less));
}
inline_ float v_largest(vf x) {
    const float a = x[0] > x[1] ? x[0] : x[1], b = x[2] > x[3] ? x[2] : x[3];
    return a > b ? a : b;
}
inline_ float v_sum(vf x) {
    return (x[0] + x[2]) + (x[1] + x[3]);
}
inline_ void v_sums4(const vf x[4], float out[4]) {
    for (int i = 0; i < 4; i++) out[i] = v_sum(x[i]);
}
inline_ vf v_fma(vf a, vf b, vf c) {
    return a * b + c;
}
inline_ vf v_relu(vf x) {
    return (vf)((vi)x & ~(x < v_zero()));
}
inline_ vf v_gate(vf x, vf gate) {
    return (vf)((vi)x & (gate > v_zero()));
}
inline_ void v_transpose(vf r[VW]) {
    const vf a = r[0], b = r[1], c = r[2], d = r[3];
    for (int i = 0; i < 4; i++) r[i] = (vf){a[i], b[i], c[i], d[i]};
}

#endif

#if !defined(__AVX512F__)
/* p 2^n for whole n from -128 to 128; shifted is n + 1.5 * 2^23. Two factors, since one exponent
 * does not reach so far. */
inline_ vf v_scale(vf p, vf shifted, vf n) {
    (void)n;
    const vi k = (vi)shifted - 0x4b400000, half = k >> 1;
    return p * (vf)((half + 127) << 23) * (vf)((k - half + 127) << 23);
}
#endif

inline_ vf v_mul(vf a, vf b) {
    return a * b;
}

typedef uint32_t vu __attribute__((vector_size(sizeof(vf))));

/* x, but -inf in the lanes whose number is below n. */
inline_ vf v_before(vf x, vf lane, float n) {
    const vi hidden = lane < v_set(n), none = (vi)v_set(-__builtin_inff());
    return (vf)(((vi)x & ~hidden) | (none & hidden));
}

#ifdef FTH_REAL_IS_bf16
/* VW numbers of type bf16 as floats. */
inline_ vf v_load_real(const uint16_t *p) {
#if defined(__AVX512F__)
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
#elif defined(__AVX2__)
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
#else
    return (vf)(vi){(int)((unsigned)p[0] << 16), (int)((unsigned)p[1] << 16),
                    (int)((unsigned)p[2] << 16), (int)((unsigned)p[3] << 16)};
#endif
}
#if defined(__AVX512BF16__)
/* VW floats as bf16: nearest, ties to even; a NaN stays one. Below 2^-126 they become 0. */
inline_ void v_store_real(uint16_t *p, vf x) {
    _mm256_storeu_si256((__m256i *)p, (__m256i)_mm512_cvtneps_pbh(x));
}
/* The same; returns what has been stored. */
inline_ vf v_keep_real(uint16_t *p, vf x) {
    const __m256i rounded = (__m256i)_mm512_cvtneps_pbh(x);
    _mm256_storeu_si256((__m256i *)p, rounded);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(rounded), 16));
}
#else
/* VW floats as bf16, each in the upper half of its lane: nearest, ties to even; a NaN stays one. */
inline_ vi v_rounded(vf x) {
#if defined(__AVX512F__)
    const __m512i bits = _mm512_castps_si512(x), one = _mm512_set1_epi32(1);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
    const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    return (vi)_mm512_mask_or_epi32(up, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), bits,
                                    _mm512_set1_epi32(0x400000));
#else
    const vi bits = (vi)x, is_nan = x != x;
    const vi up = bits + 0x7fff + ((bits >> 16) & 1), quiet = bits | 0x400000;
    return (up & ~is_nan) | (quiet & is_nan);
#endif
}
/* The upper halves of all lanes. */
inline_ void v_store_upper(uint16_t *p, vi x) {
#if defined(__AVX512BW__)
    const __m512i odd = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0x1f001d, 0x1b0019, 0x170015,
                                         0x130011, 0xf000d, 0xb0009, 0x70005, 0x30001);
    const __m512i upper =
        _mm512_permutexvar_epi16(odd, (__m512i)x); /* one step less than vpmovdw */
    _mm256_storeu_si256((__m256i *)p, _mm512_castsi512_si256(upper));
#elif defined(__AVX2__)
    const __m256i low = _mm256_srli_epi32((__m256i)x, 16);
    _mm_storeu_si128((__m128i *)p, _mm_packus_epi32(_mm256_castsi256_si128(low),
                                                    _mm256_extracti128_si256(low, 1)));
#else
    for (int i = 0; i < VW; i++) p[i] = (uint16_t)((uint32_t)x[i] >> 16);
#endif
}
inline_ void v_store_real(uint16_t *p, vf x) {
    v_store_upper(p, v_rounded(x));
}
/* The same; returns what has been stored. */
inline_ vf v_keep_real(uint16_t *p, vf x) {
    const vi rounded = v_rounded(x);
    v_store_upper(p, rounded);
    return (vf)(rounded & (int32_t)0xffff0000);
}
#endif
#else
inline_ vf v_load_real(const float *p) {
    return v_load(p);
}
inline_ void v_store_real(float *p, vf x) {
    v_store(p, x);
}
inline_ vf v_keep_real(float *p, vf x) {
    v_store(p, x);
    return x;
}
#endif

/* ---- four rows at a time: their sums and what follows from them take as long as one row's ---- */

typedef float v4 __attribute__((vector_size(16)));

/* x in four lanes, added up in v_sum's order. */
inline_ v4 v_fold(vf x) {
#if defined(__AVX512F__)
    const __m256 two = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    return _mm_add_ps(_mm256_castps256_ps128(two), _mm256_extractf128_ps(two, 1));
#elif defined(__AVX2__)
    return _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
#else
    return x;
#endif
}
/* The sums of four vectors, bit for bit v_sum's. */
inline_ v4 v_four_sums(const vf x[4]) {
    typedef int32_t i4 __attribute__((vector_size(16)));
    const v4 a = v_fold(x[0]), b = v_fold(x[1]), c = v_fold(x[2]), d = v_fold(x[3]);
    const i4 low = {0, 4, 1, 5}, high = {2, 6, 3, 7}, left = {0, 1, 4, 5}, right = {2, 3, 6, 7};
    /* lanes 0 and 2, and 1 and 3, of each */
    const v4 ab = __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, high);
    const v4 cd = __builtin_shuffle(c, d, low) + __builtin_shuffle(c, d, high);
    return __builtin_shuffle(ab, cd, left) + __builtin_shuffle(ab, cd, right);
}
inline_ v4 v4_sqrt(v4 x) {
#if defined(__AVX2__)
    return _mm_sqrt_ps(x);
#else
    for (int i = 0; i < 4; i++) x[i] = __builtin_sqrtf(x[i]);
    return x;
#endif
}

/* Up to whole vectors. */
inline_ int64_t v_round(int64_t n) {
    return (n + VW - 1) / VW * VW;
}

#endif
