/* pairs_turn.h: pairs of bf16 numbers that are neighbours along k, as one number of 32 bits each. */
#ifndef FTH_BACKEND_CPU_KERNEL_PAIRS_TURN_H
#define FTH_BACKEND_CPU_KERNEL_PAIRS_TURN_H

#include "backend/cpu/kernel/vec.h"

/* A pair as one number: the first is its lower half. */
static inline uint32_t pair_of(uint16_t first, uint16_t second) {
    return (uint32_t)second << 16 | first;
}

/* VW rows of VW pairs, turned: row q of `to` has pair q of each row. Strides are in bytes. */
inline_ void turn_pairs(void *to, int64_t stride, const void *from, int64_t from_stride) {
    vf r[VW];
#pragma GCC unroll 16
    for (int i = 0; i < VW; i++) memcpy(&r[i], (const char *)from + i * from_stride, sizeof r[i]);
    v_transpose(r);
#pragma GCC unroll 16
    for (int i = 0; i < VW; i++) memcpy((char *)to + i * stride, &r[i], sizeof r[i]);
}

#endif
