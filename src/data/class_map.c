/* class_map.c: bilinear interpolation of logits, then the largest of each pixel. */
#include "data/class_map.h"

/* Where pixel i of n stands among `cells` numbers: between number `low` and the next, `part` of the
 * way. */
typedef struct between {
    int32_t low, high;
    double part;
} between;

static between place_of(int32_t i, int32_t n, int32_t cells) {
    double at = (i + 0.5) * cells / n - 0.5;
    if (at < 0) at = 0;
    if (at > cells - 1) at = cells - 1;
    between b = {.low = (int32_t)at};
    b.high = b.low + 1 < cells ? b.low + 1 : b.low;
    b.part = at - b.low;
    return b;
}

static double mix(double a, double b, double part) {
    return a + part * (b - a);
}

void fth_class_map(const double *logits, int32_t rows, int32_t columns, int32_t classes,
                   int32_t height, int32_t width, uint8_t *map) {
    for (int32_t y = 0; y < height; y++) {
        const between down = place_of(y, height, rows);
        const double *up = logits + (int64_t)down.low * columns * classes;
        const double *low = logits + (int64_t)down.high * columns * classes;
        for (int32_t x = 0; x < width; x++) {
            const between across = place_of(x, width, columns);
            const int64_t left = (int64_t)across.low * classes,
                          right = (int64_t)across.high * classes;
            double most = 0;
            for (int32_t k = 0; k < classes; k++) {
                const double value =
                    mix(mix(up[left + k], up[right + k], across.part),
                        mix(low[left + k], low[right + k], across.part), down.part);
                if (k > 0 && !(value > most)) continue;
                most = value;
                map[(int64_t)y * width + x] = (uint8_t)k;
            }
        }
    }
}
