/* half.h: numbers of 16 bits (IEEE binary16), the form in which features lie on the disk. Rounded
 * to the nearest, ties to even. */
#ifndef FTH_BASE_HALF_H
#define FTH_BASE_HALF_H

#include <stdint.h>
#include <string.h>

/* What is too large for it becomes the largest number, not infinity. */
static inline uint16_t fth_half_from(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) return sign | 0x7e00; /* NaN */
    if (bits >= 0x477ff000) return sign | 0x7bff;
    if (bits < 0x33000000) return sign; /* below half of the smallest */
    const int32_t exponent = (int32_t)(bits >> 23) - 127;
    const uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
    const int32_t shift = exponent < -14 ? -exponent - 1 : 13;
    uint32_t kept = mantissa >> shift;
    const uint32_t rest = mantissa & ((1u << shift) - 1), middle = 1u << (shift - 1);
    kept += rest > middle || (rest == middle && (kept & 1));
    /* the leading 1 is carried into the exponent */
    return sign | (uint16_t)(exponent < -14 ? kept : kept + ((uint32_t)(exponent + 14) << 10));
}

static inline float fth_half_to_float(uint16_t half) {
    /* both ways are gone, so that the compiler makes vectors of it */
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;
    const uint32_t scaled = rest + (UINT32_C(0xE0) << 23), small = rest >> 13 | UINT32_C(126) << 23;
    float normal, subnormal, x;
    memcpy(&normal, &scaled, sizeof normal);
    memcpy(&subnormal, &small, sizeof subnormal);
    normal *= 0x1p-112f;
    subnormal -= 0.5f;
    uint32_t bits[2], out;
    memcpy(&bits[0], &normal, sizeof bits[0]);
    memcpy(&bits[1], &subnormal, sizeof bits[1]);
    out = sign | (half & 0x7c00 ? bits[0] : bits[1]);
    memcpy(&x, &out, sizeof x);
    return x;
}

#endif
