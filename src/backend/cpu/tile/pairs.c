/* pairs.c: the same sources compiled for AVX-512 BF16, for AMX and for neither: a path is a struct
 * of functions with a test of what the machine has. */
#include "backend/cpu/tile/pairs.h"

#include "base/bf16.h"

#ifdef FTH_CPU_X86
#include <immintrin.h>
#endif

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
static inline sixteen add_sixteen(sixteen x, sixteen y) {
    for (int i = 0; i < 16; i++) x.x[i] += y.x[i];
    return x;
}
static inline sixteen relu_sixteen(sixteen x) {
    for (int i = 0; i < 16; i++) x.x[i] = x.x[i] < 0 ? 0 : x.x[i]; /* a NaN stays one */
    return x;
}
static inline sixteen widened_sixteen(const uint16_t *p) {
    sixteen v;
    for (int i = 0; i < 16; i++) v.x[i] = fth_float_of_bf16(p[i]);
    return v;
}
static inline sixteen gated_sixteen(sixteen x, const uint16_t *p) {
    for (int i = 0; i < 16; i++) x.x[i] = fth_float_of_bf16(p[i]) > 0 ? x.x[i] : 0;
    return x;
}
static inline void store_sixteen_rounded(uint16_t *p, sixteen x) {
    for (int i = 0; i < 16; i++) p[i] = fth_bf16_of_float(x.x[i]);
}
static inline sixteen dot_sixteen(sixteen sum, sixteen_pairs x, sixteen_pairs y) {
    for (int i = 0; i < 16; i++)
        sum.x[i] += fth_float_of_bf16(x.x[2 * i]) * fth_float_of_bf16(y.x[2 * i]) +
                    fth_float_of_bf16(x.x[2 * i + 1]) * fth_float_of_bf16(y.x[2 * i + 1]);
    return sum;
}

#define NAME(x) plain_dots_##x
#define ON
#define vf                     sixteen
#define vp                     sixteen_pairs
#define zero_sums()            ((sixteen){{0}})
#define load_sums(p)           load_sixteen(p)
#define store_sums(p, v)       memcpy((p), &(v), sizeof(v))
#define add_sums(x, y)         add_sixteen(x, y)
#define relu_sums(x)           relu_sixteen(x)
#define widened(p)             widened_sixteen(p)
#define gated(x, p)            gated_sixteen(x, p)
#define store_rounded(p, x, y) (store_sixteen_rounded(p, x), store_sixteen_rounded((p) + 16, y))
#define load_pairs(p)          load_sixteen_pairs(p)
#define same_pair(p)           sixteen_times(p)
#define dot(sum, x, y)         dot_sixteen(sum, x, y)
#include "backend/cpu/tile/pairs_dots.h"
#undef NAME
#undef ON
#undef vf
#undef vp
#undef zero_sums
#undef load_sums
#undef store_sums
#undef add_sums
#undef relu_sums
#undef widened
#undef gated
#undef store_rounded
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
                c[i][j] += fth_float_of_bf16(x[i][2 * p]) * fth_float_of_bf16(y[p][2 * j]) +
                           fth_float_of_bf16(x[i][2 * p + 1]) * fth_float_of_bf16(y[p][2 * j + 1]);
    memcpy(sum, c, sizeof c);
}

#define TILES_SOURCE "backend/cpu/tile/tile_product.h"
#define NAME(x)      plain_##x
#define DOT_PLAIN    dot_plain
#include "backend/cpu/tile/tiles_plain.h"
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

DOTS static inline __m512 widened_sixteen_of(const uint16_t *p) {
    const __m512i wide =
        _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

/* Numbers above 0 are above 0 as integers too. */
DOTS static inline __m512 gated_by(__m512 x, const uint16_t *p) {
    const __m256i gate = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return _mm512_maskz_mov_ps(_mm256_cmpgt_epi16_mask(gate, _mm256_setzero_si256()), x);
}

static bool has_bf16(void) {
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}

#define NAME(x)                avx512_dots_##x
#define ON                     DOTS
#define vf                     __m512
#define vp                     __m512bh
#define zero_sums()            _mm512_setzero_ps()
#define load_sums(p)           _mm512_loadu_ps(p)
#define store_sums(p, v)       _mm512_storeu_ps(p, v)
#define add_sums(x, y)         _mm512_add_ps(x, y)
#define relu_sums(x)           _mm512_max_ps(_mm512_setzero_ps(), x)
#define widened(p)             widened_sixteen_of(p)
#define gated(x, p)            gated_by(x, p)
#define store_rounded(p, x, y) _mm512_storeu_si512(p, (__m512i)_mm512_cvtne2ps_pbh(y, x))
#define load_pairs(p)          pairs_of(_mm512_loadu_si512(p))
#define same_pair(p)           pairs_of(_mm512_set1_epi32(one_pair(p)))
#define dot(sum, x, y)         _mm512_dpbf16_ps(sum, x, y)
#include "backend/cpu/tile/pairs_dots.h"
#undef NAME
#undef ON

/* ---- AMX ---- */

#define NAME(x) amx_##x
#define ON      __attribute__((target("amx-tile,amx-bf16")))
#define DOT_AMX _tile_dpbf16ps
#include "backend/cpu/tile/tiles_amx.h"

#endif

/* ---- choosing ---- */

enum { TILE_PAIRS = FTH_TILES_SIDE / 2 };

static const fth_cpu_pairs_path paths[] = {
    {.name = "plain-bf16", .pairs = 1, .present = always, .product = plain_dots_product},
    {.name = "plain-amx",
     .pairs = TILE_PAIRS,
     .present = always,
     .tiles = {nothing, plain_tiles, nothing, NULL}},
#ifdef FTH_CPU_X86
    {.name = "avx512-bf16", .pairs = 1, .present = has_bf16, .product = avx512_dots_product},
    {.name = "amx",
     .pairs = TILE_PAIRS,
     .present = fth_amx_usable,
     .tiles = {fth_amx_begin, amx_tiles, fth_amx_end, fth_amx_is_crowded}},
#endif
};

const fth_cpu_pairs_path *fth_cpu_pairs_path_named(const char *name) {
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strcmp(name, paths[i].name) == 0) return paths[i].present() ? &paths[i] : NULL;
    return NULL;
}
