/* fit.h: means and deviations over seeds, and the scaling law of doc/analyses.md#scaling-law. */
#ifndef FTH_SWEEP_FIT_H
#define FTH_SWEEP_FIT_H

#include <stddef.h>

#include "base/error.h"

typedef struct fth_spread {
    size_t n;
    double mean, deviation; /* of a sample (n - 1); NAN where there are too few */
} fth_spread;

fth_spread fth_spread_of(const double *x, size_t n);

typedef struct fth_fit {
    double a, b, r2; /* y = a ln(depth) + b */
    size_t n;
} fth_fit;

/* Least squares over n points. FTH_BAD_INPUT: fewer than two different depths. */
fth_err fth_fit_depth(const double *depth, const double *y, size_t n, fth_fit *out);

#endif
