/* normal.c: many normal numbers at once, for models of billions of parameters. Plain arithmetic in
 * a fixed order that compilers turn into vectors: the same bits on every machine. */
#include <math.h>
#include <string.h>

#include "base/philox.h"

enum { BLOCKS = 16 }; /* of four words each, made side by side */

/* ln(x) for normal x > 0. */
static inline double log_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    /* x = m 2^e with m in [sqrt(1/2), sqrt(2)): the offset carries into the exponent above
     * sqrt(2) */
    const uint64_t offset = UINT64_C(0x3fe6a09e667f3bcd);
    const uint64_t shifted = bits - offset;
    const int64_t exponent = (int64_t)shifted >> 52;
    const uint64_t mantissa = bits - ((uint64_t)exponent << 52);
    double m;
    memcpy(&m, &mantissa, sizeof m);
    const double s = (m - 1) / (m + 1), q = s * s;
    const double series =
        2 + q * (2.0 / 3 +
                 q * (2.0 / 5 + q * (2.0 / 7 + q * (2.0 / 9 + q * (2.0 / 11 + q * (2.0 / 13))))));
    return (double)(int32_t)exponent * 0.69314718055994530942 + s * series;
}

/* sine and cosine of turn * 2 pi, turn in [0, 1). */
static inline void circle(double turn, double *sine, double *cosine) {
    const int32_t quarter = (int32_t)(4 * turn + 0.5);
    const double x = (4 * turn - quarter) * 1.57079632679489661923, q = x * x;
    const double s =
        x * (1 + q * (-1.0 / 6 +
                      q * (1.0 / 120 + q * (-1.0 / 5040 + q * (1.0 / 362880 - q / 39916800)))));
    const double c =
        1 + q * (-1.0 / 2 + q * (1.0 / 24 + q * (-1.0 / 720 + q * (1.0 / 40320 - q / 3628800))));
    const double a = quarter & 1 ? c : s, b = quarter & 1 ? s : c;
    *sine = quarter & 2 ? -a : a;
    *cosine = (quarter + 1) & 2 ? -b : b;
}

/* Blocks first .. first + BLOCKS of a stream, each four normal numbers (Box and Muller). */
static void blocks(uint64_t key, uint64_t stream, uint64_t first, float *out) {
    uint32_t words[4][BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        const uint64_t n = first + (uint64_t)i;
        const uint32_t counter[4] = {(uint32_t)n, (uint32_t)(n >> 32), (uint32_t)stream,
                                     (uint32_t)(stream >> 32)};
        uint32_t block[4];
        fth_philox(key, counter, block);
        for (int w = 0; w < 4; w++) words[w][i] = block[w];
    }
    for (int pair = 0; pair < 4; pair += 2)
        for (int i = 0; i < BLOCKS; i++) {
            double sine, cosine;
            const double radius = sqrt(-2 * log_of(((double)words[pair][i] + 0.5) * 0x1p-32));
            circle((double)words[pair + 1][i] * 0x1p-32, &sine, &cosine);
            out[4 * i + pair] = (float)(radius * cosine);
            out[4 * i + pair + 1] = (float)(radius * sine);
        }
}

void fth_normals(uint64_t key, uint64_t stream, int64_t n, float *out) {
    float part[4 * BLOCKS];
    for (int64_t i = 0; i < n; i += 4 * BLOCKS) {
        const int64_t count = n - i < 4 * BLOCKS ? n - i : 4 * BLOCKS;
        blocks(key, stream, (uint64_t)(i / 4), part);
        memcpy(out + i, part, sizeof *out * (size_t)count);
    }
}
