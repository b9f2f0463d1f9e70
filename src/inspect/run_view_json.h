/* run_view_json.h: what is known of runs as the JSON that the page of `report` and `watch` draws.
 *
 *     {"version": "0.1.0", "made": seconds since 1970, "live": false, "runs": [RUN, ...]}
 *
 * RUN: name, folder, state, update, modified, problem, settings, start, end, warnings, broken,
 * curves, heats, diverged, samples. A curve: name, stride and the arrays u (first update of a
 * point), m, lo, hi (lo and hi only where a point covers several values), bad (updates with a value
 * that is not finite). A heat: stack, name, layers, kinds, bins, per_bin, seen, every (how many
 * lines a row stands for), u, log, low, high, and cells, base64 of 16-bit codes, little-endian, row
 * by row: 0 no value, 1 nan, 2 inf, 3 -inf, 4 zero on a log scale, 5 to 65535 low to high. */
#ifndef FTH_INSPECT_RUN_VIEW_JSON_H
#define FTH_INSPECT_RUN_VIEW_JSON_H

#include "base/str.h"
#include "inspect/run_view.h"

/* Appends the JSON. It holds no "<", so that it can stand inside a page. */
fth_err fth_run_views_json(const fth_run_view *const *views, int n, bool live, fth_str *out);

#endif
