/* sweep_figure.h: the results of a sweep as a figure. */
#ifndef FTH_FIGURE_SWEEP_FIGURE_H
#define FTH_FIGURE_SWEEP_FIGURE_H

#include "sweep/result.h"

/* Draws best valid nll with its deviation over the seeds against one axis of the grid (x of the
 * file, or the axis of the most values that are numbers), a line for each combination of the
 * others, as OUT/figure.svg and .png. Combinations in which every run failed are marked at the top.
 * A sweep without axes or results has no figure. FTH_NOT_FOUND when gnuplot is not installed. */
fth_err fth_sweep_figure(const fth_sweep_results *r, const char *out_dir);

#endif
