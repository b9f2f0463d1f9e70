/* runner.h: runs of a sweep as child processes of the program itself.
 *
 * OUT/.sweep.lock is held while a sweep works, so that there is one at a time. OUT/.runs.lock is
 * handed on to the runs: after a sweep was killed, the next one waits until the last of its runs
 * has saved its checkpoint and gone. */
#ifndef FTH_SWEEP_RUNNER_H
#define FTH_SWEEP_RUNNER_H

#include "base/log.h"
#include "sweep/measure.h"
#include "sweep/result.h"

typedef struct fth_runner {
    const char *out_dir, *data;
    int jobs;
    const char *const *gpus; /* [n_gpus] CUDA_VISIBLE_DEVICES of the jobs in turn; none: as it is */
    size_t n_gpus;
    const char *const *extra; /* [n_extra] words for every run that are not part of what it is */
    size_t n_extra;
    const fth_measuring *measuring; /* what is done with runs after their training */
    fth_log *log;
    int sweep_lock, runs_lock; /* file descriptors, -1: not held */
} fth_runner;

/* Takes the locks of out_dir, which must exist. FTH_FAILED when another sweep works there. */
fth_err fth_runner_open(fth_runner *r);
void fth_runner_close(fth_runner *r);

/* Runs this program with words (NULL-ended, without the program's name) and waits. What it says
 * goes to output, appended; its standard output goes to product, if that is not NULL. *status: the
 * exit status, 128 + n for signal n. */
fth_err fth_runner_call(const char *const *words, const char *output, const char *product,
                        int *status);

/* Makes and measures all runs that are not finished. A run that fails by
 * doc/analyses.md#when-a-run-has-failed is a result; *errors counts those that ended in any other
 * way. FTH_STOPPED, FTH_TERMINATED: a signal came, it was passed on, and all runs have saved their
 * checkpoints. */
fth_err fth_runner_run(fth_runner *r, const fth_sweep_grid *grid, size_t *errors);

#endif
