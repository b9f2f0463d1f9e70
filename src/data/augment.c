/* augment.c: crop, flip and random erasing of one picture; cutting it into patches. */
#include "data/augment.h"

#include <math.h>
#include <string.h>

#include "base/philox.h"

/* Where the picture's first pixel comes from, and whether it is mirrored. */
typedef struct view {
    int32_t down, across;
    bool mirrored;
} view;

static view choose_view(const fth_augment *a, fth_rng *rng) {
    const uint64_t places = 2 * (uint64_t)a->crop + 1;
    view v = {(int32_t)fth_rng_below(rng, places) - a->crop,
              (int32_t)fth_rng_below(rng, places) - a->crop, fth_rng_uniform(rng) < 0.5};
    v.mirrored = v.mirrored && a->flip;
    return v;
}

/* The pixel that comes to a place; -1: none, it is outside. */
static int32_t pixel_at(view v, int32_t height, int32_t width, int32_t y, int32_t x) {
    const int32_t row = y + v.down, column = (v.mirrored ? width - 1 - x : x) + v.across;
    const bool inside = row >= 0 && row < height && column >= 0 && column < width;
    return inside ? row * width + column : -1;
}

static void take_view(view v, int32_t height, int32_t width, const float *from, float *to) {
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++) {
            const int32_t at = pixel_at(v, height, width, y, x);
            to[y * width + x] = at < 0 ? 0.0f : from[at];
        }
}

/* Sets a rectangle of 2 to 33 % of the picture to 0, with sides of 0.3 to 1 / 0.3. */
static void hide(fth_rng *rng, int32_t channels, int32_t height, int32_t width, float *picture) {
    const double area = (0.02 + 0.31 * fth_rng_uniform(rng)) * height * width;
    const double ratio = exp((2 * fth_rng_uniform(rng) - 1) * -log(0.3));
    int32_t h = (int32_t)lrint(sqrt(area * ratio)), w = (int32_t)lrint(sqrt(area / ratio));
    h = h < 1 ? 1 : h > height ? height : h;
    w = w < 1 ? 1 : w > width ? width : w;
    const int32_t top = (int32_t)fth_rng_below(rng, (uint64_t)(height - h) + 1);
    const int32_t left = (int32_t)fth_rng_below(rng, (uint64_t)(width - w) + 1);
    for (int32_t c = 0; c < channels; c++)
        for (int32_t y = top; y < top + h; y++)
            memset(picture + (c * height + y) * width + left, 0, sizeof *picture * (size_t)w);
}

/* What an item's change in an epoch is drawn from. */
static fth_rng rng_of(const fth_augment *a, int64_t epoch, int64_t item) {
    fth_rng rng;
    fth_rng_init(&rng,
                 a->seed ^ UINT64_C(0x61756721) ^ (uint64_t)epoch * UINT64_C(0x9E3779B97F4A7C15),
                 (uint64_t)item);
    return rng;
}

void fth_augment_apply(const fth_augment *a, int64_t epoch, int64_t item, int32_t channels,
                       int32_t height, int32_t width, const float *from, float *to) {
    fth_rng rng = rng_of(a, epoch, item);
    const view v = choose_view(a, &rng);
    for (int32_t c = 0; c < channels; c++)
        take_view(v, height, width, from + c * height * width, to + c * height * width);
    if (fth_rng_uniform(&rng) < a->erase) hide(&rng, channels, height, width, to);
}

void fth_augment_map(const fth_augment *a, int64_t epoch, int64_t item, int32_t height,
                     int32_t width, uint8_t none, const uint8_t *from, uint8_t *to) {
    fth_rng rng = rng_of(a, epoch, item);
    const view v = choose_view(a, &rng);
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++) {
            const int32_t at = pixel_at(v, height, width, y, x);
            to[y * width + x] = at < 0 ? none : from[at];
        }
}

void fth_cut_patches(const float *picture, int32_t channels, int32_t height, int32_t width,
                     int32_t p, float *patches) {
    for (int32_t top = 0; top < height; top += p)
        for (int32_t left = 0; left < width; left += p)
            for (int32_t c = 0; c < channels; c++)
                for (int32_t y = top; y < top + p; y++, patches += p)
                    memcpy(patches, picture + (c * height + y) * width + left,
                           sizeof *patches * (size_t)p);
}
