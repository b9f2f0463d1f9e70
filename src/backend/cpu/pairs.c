#include "backend/cpu/pairs.h"

#include <string.h>

#include "backend/cpu/amx.h"

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

typedef struct plain_tile {
    unsigned char row[16][64];
} plain_tile;

static void load_plain(plain_tile *t, const void *from, int64_t stride) {
    for (int i = 0; i < 16; i++) memcpy(t->row[i], (const char *)from + i * stride, 64);
}
static void store_plain(const plain_tile *t, void *to, int64_t stride) {
    for (int i = 0; i < 16; i++) memcpy((char *)to + i * stride, t->row[i], 64);
}
static void dot_plain(plain_tile *sum, const plain_tile *a, const plain_tile *b) {
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

#define NAME(x) plain_tiles_##x
#define ON
#define TILES          plain_tile tiles[8]
#define TILES_ARGUMENT plain_tile *tiles,
#define TILES_PASSED   tiles,
#define begin_tiles()  memset(tiles, 0, sizeof tiles)
#define end_tiles()
#define zero_tile(t)             memset(&tiles[t], 0, sizeof tiles[t])
#define load_tile(t, p, stride)  load_plain(&tiles[t], p, stride)
#define store_tile(t, p, stride) store_plain(&tiles[t], p, stride)
#define dot_tiles(c, a, b)       dot_plain(&tiles[c], &tiles[a], &tiles[b])
#include "backend/cpu/pairs_tiles.h"
#undef NAME
#undef ON
#undef TILES
#undef TILES_ARGUMENT
#undef TILES_PASSED
#undef begin_tiles
#undef end_tiles
#undef zero_tile
#undef load_tile
#undef store_tile
#undef dot_tiles

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
#define TILES   (void)0
#define TILES_ARGUMENT
#define TILES_PASSED
#define begin_tiles()            fth_amx_begin()
#define end_tiles()              fth_amx_end()
#define zero_tile(t)             _tile_zero(t)
#define load_tile(t, p, stride)  _tile_loadd(t, p, stride)
#define store_tile(t, p, stride) _tile_stored(t, p, stride)
#define dot_tiles(c, a, b)       _tile_dpbf16ps(c, a, b)
#include "backend/cpu/pairs_tiles.h"

#endif

/* ---- choosing ---- */

static const fth_pairs_path paths[] = {
    {"plain-bf16", 1, 1, always, plain_dots_product},
    {"plain-amx", 16, 16, always, plain_tiles_product},
#ifdef FTH_CPU_X86
    {"avx512-bf16", 1, 1, has_bf16, avx512_dots_product},
    {"amx", 16, 16, fth_amx_usable, amx_product},
#endif
};

const fth_pairs_path *fth_pairs_path_named(const char *name) {
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strcmp(name, paths[i].name) == 0) return paths[i].present() ? &paths[i] : NULL;
    return NULL;
}
