/* cpu_paths.h: the paths of the cpu device, for tests that try each one that this machine has. */
#ifndef FTH_TEST_CPU_PATHS_H
#define FTH_TEST_CPU_PATHS_H

#include "backend/cpu/cpu.h"

static const char *const isas[] = {"plain", "avx2", "avx512"};
enum { N_ISAS = sizeof isas / sizeof *isas };

/* Units that multiply pairs of bf16, and their twins in plain C: vectors, then tiles. */
static const char *const units[] = {"plain-bf16", "avx512-plain-bf16", "avx512-bf16",
                                    "plain-amx",  "avx512-plain-amx",  "amx"};
enum { N_UNITS = sizeof units / sizeof *units };

/* Tiles multiply floats too, in parts. */
static const char *const *const tiles = units + 3;
enum { N_TILES = N_UNITS - 3 };

static inline void assert_ok(fth_err err) {
    if (err != FTH_OK) fail_msg("%s", fth_error_message());
}

static inline bool has(const char *isa) {
    fth_cpu_choice choice;
    return fth_cpu_choose(isa, FTH_PRECISION_BF16, &choice) == FTH_OK;
}

#endif
