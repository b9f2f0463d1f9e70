/* spec_augment.c: masks of frequencies first, then of time, from one stream of numbers for each
 * utterance and epoch. */
#include "data/spec_augment.h"

#include <string.h>

#include "base/philox.h"

int fth_spec_augment_policy(const char *name, fth_spec_augment *out) {
    static const struct {
        const char *name;
        fth_spec_augment values;
    } policies[] = {{"none", {0}},
                    {"lb", {1, 27, 1, 100, 1.0, 0}},
                    {"ld", {2, 27, 2, 100, 1.0, 0}},
                    {"sm", {2, 15, 2, 70, 0.2, 0}},
                    {"ss", {2, 27, 2, 70, 0.2, 0}}};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        if (strcmp(policies[i].name, name) != 0) continue;
        *out = policies[i].values;
        return 1;
    }
    return 0;
}

static float mean_of(const float *x, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)x[i];
    return count ? (float)(sum / (double)count) : 0.0f;
}

static int64_t below(fth_rng *rng, int64_t n) {
    return n > 0 ? (int64_t)fth_rng_below(rng, (uint64_t)n) : 0;
}

static void hide(float *frames, int32_t bins, int64_t from, int64_t to, int64_t first, int64_t last,
                 float value) {
    for (int64_t i = from; i < to; i++)
        for (int64_t b = first; b < last; b++) frames[i * bins + b] = value;
}

void fth_spec_augment_apply(const fth_spec_augment *a, int64_t epoch, int64_t item, int64_t n,
                            int32_t bins, float *frames) {
    const float value = mean_of(frames, n * bins);
    const int64_t share = (int64_t)(a->time_p * (double)n);
    const int64_t longest = a->time_t < share ? a->time_t : share;
    fth_rng rng;
    fth_rng_init(&rng,
                 a->seed ^ UINT64_C(0x73706563) ^ (uint64_t)epoch * UINT64_C(0x9E3779B97F4A7C15),
                 (uint64_t)item);
    for (int32_t k = 0; k < a->freq_n; k++) {
        const int64_t width = below(&rng, a->freq_f < bins ? a->freq_f : bins);
        const int64_t first = below(&rng, bins - width);
        hide(frames, bins, 0, n, first, first + width, value);
    }
    for (int32_t k = 0; k < a->time_n && longest > 0; k++) {
        const int64_t width = below(&rng, longest), from = below(&rng, n - width);
        hide(frames, bins, from, from + width, 0, bins, value);
    }
}
