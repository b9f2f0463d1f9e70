/* amx.c: asks the kernel for tiles, loads their shape, and finds out whether another thread of the
 * core is using the unit. */
#include "backend/cpu/tile/amx.h"

#ifdef FTH_CPU_X86

#include <cpuid.h>
#include <immintrin.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TILES __attribute__((target("amx-tile,amx-bf16,amx-int8")))

enum {
    ASK_FOR_STATE = 0x1023, /* arch_prctl's ARCH_REQ_XCOMP_PERM */
    TILE_STATE = 18,        /* XFEATURE_XTILEDATA */
    BF16_BIT = 1 << 22,     /* of cpuid(7).edx */
    TILE_BIT = 1 << 24,
    INT8_BIT = 1 << 25
};

static bool is_announced(unsigned bit) {
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    return (d & bit) && (d & TILE_BIT);
}

/* What ldtilecfg reads. */
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

/* A constant: gcc takes ldtilecfg for a reader of 8 bytes and leaves out what a function writes
 * behind them. */
static const tile_config whole_tiles = {.palette = 1,
                                        .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                        .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

TILES void fth_amx_begin(void) {
    _tile_loadconfig(&whole_tiles);
}

TILES void fth_amx_end(void) {
    _tile_release();
}

/* The processor's counter when all that came before is done. */
static uint64_t counter(void) {
    _mm_lfence();
    return __rdtsc();
}

/* How long 64 products take. */
TILES static uint64_t time_products(void) {
    const uint64_t start = counter();
    for (int i = 0; i < 16; i++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    return counter() - start;
}

/* Factors that were never loaded take no place. With four that were products take 1.4 times as long
 * on a core of one's own, 2 to 2.6 times on a crowded one. */
TILES static bool others_work_here(void) {
    uint16_t numbers[16][32];
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 32; j++) numbers[i][j] = (uint16_t)(0x3f80 + i + j);
    fth_written(numbers);
    fth_amx_begin();
    time_products(); /* wakes the unit */
    const uint64_t few = time_products();
    _tile_loadd(4, numbers, 64);
    _tile_loadd(5, numbers, 64);
    _tile_loadd(6, numbers, 64);
    _tile_loadd(7, numbers, 64);
    time_products();
    const uint64_t all = time_products();
    fth_amx_end();
    return 5 * all > 8 * few;
}

bool fth_amx_is_crowded(int64_t multiplications) {
    enum { ASKED_AFTER = 1 << 28 };
    static _Thread_local int64_t left;
    static _Thread_local bool crowded;
    left -= multiplications;
    if (left >= 0) return crowded;
    left = ASKED_AFTER;
    crowded = others_work_here();
    return crowded;
}

/* Gives the core away while tiles hold numbers: a sandbox that does not save them loses them
 * here. */
static void let_others_run(void) {
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

/* Multiplies tiles of ones: every sum is 32. */
TILES static bool multiplies_bf16(void) {
    uint16_t ones[16][32];
    float sums[16][16];
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 32; j++) ones[i][j] = 0x3f80;
    fth_written(ones);
    fth_amx_begin();
    _tile_zero(0);
    _tile_loadd(1, ones, 64);
    _tile_stream_loadd(2, ones, 64);
    let_others_run();
    _tile_dpbf16ps(0, 1, 2);
    _tile_stored(0, sums, 64);
    fth_amx_end();
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++)
            if (sums[i][j] != 32) return false;
    return true;
}

/* The first factor has no sign, the second one has: every sum is 64 * 255 * -1. */
TILES static bool multiplies_int8(void) {
    uint8_t bytes[16][64];
    int32_t sums[16][16];
    memset(bytes, 0xff, sizeof bytes);
    fth_written(bytes);
    fth_amx_begin();
    _tile_zero(0);
    _tile_loadd(1, bytes, 64);
    _tile_stream_loadd(2, bytes, 64);
    let_others_run();
    _tile_dpbusd(0, 1, 2);
    _tile_stored(0, sums, 64);
    fth_amx_end();
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++)
            if (sums[i][j] != -64 * 255) return false;
    return true;
}

/* A child tries, again and again: where tiles are announced but not to be had, it dies of it. */
static bool is_usable(unsigned bit, bool (*multiplies)(void)) {
    enum { TRIES = 100 };
    if (!is_announced(bit) || syscall(SYS_arch_prctl, ASK_FOR_STATE, TILE_STATE) != 0) return false;
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < TRIES; i++)
            if (!multiplies()) _exit(1);
        _exit(0);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

bool fth_amx_usable(void) {
    return is_usable(BF16_BIT, multiplies_bf16);
}

bool fth_amx_int8_usable(void) {
    return is_usable(INT8_BIT, multiplies_int8);
}

#else

bool fth_amx_usable(void) {
    return false;
}
bool fth_amx_int8_usable(void) {
    return false;
}
bool fth_amx_is_crowded(int64_t multiplications) {
    (void)multiplications;
    return false;
}
void fth_amx_begin(void) {
}
void fth_amx_end(void) {
}

#endif
