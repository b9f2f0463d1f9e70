#include "backend/cpu/int8.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "backend/cpu/amx.h"

#ifdef FTH_CPU_X86
#include <immintrin.h>
#endif

enum { GROUP = FTH_INT8_COLUMNS * FTH_INT8_DEPTH }; /* bytes of a panel's group */

/* ---- packing ---- */

int64_t fth_int8_bytes(const fth_int8_path *path, int64_t n, int64_t k) {
    const int64_t columns = fth_int8_panels(n) * FTH_INT8_COLUMNS;
    return columns * (fth_int8_groups(path, k) * FTH_INT8_DEPTH * path->digits +
                      (int64_t)sizeof(float) + (int64_t)sizeof(int32_t));
}

void fth_int8_place(const fth_int8_path *path, fth_int8 *w, int64_t n, int64_t k, void *data) {
    const int64_t columns = fth_int8_panels(n) * FTH_INT8_COLUMNS;
    *w = (fth_int8){.n = n, .k = k, .groups = fth_int8_groups(path, k), .packed = data};
    w->scale = (float *)(void *)(w->packed + columns * w->groups * FTH_INT8_DEPTH * path->digits);
    w->offset = (int32_t *)(void *)(w->scale + columns);
}

static bool pack_row(fth_int8 *w, int64_t j, const float *row) {
    float most = 0;
    for (int64_t l = 0; l < w->k; l++) most = fmaxf(most, fabsf(row[l]));
    const float inverse = most > 0 ? 127 / most : 0;
    const int64_t panel = j / FTH_INT8_COLUMNS, column = j % FTH_INT8_COLUMNS;
    int8_t *to = w->packed + panel * w->groups * GROUP + column * FTH_INT8_DEPTH;
    int32_t sum = 0;
    for (int64_t l = 0; l < w->k; l++) {
        const int q = (int)rintf(row[l] * inverse);
        to[l / FTH_INT8_DEPTH * GROUP + l % FTH_INT8_DEPTH] = (int8_t)q;
        sum += q;
    }
    w->scale[j] = most / 127;
    w->offset[j] = 128 * sum;
    return true;
}

/* ---- plain ---- */

static inline __attribute__((always_inline)) void plain_product(const bool biased, int64_t m,
                                                                const uint8_t *x, int64_t ldx,
                                                                const int8_t *panel, int64_t groups,
                                                                int32_t *sums) {
    for (int64_t i = 0; i < m; i++, x += ldx, sums += FTH_INT8_COLUMNS) {
        memset(sums, 0, sizeof *sums * FTH_INT8_COLUMNS);
        for (int64_t g = 0; g < groups; g++) {
            const int8_t *q = panel + g * GROUP;
            int p[FTH_INT8_DEPTH];
            for (int l = 0; l < FTH_INT8_DEPTH; l++) {
                const uint8_t byte = x[g * FTH_INT8_DEPTH + l];
                p[l] = biased ? byte : (int8_t)byte;
            }
            for (int j = 0; j < FTH_INT8_COLUMNS; j++, q += FTH_INT8_DEPTH)
                sums[j] += p[0] * q[0] + p[1] * q[1] + p[2] * q[2] + p[3] * q[3];
        }
    }
}

static void product_plain(int64_t m, const uint8_t *x, int64_t ldx, const int8_t *panel,
                          int64_t groups, int32_t *sums) {
    plain_product(false, m, x, ldx, panel, groups, sums);
}

static bool always(void) {
    return true;
}

/* ---- tiles: whole ones of 16 rows; rows that are left go where rows go without tiles ---- */

enum { TILE_ROWS = 16, TILE_GROUPS = 16, SUMS_STRIDE = FTH_INT8_COLUMNS * (int)sizeof(int32_t) };

/* Whole tiles of rows with a panel. */
static void multiply_tiles(fth_tiles_product *product, int64_t m, const uint8_t *x, int64_t ldx,
                           const int8_t *panel, int64_t groups, int32_t *sums) {
    for (int64_t i = 0; i < m; i += 2 * TILE_ROWS)
        for (int64_t j = 0; j < FTH_INT8_COLUMNS; j += 32)
            product(&(fth_tiles_block){
                .two = m - i > TILE_ROWS,
                .a = {x + i * ldx, ldx, TILE_ROWS * ldx, TILE_GROUPS * FTH_INT8_DEPTH},
                .b = {panel + j * FTH_INT8_DEPTH, GROUP, 16 * FTH_INT8_DEPTH, TILE_GROUPS * GROUP},
                .steps = groups / TILE_GROUPS,
                .c = sums + i * FTH_INT8_COLUMNS + j,
                .c_stride = SUMS_STRIDE});
}

#define TILES_SOURCE       "backend/cpu/tiles.h"
#define NAME(x)            plain_##x
#define DOT_PLAIN(c, a, b) dot_plain_bytes(false, c, a, b)
#include "backend/cpu/tiles_plain.h"
#undef NAME

static void product_plain_amx(int64_t m, const uint8_t *x, int64_t ldx, const int8_t *panel,
                              int64_t groups, int32_t *sums) {
    const int64_t whole = m / TILE_ROWS * TILE_ROWS;
    multiply_tiles(plain_tiles, whole, x, ldx, panel, groups, sums);
    plain_product(true, m - whole, x + whole * ldx, ldx, panel, groups,
                  sums + whole * FTH_INT8_COLUMNS);
}

#ifdef FTH_CPU_X86

/* Four neighbours of a row, as one number to be broadcast. */
static inline int32_t four(const uint8_t *x) {
    int32_t v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* ---- AVX2: |q| times p with q's sign; two of them are at most 2 * 127 * 127, which 16 bits hold */

enum { AVX2_VECTORS = 4 }; /* of 8 columns, at a time */

__attribute__((target("avx2"))) static void product_avx2(int64_t m, const uint8_t *x, int64_t ldx,
                                                         const int8_t *panel, int64_t groups,
                                                         int32_t *sums) {
    const __m256i ones = _mm256_set1_epi16(1);
    for (int64_t i = 0; i < m; i++, x += ldx, sums += FTH_INT8_COLUMNS)
        for (int half = 0; half < FTH_INT8_COLUMNS; half += 8 * AVX2_VECTORS) {
            __m256i acc[AVX2_VECTORS];
#pragma GCC unroll 4
            for (int j = 0; j < AVX2_VECTORS; j++) acc[j] = _mm256_setzero_si256();
            for (int64_t g = 0; g < groups; g++) {
                const __m256i p = _mm256_set1_epi32(four(x + g * FTH_INT8_DEPTH));
                const int8_t *from = panel + g * GROUP + half * FTH_INT8_DEPTH;
#pragma GCC unroll 4
                for (int j = 0; j < AVX2_VECTORS; j++) {
                    const __m256i q = _mm256_loadu_si256((const __m256i *)(from + 32 * j));
                    const __m256i two =
                        _mm256_maddubs_epi16(_mm256_abs_epi8(q), _mm256_sign_epi8(p, q));
                    acc[j] = _mm256_add_epi32(acc[j], _mm256_madd_epi16(two, ones));
                }
            }
#pragma GCC unroll 4
            for (int j = 0; j < AVX2_VECTORS; j++)
                _mm256_storeu_si256((__m256i *)(sums + half + 8 * j), acc[j]);
        }
}

static bool has_avx2(void) {
    return __builtin_cpu_supports("avx2");
}

/* ---- VNNI: four products a lane at once; the other factor has no sign ---- */

#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
enum { VNNI_ROWS = 6, VNNI_VECTORS = 4 };

VNNI static inline __attribute__((always_inline)) void vnni_tile(const int rows, const uint8_t *x,
                                                                 int64_t ldx, const int8_t *panel,
                                                                 int64_t groups, int32_t *sums) {
    __m512i acc[VNNI_ROWS][VNNI_VECTORS];
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < VNNI_VECTORS; j++) acc[i][j] = _mm512_setzero_si512();
    for (int64_t g = 0; g < groups; g++, panel += GROUP, x += FTH_INT8_DEPTH) {
        __m512i q[VNNI_VECTORS];
#pragma GCC unroll 4
        for (int j = 0; j < VNNI_VECTORS; j++) q[j] = _mm512_loadu_si512(panel + 64 * j);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            const __m512i p = _mm512_set1_epi32(four(x + i * ldx));
#pragma GCC unroll 4
            for (int j = 0; j < VNNI_VECTORS; j++)
                acc[i][j] = _mm512_dpbusd_epi32(acc[i][j], p, q[j]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < VNNI_VECTORS; j++)
            _mm512_storeu_si512(sums + i * FTH_INT8_COLUMNS + 16 * j, acc[i][j]);
}

VNNI static void product_vnni(int64_t m, const uint8_t *x, int64_t ldx, const int8_t *panel,
                              int64_t groups, int32_t *sums) {
    const int64_t tiles = (m + VNNI_ROWS - 1) / VNNI_ROWS;
    for (int64_t t = 0; t < tiles; t++) { /* of nearly the same height */
        const int64_t i = m * t / tiles;
        const uint8_t *from = x + i * ldx;
        int32_t *to = sums + i * FTH_INT8_COLUMNS;
        switch (m * (t + 1) / tiles - i) {
        case 1: vnni_tile(1, from, ldx, panel, groups, to); break;
        case 2: vnni_tile(2, from, ldx, panel, groups, to); break;
        case 3: vnni_tile(3, from, ldx, panel, groups, to); break;
        case 4: vnni_tile(4, from, ldx, panel, groups, to); break;
        case 5: vnni_tile(5, from, ldx, panel, groups, to); break;
        default: vnni_tile(6, from, ldx, panel, groups, to); break;
        }
    }
}

static bool has_vnni(void) {
    return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}

/* ---- AMX ---- */

#define NAME(x) amx_##x
#define ON      __attribute__((target("amx-tile,amx-int8")))
#define DOT_AMX _tile_dpbusd
#include "backend/cpu/tiles_amx.h"

static void product_amx(int64_t m, const uint8_t *x, int64_t ldx, const int8_t *panel,
                        int64_t groups, int32_t *sums) {
    const int64_t whole = m / TILE_ROWS * TILE_ROWS;
    if (whole) {
        fth_amx_begin();
        multiply_tiles(amx_tiles, whole, x, ldx, panel, groups, sums);
        fth_amx_end();
    }
    if (m > whole)
        product_vnni(m - whole, x + whole * ldx, ldx, panel, groups,
                     sums + whole * FTH_INT8_COLUMNS);
}

static bool has_amx(void) {
    return has_vnni() && fth_amx_int8_usable();
}

#endif

/* ---- choosing ---- */

/* Best first; what stands behind plain has to be asked for. */
static const fth_int8_path paths[] = {
#ifdef FTH_CPU_X86
    {"amx", true, TILE_GROUPS, has_amx, product_amx, 1, pack_row},
    {"vnni", true, 1, has_vnni, product_vnni, 1, pack_row},
    {"avx2", false, 1, has_avx2, product_avx2, 1, pack_row},
#endif
    {"plain", false, 1, always, product_plain, 1, pack_row},
    {"plain-amx", true, TILE_GROUPS, always, product_plain_amx, 1, pack_row},
};
enum { N_PATHS = sizeof paths / sizeof *paths };

const fth_int8_path *fth_int8_path_named(const char *name) {
    for (int i = 0; i < N_PATHS; i++)
        if (strcmp(name, paths[i].name) == 0) return paths[i].present() ? &paths[i] : NULL;
    return NULL;
}

/* From a name on the paths are tried in order. */
const fth_int8_path *fth_int8_path_for(const char *isa) {
    static const struct {
        const char *isa, *path;
    } first[] = {{"plain", "plain"},         {"plain-bf16", "plain"},
                 {"avx2", "avx2"},           {"avx512", "vnni"},
                 {"avx512-bf16", "vnni"},    {"avx512-plain-bf16", "vnni"},
                 {"plain-amx", "plain-amx"}, {"avx512-plain-amx", "plain-amx"}};
    const char *from = paths[0].name;
    for (size_t i = 0; isa && i < sizeof first / sizeof *first; i++)
        if (strcmp(isa, first[i].isa) == 0) from = first[i].path;
    int i = 0;
    while (i < N_PATHS - 1 && strcmp(paths[i].name, from) != 0) i++;
    while (!paths[i].present()) i++;
    return &paths[i];
}
