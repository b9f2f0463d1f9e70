/* math.h: exp, the normal distribution and the activations as straight code without branches, which
 * the compiler turns into vector code inside of "omp simd" loops. Errors are a few units in the
 * last place. */
#ifndef FTH_BACKEND_CPU_KERNEL_MATH_H
#define FTH_BACKEND_CPU_KERNEL_MATH_H

#include "backend/cpu/kernel/vec.h"

/* e^x = 2^n e^r, n = round(x / ln 2), |r| <= ln 2 / 2; 0 below -87, inf above 88.7, NaN stays. */
static inline __attribute__((always_inline)) float fast_exp(float x) {
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number */
    const float clamped = x < -88.0f ? -88.0f : x > 89.0f ? 89.0f : x;
    const float shifted = clamped * 1.44269504f + magic;
    const float n = shifted - magic;
    float r = clamped - n * 0.693145752f; /* ln 2 in two parts: the first has zeros at its end */
    r = r - n * 1.42860677e-6f;
    float p = 1.394858081e-3f;
    p = p * r + 8.375128891e-3f;
    p = p * r + 4.166621827e-2f;
    p = p * r + 1.666641548e-1f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    /* 2^n in two factors: n reaches 128, which one exponent cannot hold */
    uint32_t shifted_bits;
    memcpy(&shifted_bits, &shifted, sizeof shifted_bits);
    const int32_t k = (int32_t)(shifted_bits - 0x4b400000u); /* less the bits of magic */
    const int32_t half = k >> 1;
    const uint32_t bits_a = (uint32_t)(half + 127) << 23;
    const uint32_t bits_b = (uint32_t)(k - half + 127) << 23;
    float a, b;
    memcpy(&a, &bits_a, sizeof a);
    memcpy(&b, &bits_b, sizeof b);
    const float y = p * a * b;
    return x < -87.3f ? 0.0f : y;
}

/* The same for a whole vector. */
inline_ vf v_exp(vf x) {
    const vf magic = v_set(12582912.0f), low = v_set(-88.0f), high = v_set(89.0f);
    /* max gives its second operand where one is not a number: it stays one */
    const vf clamped = v_min(high, v_max(low, x));
    const vf shifted = v_fma(clamped, v_set(1.44269504f), magic), n = v_add(shifted, -magic);
    vf r = v_fma(n, v_set(-0.693145752f), clamped);
    r = v_fma(n, v_set(-1.42860677e-6f), r);
    vf p = v_set(1.394858081e-3f);
    p = v_fma(p, r, v_set(8.375128891e-3f));
    p = v_fma(p, r, v_set(4.166621827e-2f));
    p = v_fma(p, r, v_set(1.666641548e-1f));
    p = v_fma(p, r, v_set(0.5f));
    p = v_fma(p, r, v_set(1.0f));
    p = v_fma(p, r, v_set(1.0f));
    return v_scale(p, shifted, n);
}

/* ln x for normal x > 0: x = 2^n m, ln m = 2 atanh((m - 1) / (m + 1)), m near 1. */
static inline __attribute__((always_inline)) float fast_log(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int32_t n = (int32_t)(bits - 0x3f3504f3u) >> 23; /* m from sqrt(1/2) to sqrt(2) */
    const uint32_t m_bits = bits - ((uint32_t)n << 23);
    float m;
    memcpy(&m, &m_bits, sizeof m);
    const float s = (m - 1.0f) / (m + 1.0f), q = s * s;
    float p = 2.0f / 9;
    p = p * q + 2.0f / 7;
    p = p * q + 2.0f / 5;
    p = p * q + 2.0f / 3;
    const float small = p * q * s + (float)n * 1.42860677e-6f;
    return (float)n * 0.693145752f + (2.0f * s + small);
}

/* Phi(x) and phi(x) of the standard normal distribution from one exponential:
 * 1 - Phi(|x|) = phi-like t P(t) e^(-x^2/2), t = 1 / (1 + |x| / sqrt 8), P fitted on |x| < 15. */
static inline __attribute__((always_inline)) void normal(float x, float *cdf, float *density) {
    const float size = x < 0 ? -x : x;
    const float t = 1.0f / (1.0f + 0.353553391f * size);
    const float e = fast_exp(-0.5f * x * x);
    float p = -5.871906131e-2f;
    p = p * t + 2.831369894e-1f;
    p = p * t - 4.848009672e-1f;
    p = p * t + 2.760011826e-1f;
    p = p * t - 2.567319936e-2f;
    p = p * t + 2.024795772e-1f;
    p = p * t + 2.431091845e-1f;
    p = p * t + 2.823804177e-1f;
    p = p * t + 2.820858414e-1f;
    const float tail = 0.5f * t * p * e;
    *cdf = x < 0 ? tail : 1.0f - tail;
    *density = 0.398942280f * e;
}

static inline __attribute__((always_inline)) float relu(float x) {
    return x < 0 ? 0.0f : x; /* a NaN stays one */
}

static inline __attribute__((always_inline)) float gelu(float x) {
    float cdf, density;
    normal(x, &cdf, &density);
    return x * cdf;
}

static inline __attribute__((always_inline)) float gelu_slope(float x) {
    float cdf, density;
    normal(x, &cdf, &density);
    return cdf + x * density;
}

#endif
