/* table.h: the results of a sweep as tables. They hold nothing that depends on when or in how many
 * pieces the runs were made: a sweep that was stopped and continued gives the same bytes. */
#ifndef FTH_SWEEP_TABLE_H
#define FTH_SWEEP_TABLE_H

#include "base/str.h"
#include "sweep/result.h"

/* A line for every combination of values: runs, failures, best and final valid nll with their
 * deviation over seeds. */
fth_err fth_sweep_table_csv(const fth_sweep_results *r, fth_str *out);
fth_err fth_sweep_table_markdown(const fth_sweep_results *r, fth_str *out);
fth_err fth_sweep_table_latex(const fth_sweep_results *r, fth_str *out);

/* A line for every run. */
fth_err fth_sweep_table_runs(const fth_sweep_results *r, fth_str *out);

/* Fits of the scaling law to minus the best valid nll, one for each combination of the values that
 * are not layers, where the depth varies; *n counts them. markdown: a table instead of CSV. */
fth_err fth_sweep_table_fits(const fth_sweep_results *r, bool markdown, fth_str *out, size_t *n);

/* The value of a factor in a row; "" where it does not count. */
const char *fth_sweep_table_value(const fth_sweep_results *r, const fth_sweep_run *run,
                                  size_t factor);

/* Is a factor the number of layers? */
bool fth_factor_is_depth(const fth_factor *f);

/* Do two rows have the same values but for the factors that skip[] names? skip may be NULL. */
bool fth_sweep_table_same(const fth_sweep_results *r, size_t row_a, size_t row_b, const bool *skip);

#endif
