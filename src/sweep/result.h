/* result.h: what the runs of a sweep came to, read from their folders. */
#ifndef FTH_SWEEP_RESULT_H
#define FTH_SWEEP_RESULT_H

#include "inspect/run_view.h"
#include "sweep/fit.h"
#include "sweep/spec.h"

typedef struct fth_sweep_result {
    fth_run_view_state state; /* MISSING: not begun */
    int64_t update;
    double best, final; /* valid nll; NAN: never validated */
    double last;        /* the newest nll that is known; NAN: none */
    double depth;       /* layers of all stacks; 0: not known */
    char *reason;       /* of a failed run; owned, may be NULL */
    double *measure;    /* [n_measures] NAN: not measured; NULL: not asked for */
} fth_sweep_result;

/* Runs that differ in the seed alone. Means are over those that came to their end and did not
 * fail. */
typedef struct fth_sweep_row {
    const fth_sweep_run *run; /* the first of them */
    size_t runs, done, failed;
    double depth;
    fth_spread best, final;
    fth_spread last;     /* of those that failed: where they stood, as far as it is finite */
    fth_spread *measure; /* [n_measures] */
    double *p;           /* [n_measures] that the difference to the baseline is chance; NAN: none */
} fth_sweep_row;

typedef struct fth_sweep_results {
    const fth_sweep_spec *spec;
    const fth_sweep_grid *grid;
    fth_sweep_result *result; /* [grid->n] */
    fth_sweep_row *row;       /* [grid->rows] */
    double *spare;            /* owns the measures of runs and the p of rows */
    fth_spread *spreads;      /* owns the measures of rows */
} fth_sweep_results;

/* Reads one run folder. */
fth_err fth_sweep_result_read(const char *folder, fth_sweep_result *out);
void fth_sweep_result_fini(fth_sweep_result *r);

/* Reads all runs of OUT/runs. */
fth_err fth_sweep_results_read(const fth_sweep_spec *spec, const fth_sweep_grid *grid,
                               const char *out_dir, fth_sweep_results *out);
void fth_sweep_results_fini(fth_sweep_results *r);

#endif
