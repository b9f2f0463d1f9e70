/* bf16.h: numbers of 16 bits, the upper halves of floats. */
#ifndef FTH_BASE_BF16_H
#define FTH_BASE_BF16_H

#include <stdint.h>
#include <string.h>

static inline float fth_float_of_bf16(uint16_t x) {
    const uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Nearest, ties to even; a NaN stays one. */
static inline uint16_t fth_bf16_of_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded);
}

#endif
