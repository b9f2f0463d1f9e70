/* budget.h: how long a sweep will take, before it starts. */
#ifndef FTH_SWEEP_BUDGET_H
#define FTH_SWEEP_BUDGET_H

#include "base/str.h"
#include "sweep/measure.h"
#include "sweep/result.h"

typedef struct fth_budget_row {
    size_t left;    /* runs that are not finished */
    double seconds; /* of one of them */
} fth_budget_row;

/* Asks `fathom preflight` about one run of every row that is not finished; rows: [grid->rows]. The
 * data set must be there. said: file for what preflight says. */
fth_err fth_sweep_budget(const fth_sweep_results *r, const fth_measuring *m, const char *said,
                         fth_budget_row *rows);

/* A line for each row and one for all, with `jobs` at a time. */
fth_err fth_sweep_budget_text(const fth_sweep_results *r, const fth_budget_row *rows, int64_t jobs,
                              fth_str *out);

#endif
