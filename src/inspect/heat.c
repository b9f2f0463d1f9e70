/* heat.c: when the columns are full, neighbours are averaged and the stride doubles. */
#include "inspect/heat.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fth_err fth_heat_init(fth_heat *h, const char *stack, const char *name, int32_t values,
                      int32_t layers) {
    if (layers <= 0 || layers > values || values % layers != 0 || values / layers > 3)
        layers = values;
    *h = (fth_heat){.values = values, .layers = layers, .kinds = values / layers, .stride = 1};
    snprintf(h->stack, sizeof h->stack, "%s", stack);
    snprintf(h->name, sizeof h->name, "%s", name);
    h->per_bin = (layers + FTH_HEAT_BINS - 1) / FTH_HEAT_BINS;
    h->bins = (layers + h->per_bin - 1) / h->per_bin;
    size_t row = (size_t)h->kinds * (size_t)h->bins;
    h->update = malloc(FTH_HEAT_ROWS * sizeof *h->update);
    h->cell = malloc(FTH_HEAT_ROWS * row * sizeof *h->cell);
    h->newest = malloc(row * sizeof *h->newest);
    if (h->update && h->cell && h->newest) return FTH_OK;
    fth_heat_fini(h);
    return fth_fail(FTH_NO_MEMORY, "no memory for the quantity %s", name);
}

void fth_heat_fini(fth_heat *h) {
    free(h->update);
    free(h->cell);
    free(h->newest);
    *h = (fth_heat){0};
}

/* The cell of layers first..first+count of one kind. */
static float mean_of(const fth_heat *h, const float *value, int32_t kind, int32_t first) {
    double sum = 0;
    int32_t n = 0;
    for (int32_t l = first; l < first + h->per_bin && l < h->layers; l++) {
        float x = value[(size_t)l * (size_t)h->kinds + (size_t)kind];
        if (!isfinite(x)) return x;
        if (x == FTH_HEAT_NONE) continue;
        sum += (double)x;
        n++;
    }
    return n ? (float)(sum / n) : FTH_HEAT_NONE;
}

static void halve(fth_heat *h) {
    size_t row = (size_t)h->kinds * (size_t)h->bins;
    int32_t n = 0;
    for (int32_t i = 0; i < h->rows; i += 2, n++) {
        h->update[n] = h->update[i];
        memmove(h->cell + (size_t)n * row, h->cell + (size_t)i * row, row * sizeof *h->cell);
    }
    h->rows = n;
    h->stride *= 2;
}

void fth_heat_add(fth_heat *h, int64_t update, const float *value) {
    size_t row = (size_t)h->kinds * (size_t)h->bins;
    for (int32_t k = 0; k < h->kinds; k++)
        for (int32_t b = 0; b < h->bins; b++)
            h->newest[k * h->bins + b] = mean_of(h, value, k, b * h->per_bin);
    h->newest_update = update;
    if (h->seen++ % h->stride != 0) return;
    if (h->rows == FTH_HEAT_ROWS) {
        halve(h);
        if ((h->seen - 1) % h->stride != 0) return;
    }
    h->update[h->rows] = update;
    memcpy(h->cell + (size_t)h->rows * row, h->newest, row * sizeof *h->cell);
    h->rows++;
}

void fth_heat_rewind(fth_heat *h, int64_t update) {
    while (h->rows > 0 && h->update[h->rows - 1] > update) h->rows--;
    h->seen = h->rows * h->stride;
    if (h->newest_update > update) h->newest_update = -1;
}
