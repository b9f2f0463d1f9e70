#include "backend/cpu/digits.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "backend/cpu/amx.h"

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
        squares += (double)row[l] * (double)row[l];
        *most = fmaxf(*most, fabsf(row[l]));
    }
    const double peak = (double)*most / FTH_DIGITS_PEAK;
    return isfinite(squares) && peak * peak * (double)k <= squares;
}

static bool pack_row(fth_int8 *w, int64_t j, const float *row) {
    enum { ONE = 1 << 16, CARRY = 0x8080, STEP = FTH_DIGITS_W * FTH_DIGITS_TILE };
    float most;
    if (w->k > FTH_DIGITS_DEEPEST || !is_even(row, w->k, &most)) return false;
    const int64_t strip = j / FTH_DIGITS_SIDE, column = j % FTH_DIGITS_SIDE;
    const float scale = most / 127;
    const double inverse = scale > 0 ? ONE / (double)scale : 0;
    int8_t *to = w->packed + strip * (w->groups / GROUPS) * STEP + column * FTH_INT8_DEPTH;
    for (int64_t l = 0; l < w->k; l++) {
        /* with this sum every byte but the highest is a digit and 128: nothing is carried */
        const int32_t sum = (int32_t)rint((double)row[l] * inverse) + CARRY;
        const int64_t group = l % FTH_DIGITS_DEPTH / FTH_INT8_DEPTH;
        int8_t *digit =
            to + l / FTH_DIGITS_DEPTH * STEP + group * FTH_DIGITS_DEPTH + l % FTH_INT8_DEPTH;
        digit[0] = (int8_t)(sum >> 16);
        digit[FTH_DIGITS_TILE] = (int8_t)(sum >> 8 ^ 0x80);
        digit[2 * FTH_DIGITS_TILE] = (int8_t)(sum ^ 0x80);
    }
    w->scale[j] = scale;
    w->offset[j] = 0;
    return true;
}

/* ---- plain ---- */

/* Tiles as they lie in memory. */
static void dot_plain(void *sum, const void *a, const void *b) {
    int32_t c[16][16];
    int8_t x[16][64], y[16][64]; /* y: [group][column][4] */
    memcpy(c, sum, sizeof c);
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    for (int i = 0; i < 16; i++)
        for (int l = 0; l < 64; l++)
            for (int j = 0; j < 16; j++) c[i][j] += x[i][l] * y[l / 4][4 * j + l % 4];
    memcpy(sum, c, sizeof c);
}

#define TILES_SOURCE "backend/cpu/digits_tiles.h"
#define NAME(x)      plain_##x
#define DOT_PLAIN    dot_plain
#include "backend/cpu/tiles_plain.h"
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
#include "backend/cpu/tiles_amx.h"
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
