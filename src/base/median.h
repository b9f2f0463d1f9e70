/* median.h: the middle of some numbers. */
#ifndef FTH_BASE_MEDIAN_H
#define FTH_BASE_MEDIAN_H

#include <stdint.h>

/* Of the finite ones: the one in the middle, or the mean of two. NAN: there are none. Afterwards
 * they come first in x, ascending. */
double fth_median(double *x, int64_t n);

#endif
