/* direction_draw.c: shares of an epoch by temperature, and the sentence of an item by its place in
 * the endless row of its direction. */
#include "data/direction_draw.h"

#include <math.h>
#include <stdlib.h>

#include "data/shuffle.h"

int64_t fth_direction_share(int64_t sentences, double temperature, double total, int64_t all) {
    const double share = pow((double)sentences, 1 / temperature) / total * (double)all;
    return sentences == 0 ? 0 : share < 1 ? 1 : llround(share);
}

fth_err fth_direction_draw_init(fth_direction_draw *d, const fth_dataset *data, double temperature,
                                uint64_t seed) {
    *d = (fth_direction_draw){0};
    if (data->n_directions == 0 || !(temperature > 1)) return FTH_OK;
    const int64_t *first = data->direction_first;
    double total = 0;
    int64_t *items = calloc((size_t)data->n_directions + 1, sizeof *items);
    if (!items) return fth_fail(FTH_NO_MEMORY, "no memory for %d directions", data->n_directions);
    for (int32_t k = 0; k < data->n_directions; k++)
        total += pow((double)(first[k + 1] - first[k]), 1 / temperature);
    for (int32_t k = 0; k < data->n_directions; k++)
        items[k + 1] = items[k] + fth_direction_share(first[k + 1] - first[k], temperature, total,
                                                      data->sentences);
    *d = (fth_direction_draw){
        .sentences = first, .items = items, .n = data->n_directions, .seed = seed};
    return FTH_OK;
}

void fth_direction_draw_fini(fth_direction_draw *d) {
    free(d->items);
    *d = (fth_direction_draw){0};
}

int64_t fth_direction_draw_items(const fth_direction_draw *d) {
    return d->items[d->n];
}

/* The direction of an item: the last that begins at or before it. */
static int32_t direction_of(const fth_direction_draw *d, int64_t item) {
    int32_t low = 0, high = d->n - 1;
    while (low < high) {
        const int32_t middle = low + (high - low + 1) / 2;
        if (d->items[middle] <= item)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

int64_t fth_direction_draw_at(const fth_direction_draw *d, int64_t epoch, int64_t item) {
    const int32_t k = direction_of(d, item);
    const int64_t items = d->items[k + 1] - d->items[k], n = d->sentences[k + 1] - d->sentences[k],
                  place = (epoch - 1) * items + item - d->items[k];
    fth_shuffle shuffle;
    fth_shuffle_init(&shuffle, d->seed ^ (UINT64_C(0x646972656374) + (uint64_t)k), place / n,
                     (uint64_t)n);
    return d->sentences[k] + (int64_t)fth_shuffle_at(&shuffle, (uint64_t)(place % n));
}
