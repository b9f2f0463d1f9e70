#include "backend/cpu/pairs.h"

#include <string.h>

#ifdef FTH_CPU_X86
#include <immintrin.h>
#endif

static float float_of(uint16_t x) {
    const uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static bool always(void) {
    return true;
}

/* ---- vectors, in plain C ---- */

typedef struct sixteen {
    float x[16];
} sixteen;
typedef struct sixteen_pairs {
    uint16_t x[32];
} sixteen_pairs;

static inline sixteen load_sixteen(const float *p) {
    sixteen v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline sixteen_pairs load_sixteen_pairs(const uint16_t *p) {
    sixteen_pairs v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline sixteen_pairs sixteen_times(const uint16_t *p) {
    sixteen_pairs v;
    for (int i = 0; i < 32; i++) v.x[i] = p[i % 2];
    return v;
}
static inline sixteen dot_sixteen(sixteen sum, sixteen_pairs x, sixteen_pairs y) {
    for (int i = 0; i < 16; i++)
        sum.x[i] += float_of(x.x[2 * i]) * float_of(y.x[2 * i]) +
                    float_of(x.x[2 * i + 1]) * float_of(y.x[2 * i + 1]);
    return sum;
}

#define NAME(x) plain_dots_##x
#define ON
#define vf               sixteen
#define vp               sixteen_pairs
#define zero_sums()      ((sixteen){{0}})
#define load_sums(p)     load_sixteen(p)
#define store_sums(p, v) memcpy((p), &(v), sizeof(v))
#define load_pairs(p)    load_sixteen_pairs(p)
#define same_pair(p)     sixteen_times(p)
#define dot(sum, x, y)   dot_sixteen(sum, x, y)
#include "backend/cpu/pairs_dots.h"
#undef NAME
#undef ON
#undef vf
#undef vp
#undef zero_sums
#undef load_sums
#undef store_sums
#undef load_pairs
#undef same_pair
#undef dot

/* ---- tiles, in plain C ---- */

/* Tiles as they lie in memory. */
static void dot_plain(void *sum, const void *a, const void *b) {
    float c[16][16];
    uint16_t x[16][32], y[16][32]; /* y: [pair][column][2] */
    memcpy(c, sum, sizeof c);
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    for (int i = 0; i < 16; i++)
        for (int p = 0; p < 16; p++)
            for (int j = 0; j < 16; j++)
                c[i][j] += float_of(x[i][2 * p]) * float_of(y[p][2 * j]) +
                           float_of(x[i][2 * p + 1]) * float_of(y[p][2 * j + 1]);
    memcpy(sum, c, sizeof c);
}

#define NAME(x)   plain_##x
#define DOT_PLAIN dot_plain
#include "backend/cpu/tiles_plain.h"
#undef NAME

static void nothing(void) {
}

#ifdef FTH_CPU_X86

/* ---- AVX-512 BF16 ---- */

#define DOTS __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

DOTS static inline __m512bh pairs_of(__m512i x) {
    __m512bh v;
    memcpy(&v, &x, sizeof v);
    return v;
}

static inline int32_t one_pair(const uint16_t *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static bool has_bf16(void) {
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}

#define NAME(x)          avx512_dots_##x
#define ON               DOTS
#define vf               __m512
#define vp               __m512bh
#define zero_sums()      _mm512_setzero_ps()
#define load_sums(p)     _mm512_loadu_ps(p)
#define store_sums(p, v) _mm512_storeu_ps(p, v)
#define load_pairs(p)    pairs_of(_mm512_loadu_si512(p))
#define same_pair(p)     pairs_of(_mm512_set1_epi32(one_pair(p)))
#define dot(sum, x, y)   _mm512_dpbf16_ps(sum, x, y)
#include "backend/cpu/pairs_dots.h"
#undef NAME
#undef ON

/* ---- AMX ---- */

#define NAME(x) amx_##x
#define ON      __attribute__((target("amx-tile,amx-bf16")))
#define DOT_AMX _tile_dpbf16ps
#include "backend/cpu/tiles_amx.h"

#endif

/* ---- choosing ---- */

enum { TILE_PAIRS = FTH_TILES_SIDE / 2 };

static const fth_pairs_path paths[] = {
    {.name = "plain-bf16", .pairs = 1, .present = always, .product = plain_dots_product},
    {.name = "plain-amx",
     .pairs = TILE_PAIRS,
     .present = always,
     .tiles = {nothing, plain_tiles, nothing}},
#ifdef FTH_CPU_X86
    {.name = "avx512-bf16", .pairs = 1, .present = has_bf16, .product = avx512_dots_product},
    {.name = "amx",
     .pairs = TILE_PAIRS,
     .present = fth_amx_usable,
     .tiles = {fth_amx_begin, amx_tiles, fth_amx_end}},
#endif
};

const fth_pairs_path *fth_pairs_path_named(const char *name) {
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strcmp(name, paths[i].name) == 0) return paths[i].present() ? &paths[i] : NULL;
    return NULL;
}
