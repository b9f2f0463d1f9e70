/* isa.c: which instruction set the kernels run with: what the processor announces, asked once, or
 * what a test wants. */
#include "backend/cpu/cpu.h"

#include <stdatomic.h>
#include <string.h>

#include "backend/cpu/tile/unit.h"

#define TABLES(isa) extern const fth_cpu_table fth_cpu_##isa##_f32_table, fth_cpu_##isa##_bf16_table
TABLES(plain);
#ifdef FTH_CPU_X86
TABLES(avx2);
TABLES(avx512);
extern const fth_cpu_table fth_cpu_avx512bf16_bf16_table;

static int has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static int has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static int has_avx512bf16(void) {
    return has_avx512() && __builtin_cpu_supports("avx512bf16");
}

/* For bf16 alone, and some CPUs multiply pairs at half of the rate at which they multiply floats.
 * Asked once, so that all devices of a process are alike. */
static int vectors_of_pairs_pay(fth_precision precision) {
    enum { UNKNOWN, NO, YES };
    static atomic_int answer;
    if (precision != FTH_PRECISION_BF16) return 0;
    int known = atomic_load(&answer);
    if (known == UNKNOWN) {
        const int found = fth_cpu_unit_outruns(FTH_UNIT_BF16, FTH_UNIT_AVX512) ? YES : NO;
        if (atomic_compare_exchange_strong(&answer, &known, found)) known = found;
    }
    return known == YES;
}
#endif

static int has_plain(void) {
    return 1;
}

typedef struct isa {
    const char *name;
    int (*present)(void);
    int (*pays)(fth_precision);    /* asked where none is named; NULL: it does */
    const char *pairs;             /* the unit that multiplies pairs, NULL: none */
    const fth_cpu_table *table[2]; /* by fth_precision */
} isa;

/* clang-format off */
#define TABLES_OF(isa) {&fth_cpu_##isa##_f32_table, &fth_cpu_##isa##_bf16_table}
#define TABLES_BF16    {&fth_cpu_avx512_f32_table, &fth_cpu_avx512bf16_bf16_table}
static const isa isas[] = { /* best first; what stands behind plain has to be asked for */
#ifdef FTH_CPU_X86
    {"amx", has_avx512bf16, NULL, "amx", TABLES_BF16},
    {"amx", has_avx512, NULL, "amx", TABLES_OF(avx512)},
    {"avx512-bf16", has_avx512bf16, vectors_of_pairs_pay, "avx512-bf16", TABLES_BF16},
    {"avx512", has_avx512, NULL, NULL, TABLES_OF(avx512)},
    {"avx2", has_avx2, NULL, NULL, TABLES_OF(avx2)},
#endif
    {"plain", has_plain, NULL, NULL, TABLES_OF(plain)},
    {"plain-bf16", has_plain, NULL, "plain-bf16", TABLES_OF(plain)},
    {"plain-amx", has_plain, NULL, "plain-amx", TABLES_OF(plain)},
#ifdef FTH_CPU_X86
    {"avx512-plain-bf16", has_avx512, NULL, "plain-bf16", TABLES_OF(avx512)},
    {"avx512-plain-amx", has_avx512, NULL, "plain-amx", TABLES_OF(avx512)},
#endif
};
/* clang-format on */

fth_err fth_cpu_choose(const char *name, fth_precision precision, fth_cpu_choice *out) {
    bool known = false;
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        const isa *x = &isas[i];
        if (name && strcmp(name, x->name) != 0) continue;
        known = true;
        const fth_cpu_pairs_path *pairs = x->pairs ? fth_cpu_pairs_path_named(x->pairs) : NULL;
        if (!x->present() || (x->pairs && !pairs)) continue;
        if (!name && x->pays && !x->pays(precision)) continue;
        const bool parts = precision == FTH_PRECISION_FP32 && fth_cpu_pairs_on_tiles(pairs);
        *out = (fth_cpu_choice){.name = name ? x->name : NULL,
                                .table = x->table[precision],
                                .pairs = precision == FTH_PRECISION_BF16 ? pairs : NULL,
                                .parts = parts ? pairs : NULL};
        return FTH_OK;
    }
    if (known) return fth_fail(FTH_USAGE, "instruction set %s: this machine lacks it", name);
    return fth_fail(FTH_USAGE,
                    "instruction set %s: not one of plain, avx2, avx512, avx512-bf16, amx", name);
}
