/* verify_row.h: makes a row of a table a second time and compares. */
#ifndef FTH_SWEEP_VERIFY_ROW_H
#define FTH_SWEEP_VERIFY_ROW_H

#include "base/str.h"
#include "sweep/result.h"
#include "sweep/runner.h"

/* Trains and measures the runs of a row (from 0) in OUT/again, from nothing, by r, whose out_dir is
 * OUT, and appends a line for every number that the table has of them: as it was, as it is. *worst:
 * the largest difference, relative to the number. */
fth_err fth_sweep_verify_row(const fth_runner *r, const fth_sweep_spec *s, const fth_sweep_grid *g,
                             size_t row, fth_str *out, double *worst);

#endif
