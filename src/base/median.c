/* median.c: by sorting. */
#include "base/median.h"

#include <math.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double fth_median(double *x, int64_t n) {
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i])) x[kept++] = x[i];
    if (kept == 0) return NAN;
    qsort(x, (size_t)kept, sizeof *x, by_size);
    return kept % 2 ? x[kept / 2] : (x[kept / 2 - 1] + x[kept / 2]) / 2;
}
