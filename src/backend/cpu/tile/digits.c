/* digits.c: packs rows as digits to the base of 256, a scale for each; products of digits of like
 * weight are summed exactly in 32 bits and joined as floats. */
#include "backend/cpu/tile/digits.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "backend/cpu/tile/amx.h"

#ifdef FTH_CPU_X86
#include <immintrin.h>
#endif

enum { GROUPS = FTH_DIGITS_DEPTH / FTH_INT8_DEPTH }; /* of a tile */

/* ---- packing ---- */

/* Whether the largest weight is near enough to the others; false too where one is not finite. */
static bool is_even(const float *row, int64_t k, float *most) {
    double squares = 0;
    *most = 0;
    for (int64_t l = 0; l < k; l++) {
        const float size = fabsf(row[l]);
        squares += (double)size * (double)size;
        if (size > *most) *most = size;
    }
    const double peak = (double)*most / FTH_DIGITS_PEAK;
    return isfinite(squares) && peak * peak * (double)k <= squares;
}

/* The digits of at most 64 weights into the first of their tiles and those behind it. */
static void pack_step(const float *row, int64_t n, double inverse, int8_t *to) {
    enum { CARRY = 0x8080 }; /* added, it leaves digits and 128 in the bytes below the first */
    const double shift = 0x1.8p52; /* numbers of this size have no fraction */
    int32_t whole[FTH_DIGITS_DEPTH] = {0};
    for (int64_t l = 0; l < n; l++)
        whole[l] = ((int32_t)((double)row[l] * inverse + shift - shift) + CARRY) ^ CARRY;
    for (int d = 0; d < FTH_DIGITS_W; d++, to += FTH_DIGITS_TILE)
        for (int l = 0; l < FTH_DIGITS_DEPTH; l++)
            to[l / FTH_INT8_DEPTH * FTH_DIGITS_DEPTH + l % FTH_INT8_DEPTH] =
                (int8_t)(whole[l] >> (16 - 8 * d));
}

static bool pack_row(fth_int8 *w, int64_t j, const float *row) {
    enum { ONE = 1 << 16, STEP = FTH_DIGITS_W * FTH_DIGITS_TILE };
    float most;
    if (w->k > FTH_DIGITS_DEEPEST || !is_even(row, w->k, &most)) return false;
    const int64_t strip = j / FTH_DIGITS_SIDE, column = j % FTH_DIGITS_SIDE;
    const float scale = most / 127;
    const double inverse = scale > 0 ? ONE / (double)scale : 0;
    int8_t *to = w->packed + strip * (w->groups / GROUPS) * STEP + column * FTH_INT8_DEPTH;
    for (int64_t l = 0; l < w->k; l += FTH_DIGITS_DEPTH, to += STEP)
        pack_step(row + l, w->k - l < FTH_DIGITS_DEPTH ? w->k - l : FTH_DIGITS_DEPTH, inverse, to);
    w->scale[j] = scale;
    w->offset[j] = 0;
    return true;
}

/* ---- plain ---- */

#define TILES_SOURCE       "backend/cpu/tile/digits_tiles.h"
#define NAME(x)            plain_##x
#define DOT_PLAIN(c, a, b) dot_plain_bytes(true, c, a, b)
#include "backend/cpu/tile/tiles_plain.h"
#undef NAME

static void nothing(void) {
}

static bool always(void) {
    return true;
}

static bool never(int64_t multiplications) {
    (void)multiplications;
    return false;
}

/* ---- AMX ---- */

#ifdef FTH_CPU_X86
#define NAME(x) amx_##x
#define ON      __attribute__((target("amx-tile,amx-int8")))
#define DOT_AMX _tile_dpbssd
#include "backend/cpu/tile/tiles_amx.h"
#endif

/* ---- choosing ---- */

static const fth_digits_path paths[] = {
#ifdef FTH_CPU_X86
    {{"amx", false, GROUPS, fth_amx_int8_usable, NULL, FTH_DIGITS_W, pack_row},
     fth_amx_begin,
     amx_product,
     amx_narrow,
     fth_amx_end,
     fth_amx_is_crowded},
#endif
    {{"plain-amx", false, GROUPS, always, NULL, FTH_DIGITS_W, pack_row},
     nothing,
     plain_product,
     plain_narrow,
     nothing,
     never},
};

const fth_digits_path *fth_digits_path_named(const char *name) {
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strcmp(name, paths[i].weights.name) == 0)
            return paths[i].weights.present() ? &paths[i] : NULL;
    return NULL;
}
