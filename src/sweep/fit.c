/* fit.c: mean and deviation, and the least-squares line through y against the logarithm of the
 * depth. */
#include "sweep/fit.h"

#include <math.h>

fth_spread fth_spread_of(const double *x, size_t n) {
    fth_spread s = {n, NAN, NAN};
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    if (n > 0) s.mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) squares += (x[i] - s.mean) * (x[i] - s.mean);
    if (n > 1) s.deviation = sqrt(squares / (double)(n - 1));
    return s;
}

fth_err fth_fit_depth(const double *depth, const double *y, size_t n, fth_fit *out) {
    double mean_u = 0, mean_y = 0, uu = 0, uy = 0, yy = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(depth[i] > 0) || !isfinite(y[i]))
            return fth_fail(FTH_BAD_INPUT,
                            "point %zu of a fit: depth %g, value %g; must be above 0 "
                            "and finite",
                            i + 1, depth[i], y[i]);
        mean_u += log(depth[i]) / (double)n;
        mean_y += y[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        double u = log(depth[i]) - mean_u, v = y[i] - mean_y;
        uu += u * u;
        uy += u * v;
        yy += v * v;
    }
    if (n < 2 || uu < 1e-12)
        return fth_fail(FTH_BAD_INPUT, "a fit needs points at two depths or more");
    double a = uy / uu;
    *out = (fth_fit){a, mean_y - a * mean_u, yy > 0 ? uy * uy / (uu * yy) : 1, n};
    return FTH_OK;
}
