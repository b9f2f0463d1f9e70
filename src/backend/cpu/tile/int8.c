/* int8.c: packs weights as bytes with a scale for each row; the product of one or more rows of x
 * with all of them, on AMX tiles, with VNNI or in plain C, to the same bits. */
#include "backend/cpu/tile/int8.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "backend/cpu/tile/amx.h"
#include "backend/cpu/tile/unit.h"

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

/* False where a number of the row is not finite. */
static bool pack_row(fth_int8 *w, int64_t j, const float *row) {
    float most = 0;
    for (int64_t l = 0; l < w->k; l++) {
        if (!isfinite(row[l])) return false;
        most = fmaxf(most, fabsf(row[l]));
    }
    /* a row so small that this is no float is as good as 0 */
    const float inverse = most > 0 && isfinite(127 / most) ? 127 / most : 0;
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

#define TILES_SOURCE       "backend/cpu/tile/tile_product.h"
#define NAME(x)            plain_##x
#define DOT_PLAIN(c, a, b) dot_plain_bytes(false, c, a, b)
#include "backend/cpu/tile/tiles_plain.h"
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

/* ---- AVX2: |q| times p with q's sign; two of them are at most 2 * 127 * 127, which 16 bits hold
 * ---- */

#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m256i dot_of_signs(__m256i sums, __m256i p, __m256i q) {
    const __m256i two = _mm256_maddubs_epi16(_mm256_abs_epi8(q), _mm256_sign_epi8(p, q));
    return _mm256_add_epi32(sums, _mm256_madd_epi16(two, _mm256_set1_epi16(1)));
}

#define NAME(x)          avx2_##x
#define ON               AVX2
#define vq               __m256i
#define WIDTH            8
#define HIGH             2
#define WIDE             4
#define zero_sums()      _mm256_setzero_si256()
#define load_groups(p)   _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define store_sums(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define same_group(four) _mm256_set1_epi32(four)
#define dot(sums, p, q)  dot_of_signs(sums, p, q)
#include "backend/cpu/tile/int8_rows.h"

static bool has_avx2(void) {
    return __builtin_cpu_supports("avx2");
}

/* ---- AVX-VNNI: four products a lane at once; the other factor has no sign. Processors without
 * AVX-512 have it from Alder Lake on ---- */

#undef NAME
#undef ON
#undef HIGH
#undef dot
#define NAME(x)         avx_vnni_##x
#define ON              __attribute__((target("avx2,avxvnni")))
#define HIGH            3
#define dot(sums, p, q) _mm256_dpbusd_avx_epi32(sums, p, q)
#include "backend/cpu/tile/int8_rows.h"

/* ---- VNNI of AVX-512 ---- */

#undef NAME
#undef ON
#undef vq
#undef WIDTH
#undef HIGH
#undef zero_sums
#undef load_groups
#undef store_sums
#undef same_group
#undef dot
#define NAME(x)          vnni_##x
#define ON               __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#define vq               __m512i
#define WIDTH            16
#define HIGH             6
#define zero_sums()      _mm512_setzero_si512()
#define load_groups(p)   _mm512_loadu_si512(p)
#define store_sums(p, v) _mm512_storeu_si512(p, v)
#define same_group(four) _mm512_set1_epi32(four)
#define dot(sums, p, q)  _mm512_dpbusd_epi32(sums, p, q)
#include "backend/cpu/tile/int8_rows.h"
#undef NAME
#undef ON

static bool has_vnni(void) {
    return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}

/* ---- AMX ---- */

#define NAME(x) amx_##x
#define ON      __attribute__((target("amx-tile,amx-int8")))
#define DOT_AMX _tile_dpbusd
#include "backend/cpu/tile/tiles_amx.h"

static void product_amx(int64_t m, const uint8_t *x, int64_t ldx, const int8_t *panel,
                        int64_t groups, int32_t *sums) {
    const int64_t whole = m / TILE_ROWS * TILE_ROWS;
    if (whole) {
        fth_amx_begin();
        multiply_tiles(amx_tiles, whole, x, ldx, panel, groups, sums);
        fth_amx_end();
    }
    if (m > whole)
        vnni_product(m - whole, x + whole * ldx, ldx, panel, groups,
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
    {"vnni", true, 1, has_vnni, vnni_product, 1, pack_row},
    {"avx-vnni", true, 1, fth_has_avx_vnni, avx_vnni_product, 1, pack_row},
    {"avx2", false, 1, has_avx2, avx2_product, 1, pack_row},
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
                 {"avx2", "avx-vnni"},       {"avx512", "vnni"},
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
