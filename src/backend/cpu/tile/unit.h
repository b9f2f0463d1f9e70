/* unit.h: the arithmetic units of processors: which of them this machine really has, and what they
 * give at most. */
#ifndef FTH_BACKEND_CPU_TILE_UNIT_H
#define FTH_BACKEND_CPU_TILE_UNIT_H

#include <stdbool.h>

#include "base/error.h"

typedef enum fth_cpu_unit {
    FTH_UNIT_PLAIN,    /* multiply and add, with the vectors that the compiler chooses */
    FTH_UNIT_AVX2,     /* fused multiply-add of 8 floats */
    FTH_UNIT_AVX512,   /* of 16 floats */
    FTH_UNIT_AVX_VNNI, /* 32 products of bytes, summed by fours */
    FTH_UNIT_VNNI,     /* 64 products of bytes, summed by fours */
    FTH_UNIT_BF16,     /* 32 products of bf16, summed by twos */
    FTH_UNIT_AMX,      /* products of 16 x 32 tiles of bf16 */
    FTH_UNIT_AMX_INT8, /* of 16 x 64 tiles of bytes */
    FTH_N_UNITS
} fth_cpu_unit;

const char *fth_cpu_unit_name(fth_cpu_unit unit);

/* What the unit multiplies: "fp32", "bf16" or "int8". */
const char *fth_cpu_unit_numbers(fth_cpu_unit unit);

/* Tiles are tried in a process of their own: on some virtual machines the processor says that it
 * has them and dies of them, on others it hides their description and they work. */
bool fth_cpu_unit_present(fth_cpu_unit unit);

/* VNNI on vectors of 32 bytes: gcc's __builtin_cpu_supports does not know it everywhere. */
bool fth_has_avx_vnni(void);

/* Operations per second (a multiplication and an addition are two) of all threads together, from
 * loops that touch registers alone; the best of several short tries. */
fth_err fth_cpu_unit_peak(fth_cpu_unit unit, int threads, double *out);

/* Whether a unit does more operations in a moment than another, both present: by a fraction of a
 * millisecond of such loops on this thread. */
bool fth_cpu_unit_outruns(fth_cpu_unit unit, fth_cpu_unit other);

#endif
