/* training.h: figures of runs from their logs, drawn by gnuplot. */
#ifndef FTH_FIGURE_TRAINING_H
#define FTH_FIGURE_TRAINING_H

#include "base/error.h"

/* Draws the loss of each run and the gradient norm of its sub-layers (first and last measured) as
 * OUT.png and OUT.svg, and the loss as text on standard output. FTH_NOT_FOUND when gnuplot is not
 * installed or a log cannot be read. */
fth_err fth_plot_runs(const char *out, const char *const *runs, int n);

#endif
