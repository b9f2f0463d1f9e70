#include "backend/cpu/cpu.h"

#include <string.h>

#define TABLES(isa) extern const fth_cpu_table fth_cpu_##isa##_f32_table, fth_cpu_##isa##_bf16_table
TABLES(plain);
#ifdef FTH_CPU_X86
TABLES(avx2);
TABLES(avx512);

static int has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static int has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static int has_plain(void) {
    return 1;
}

typedef struct isa {
    const char *name;
    int (*present)(void);
    const fth_cpu_table *table[2]; /* by fth_precision */
} isa;

#define ISA(name)                                                                                  \
    {                                                                                              \
#name, has_##name, {                                                                       \
            &fth_cpu_##name##_f32_table, &fth_cpu_##name##_bf16_table                              \
        }                                                                                          \
    }
static const isa isas[] = {/* best first */
#ifdef FTH_CPU_X86
                           ISA(avx512), ISA(avx2),
#endif
                           ISA(plain)};

fth_err fth_cpu_choose(const char *name, fth_precision precision, const fth_cpu_table **out) {
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        if (name && strcmp(name, isas[i].name) != 0) continue;
        if (isas[i].present()) {
            *out = isas[i].table[precision];
            return FTH_OK;
        }
        if (name) return fth_fail(FTH_USAGE, "instruction set %s: this machine lacks it", name);
    }
    return fth_fail(FTH_USAGE, "instruction set %s: not one of plain, avx2, avx512", name);
}
