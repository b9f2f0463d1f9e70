/* pairs_turn.h: pairs of bf16 numbers that are neighbours along k, as one number of 32 bits
 * each. */
#ifndef FTH_BACKEND_CPU_PRODUCT_PAIRS_TURN_H
#define FTH_BACKEND_CPU_PRODUCT_PAIRS_TURN_H

#include "backend/cpu/kernel/vec.h"

/* A pair as one number: the first is its lower half. */
static inline uint32_t pair_of(uint16_t first, uint16_t second) {
    return (uint32_t)second << 16 | first;
}

/* VW pairs of bf16: the numbers of `low`, rounded, and behind them those of `high`. */
inline_ vf v_two_rounded(vf low, vf high) {
#if defined(__AVX512BF16__)
    return (vf)_mm512_cvtne2ps_pbh(high, low);
#else
    uint16_t both[2 * VW];
    vf pairs;
    v_store_real(both, low);
    v_store_real(both + VW, high);
    memcpy(&pairs, both, sizeof pairs);
    return pairs;
#endif
}

/* VW pairs: numbers of `first` with those of `second`, rounded to bf16. */
inline_ vf v_pairs_rounded(vf first, vf second) {
#if defined(__AVX512BF16__)
    const __m512i turn =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return (vf)_mm512_permutexvar_epi16(turn, (__m512i)_mm512_cvtne2ps_pbh(second, first));
#else
    return (vf)((vu)v_rounded(first) >> 16 | ((vu)v_rounded(second) & 0xffff0000));
#endif
}

/* VW pairs: numbers of bf16 with those of another row, NULL: with 0. */
inline_ vf v_pairs_of_rows(const uint16_t *first, const uint16_t *second) {
    const vu high = second ? (vu)v_load_real(second) : (vu){0};
    return (vf)((vu)v_load_real(first) >> 16 | high);
}

/* sum + x y for each pair of numbers, VW sums. */
inline_ vf v_dot_pairs(vf x, vf y, vf sum) {
#if defined(__AVX512BF16__)
    return _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)y);
#else
    const vu upper = (vu){0} + 0xffff0000;
    const vf low = v_fma((vf)((vu)x << 16), (vf)((vu)y << 16), sum);
    return v_fma((vf)((vu)x & upper), (vf)((vu)y & upper), low);
#endif
}

/* VW rows of VW pairs, turned: row q of `to` has pair q of each row. Strides are in bytes. */
inline_ void store_turned(void *to, int64_t stride, vf r[VW]) {
    v_transpose(r);
#pragma GCC unroll 16
    for (int i = 0; i < VW; i++) memcpy((char *)to + i * stride, &r[i], sizeof r[i]);
}

inline_ void turn_pairs(void *to, int64_t stride, const void *from, int64_t from_stride) {
    vf r[VW];
#pragma GCC unroll 16
    for (int i = 0; i < VW; i++) memcpy(&r[i], (const char *)from + i * from_stride, sizeof r[i]);
    store_turned(to, stride, r);
}

/* The same for rows of 2 VW floats, which are rounded. */
inline_ void turn_floats(void *to, int64_t stride, const void *from, int64_t from_stride) {
    vf r[VW];
#pragma GCC unroll 16
    for (int i = 0; i < VW; i++) {
        const float *row = (const float *)(const void *)((const char *)from + i * from_stride);
        r[i] = v_two_rounded(v_load(row), v_load(row + VW));
    }
    store_turned(to, stride, r);
}

#endif
