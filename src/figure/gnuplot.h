/* gnuplot.h: what all figures share: colours, and the program that draws. */
#ifndef FTH_FIGURE_GNUPLOT_H
#define FTH_FIGURE_GNUPLOT_H

#include "base/str.h"

/* Appends line types whose colours the colour-blind tell apart, the grid and the key. */
fth_err fth_gnuplot_style(fth_str *script);

/* Appends what stands between single quotes of a script. */
fth_err fth_gnuplot_quoted(fth_str *script, const char *text);

/* Draws. FTH_NOT_FOUND when gnuplot is not installed. */
fth_err fth_gnuplot_run(const fth_str *script);

#endif
