/* probe_figure.h: the figures of fathom probe. */
#ifndef FTH_FIGURE_PROBE_FIGURE_H
#define FTH_FIGURE_PROBE_FIGURE_H

#include "probe/table.h"

/* Draws what the analysis `what` found as OUT.svg and OUT.png; numbers that are not finite are left
 * out, and where no other is left, *drawn is false. FTH_NOT_FOUND: no gnuplot. */
fth_err fth_probe_figure(const char *what, const fth_table *t, const char *out, bool *drawn);

#endif
