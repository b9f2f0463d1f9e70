/* unit.c: finds the units by asking the processor, and their peak by timing independent
 * multiply-adds that stay in registers. */
#include "backend/cpu/tile/unit.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "backend/cpu/tile/amx.h"
#include "backend/cpu/pool.h"
#include "base/clock.h"

#ifdef FTH_CPU_X86
#include <cpuid.h>
#include <immintrin.h>
#endif

/* A loop of a unit: `rounds` rounds, and the operations of one round. */
typedef float loop(int64_t rounds);

/* Sums that do not wait for each other: enough to hide every latency, few enough for the registers.
 * Zen 5 begins two products of pairs a clock, which take six each, and loses 7 % of them with
 * twelve sums. */
enum { CHAINS = 12, PAIR_CHAINS = 20 };

/* ---- loops ---- */

static float loop_plain(int64_t rounds) {
    typedef float four __attribute__((vector_size(16)));
    four acc[CHAINS], x = {1e-3f, 1e-3f, 1e-3f, 1e-3f}, y = x * 2;
    for (int i = 0; i < CHAINS; i++) acc[i] = x * (float)i; /* equal sums would be made but once */
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) acc[i] = acc[i] * x + y;
    float sum = 0;
    for (int i = 0; i < CHAINS; i++) sum += acc[i][0];
    return sum;
}

#ifdef FTH_CPU_X86

__attribute__((target("avx2,fma"))) static float loop_avx2(int64_t rounds) {
    __m256 acc[CHAINS], x = _mm256_set1_ps(1e-3f), y = _mm256_set1_ps(2e-3f);
    for (int i = 0; i < CHAINS; i++) acc[i] = _mm256_setzero_ps();
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) acc[i] = _mm256_fmadd_ps(x, y, acc[i]);
    for (int i = 1; i < CHAINS; i++) acc[0] = _mm256_add_ps(acc[0], acc[i]);
    return _mm256_cvtss_f32(acc[0]);
}

__attribute__((target("avx512f"))) static float loop_avx512(int64_t rounds) {
    __m512 acc[CHAINS], x = _mm512_set1_ps(1e-3f), y = _mm512_set1_ps(2e-3f);
    for (int i = 0; i < CHAINS; i++) acc[i] = _mm512_setzero_ps();
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) acc[i] = _mm512_fmadd_ps(x, y, acc[i]);
    for (int i = 1; i < CHAINS; i++) acc[0] = _mm512_add_ps(acc[0], acc[i]);
    return _mm512_cvtss_f32(acc[0]);
}

__attribute__((target("avx2,avxvnni"))) static float loop_avx_vnni(int64_t rounds) {
    __m256i acc[CHAINS], x = _mm256_set1_epi8(1), y = _mm256_set1_epi8(2);
#pragma GCC unroll 12 /* so that all of them stay in registers */
    for (int i = 0; i < CHAINS; i++) acc[i] = _mm256_setzero_si256();
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) acc[i] = _mm256_dpbusd_avx_epi32(acc[i], x, y);
    for (int i = 1; i < CHAINS; i++) acc[0] = _mm256_add_epi32(acc[0], acc[i]);
    return (float)_mm256_cvtsi256_si32(acc[0]);
}

__attribute__((target("avx512f,avx512vnni"))) static float loop_vnni(int64_t rounds) {
    __m512i acc[CHAINS], x = _mm512_set1_epi8(1), y = _mm512_set1_epi8(2);
    for (int i = 0; i < CHAINS; i++) acc[i] = _mm512_setzero_si512();
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) acc[i] = _mm512_dpbusd_epi32(acc[i], x, y);
    for (int i = 1; i < CHAINS; i++) acc[0] = _mm512_add_epi32(acc[0], acc[i]);
    return (float)_mm512_cvtsi512_si32(acc[0]);
}

__attribute__((target("avx512f,avx512bf16"))) static float loop_bf16(int64_t rounds) {
    const __m512i ones = _mm512_set1_epi16(0x3f80);
    __m512bh x, y;
    memcpy(&x, &ones, sizeof x);
    memcpy(&y, &ones, sizeof y);
    __m512 acc[PAIR_CHAINS];
    for (int i = 0; i < PAIR_CHAINS; i++) acc[i] = _mm512_setzero_ps();
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 20
        for (int i = 0; i < PAIR_CHAINS; i++) acc[i] = _mm512_dpbf16_ps(acc[i], x, y);
    for (int i = 1; i < PAIR_CHAINS; i++) acc[0] = _mm512_add_ps(acc[0], acc[i]);
    return _mm512_cvtss_f32(acc[0]);
}

/* Numbers from 0.5 to 2 and their negatives. Tiles of zeros, and tiles that were never loaded, are
 * multiplied faster than any others. */
static void fill_tile(uint16_t numbers[512]) {
    uint32_t x = 1;
    for (int i = 0; i < 512; i++) {
        x = x * 1664525u + 1013904223u;
        numbers[i] = (uint16_t)(0x3f00 + (x >> 16 & 0x80ff));
    }
    fth_written(numbers);
}

/* A tile of each factor serves all sums: with fewer tiles in use a core that shares its registers
 * with another hardware thread waits less. */
#define AMX_LOOP(name, numbers, dot)                                                               \
    __attribute__((target("amx-tile," numbers))) static float name(int64_t rounds) {               \
        uint16_t tile[512];                                                                        \
        fill_tile(tile);                                                                           \
        fth_amx_begin();                                                                           \
        _tile_loadd(4, tile, 64);                                                                  \
        _tile_loadd(5, tile, 64);                                                                  \
        for (int64_t r = 0; r < rounds; r++) {                                                     \
            dot(0, 4, 5);                                                                          \
            dot(1, 4, 5);                                                                          \
            dot(2, 4, 5);                                                                          \
            dot(3, 4, 5);                                                                          \
        }                                                                                          \
        fth_amx_end();                                                                             \
        return 0;                                                                                  \
    }

AMX_LOOP(loop_amx, "amx-bf16", _tile_dpbf16ps)
AMX_LOOP(loop_amx_int8, "amx-int8", _tile_dpbusd)

static bool has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
static bool has_avx512(void) {
    return __builtin_cpu_supports("avx512f");
}
bool fth_has_avx_vnni(void) {
    enum { AVX_VNNI_BIT = 1 << 4 }; /* of cpuid(7, 1).eax */
    unsigned a, b, c, d;
    return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & AVX_VNNI_BIT);
}
static bool has_vnni(void) {
    return __builtin_cpu_supports("avx512vnni");
}
static bool has_bf16(void) {
    return __builtin_cpu_supports("avx512bf16");
}

#endif

static bool has_plain(void) {
    return true;
}

#ifndef FTH_CPU_X86
bool fth_has_avx_vnni(void) {
    return false;
}
#endif

/* ---- the table ---- */

static const struct unit {
    const char *name, *numbers;
    bool (*present)(void);
    loop *loop;
    int64_t operations; /* of a round */
} units[FTH_N_UNITS] = {
    [FTH_UNIT_PLAIN] = {"plain", "fp32", has_plain, loop_plain, 2 * 4 * CHAINS},
#ifdef FTH_CPU_X86
    [FTH_UNIT_AVX2] = {"avx2", "fp32", has_avx2, loop_avx2, 2 * 8 * CHAINS},
    [FTH_UNIT_AVX512] = {"avx512", "fp32", has_avx512, loop_avx512, 2 * 16 * CHAINS},
    [FTH_UNIT_AVX_VNNI] = {"avx-vnni", "int8", fth_has_avx_vnni, loop_avx_vnni, 2 * 32 * CHAINS},
    [FTH_UNIT_VNNI] = {"vnni", "int8", has_vnni, loop_vnni, 2 * 64 * CHAINS},
    [FTH_UNIT_BF16] = {"avx512-bf16", "bf16", has_bf16, loop_bf16, 2 * 32 * PAIR_CHAINS},
    [FTH_UNIT_AMX] = {"amx", "bf16", fth_amx_usable, loop_amx, 4 * 2 * 16 * 16 * 32},
    [FTH_UNIT_AMX_INT8] = {"amx", "int8", fth_amx_int8_usable, loop_amx_int8, 4 * 2 * 16 * 16 * 64},
#endif
};

const char *fth_cpu_unit_name(fth_cpu_unit unit) {
    return units[unit].name;
}

const char *fth_cpu_unit_numbers(fth_cpu_unit unit) {
    return units[unit].numbers;
}

bool fth_cpu_unit_present(fth_cpu_unit unit) {
    return units[unit].present && units[unit].present();
}

/* ---- peaks ---- */

enum { MAX_THREADS = 1024 };

typedef struct timing {
    loop *loop;
    int64_t rounds;
    double seconds[MAX_THREADS]; /* of each thread's own time on a core */
    volatile float sink;         /* so that the loops are not left out */
} timing;

static void loop_part(const fth_team *team, void *context) {
    timing *t = context;
    const double start = fth_seconds(CLOCK_THREAD_CPUTIME_ID);
    const float sum = t->loop(t->rounds);
    t->seconds[team->thread] = fth_seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    if (team->thread == 0) t->sink = sum;
}

/* Rounds per second of all threads. A thread's time on its core is what counts, so that other work
 * on the machine does not make the units look slower. */
static double rate_of(timing *t, fth_cpu_pool *pool, int threads) {
    fth_pool_run(pool, loop_part, t);
    double rate = 0;
    for (int i = 0; i < threads; i++) rate += (double)t->rounds / t->seconds[i];
    return rate;
}

fth_err fth_cpu_unit_peak(fth_cpu_unit unit, int threads, double *out) {
    enum {
        TRIES = 60
    }; /* neighbours on a host can take a part of the units for a tenth of a second */
    const double wanted = 2e-3; /* seconds of a try */
    if (threads > MAX_THREADS)
        return fth_fail(FTH_USAGE, "--threads %d: at most %d here", threads, MAX_THREADS);
    fth_cpu_pool *pool;
    FTH_TRY(fth_pool_new(threads, &pool));
    timing t = {.loop = units[unit].loop, .rounds = 1000};
    while (rate_of(&t, pool, threads) * wanted > (double)(t.rounds * threads)) t.rounds *= 2;
    double best = 0;
    for (int i = 0; i < TRIES; i++) {
        const double rate = rate_of(&t, pool, threads);
        if (rate > best) best = rate;
    }
    *out = best * (double)units[unit].operations;
    fth_pool_free(pool);
    return FTH_OK;
}

bool fth_cpu_unit_outruns(fth_cpu_unit unit, fth_cpu_unit other) {
    enum { TRIES = 12, ROUNDS = 2000 };
    const fth_cpu_unit both[2] = {unit, other};
    double least[2] = {INFINITY, INFINITY}; /* seconds for an operation */
    volatile float sink;                    /* so that the loops are not left out */
    for (int i = 0; i < 2 * TRIES; i++) {   /* in turn: what disturbs one disturbs the other */
        const struct unit *u = &units[both[i % 2]];
        const double start = fth_now();
        sink = u->loop(ROUNDS);
        const double seconds = (fth_now() - start) / (double)u->operations;
        if (seconds < least[i % 2]) least[i % 2] = seconds;
    }
    (void)sink;
    return least[0] < least[1];
}
