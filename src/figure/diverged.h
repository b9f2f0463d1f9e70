/* diverged.h: the figure of a failed run's report. */
#ifndef FTH_FIGURE_DIVERGED_H
#define FTH_FIGURE_DIVERGED_H

#include "base/error.h"

/* Reads RUN/diverged.json and draws RUN/diverged.svg and RUN/diverged.png. Draws nothing when the
 * report has no rows. FTH_NOT_FOUND when gnuplot is not installed. */
fth_err fth_plot_diverged(const char *run);

#endif
