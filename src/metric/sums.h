/* sums.h: sums of counts over lines, and what resampling the lines says about a score.
 *
 * A score that is a function of summed per-line counts can be computed again for a random choice of
 * lines (drawn with replacement, as many as there are) without looking at the text. */
#ifndef FTH_METRIC_SUMS_H
#define FTH_METRIC_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* sums[k] = sum over i of rows[i][k]. */
void fth_sum_rows(const double *rows /* [n][width] */, size_t n, size_t width, double *sums);

typedef struct fth_resampling {
    size_t n, width;
    double (*score)(const double *sums /* [width] */, const void *context);
    const void *context;
    size_t resamples;
    uint64_t seed; /* Philox key; all systems see the same choices of lines */
} fth_resampling;

/* What the resamples say about one system. */
typedef struct fth_resampled {
    double mean, half_width; /* the 95 % interval of the score is about mean +- half_width */
    double p_value;          /* that system 0 and this one differ by chance; 1 for system 0 */
} fth_resampled;

/* Bootstrap (Koehn, 2004) over n_systems systems; p-values by the paired test against system 0. */
fth_err fth_bootstrap(const fth_resampling *r,
                      const double *const *rows /* [n_systems][n][width] */, size_t n_systems,
                      fth_resampled *out /* [n_systems] */);

/* Approximate randomisation (Riezler and Maxwell, 2005): if systems 0 and s do not differ, it does
 * not matter which of them a line comes from. p[s] is the share of r->resamples random exchanges of
 * lines whose difference is at least the one measured; 1 for system 0. */
fth_err fth_randomization(const fth_resampling *r,
                          const double *const *rows /* [n_systems][n][width] */, size_t n_systems,
                          double *p /* [n_systems] */);

#endif
