/* mixup.c: Beta(a, a) as the part that one of two Gamma(a) numbers has of their sum. */
#include "data/mixup.h"

#include <math.h>

#include "base/philox.h"

/* Gamma(a), a >= 1 (Marsaglia and Tsang, "A simple method for generating gamma variables",
 * 2000). */
static double large_gamma(fth_rng *rng, double a) {
    const double d = a - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        const double x = fth_rng_normal(rng), u = 1 - fth_rng_uniform(rng); /* u > 0 */
        const double v = pow(1 + c * x, 3);
        if (1 + c * x > 0 && log(u) < 0.5 * x * x + d - d * v + d * log(v)) return d * v;
    }
}

/* The logarithm of Gamma(a): a small a gives numbers too small to be told from 0. */
static double log_gamma_number(fth_rng *rng, double a) {
    if (a >= 1) return log(large_gamma(rng, a));
    const double u = 1 - fth_rng_uniform(rng);
    return log(large_gamma(rng, a + 1)) + log(u) / a;
}

fth_mixed fth_mixup_draw(const fth_mixup *m, int64_t epoch, int64_t i, int64_t n) {
    fth_rng rng;
    fth_rng_init(&rng,
                 m->seed ^ UINT64_C(0x6d697875) ^ (uint64_t)epoch * UINT64_C(0x9E3779B97F4A7C15),
                 (uint64_t)i);
    fth_mixed mix = {.other = (int64_t)fth_rng_below(&rng, (uint64_t)n)};
    const double mine = log_gamma_number(&rng, m->a), its = log_gamma_number(&rng, m->a);
    mix.share = 1 / (1 + exp(its - mine));
    mix.takes_other = fth_rng_uniform(&rng) >= mix.share;
    return mix;
}

void fth_mixup_apply(double share, const float *other, int64_t count, float *to) {
    for (int64_t k = 0; k < count; k++)
        to[k] = (float)(share * (double)to[k] + (1 - share) * (double)other[k]);
}
