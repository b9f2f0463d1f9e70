/* measure.h: what is done with a run after its training: average, generate, score, evaluate.
 *
 * Each command of `fathom` has a product in the run's folder whose name holds a hash of all that
 * decides it. So what is there is not made again, and other options make other products. */
#ifndef FTH_SWEEP_MEASURE_H
#define FTH_SWEEP_MEASURE_H

#include "sweep/command.h"
#include "sweep/spec.h"

/* Reads "score.NAME" or "evaluate.NAME" with its "key=value" into the next of s->measure. */
fth_err fth_measure_read(fth_sweep_spec *s, const char *key, const char *const *items, size_t n);

/* FTH_BAD_INPUT where keys do not go together: a text without references, a baseline that no run
 * can have. */
fth_err fth_measure_check(const fth_sweep_spec *s);

/* The next command that a trained run still needs; c->n is 0 when all is measured. data: the data
 * set; out_dir: of the sweep; extra: [n_extra] words that every run gets. */
typedef struct fth_measuring {
    const fth_sweep_spec *spec;
    const char *out_dir, *data;
    const char *const *extra;
    size_t n_extra;
} fth_measuring;
fth_err fth_measure_next(const fth_measuring *m, const fth_sweep_run *run, fth_command *c);

/* Values of the measures of a run; NAN where one is not there. */
fth_err fth_measure_values(const fth_sweep_spec *s, const char *out_dir, const fth_sweep_run *run,
                           double *values /* [s->n_measures] */);

/* The text that a run put out for a measure of kind score; malloc'd, NULL: no memory. */
char *fth_measure_output(const fth_sweep_spec *s, const char *out_dir, const fth_sweep_run *run,
                         const fth_measure *m);

/* The references of such a measure: malloc'd list of [*n] malloc'd paths. */
fth_err fth_measure_add_references(const fth_sweep_spec *s, const char *out_dir,
                                   const fth_measure *m, fth_command *c);

#endif
