/* running.h: a run while it goes on, and its parts in the order in which fth_run calls them.
 * Nothing but src/run/run*.c includes this. */
#ifndef FTH_RUN_RUNNING_H
#define FTH_RUN_RUNNING_H

#include "data/prefetch.h"
#include "data/verify.h"
#include "run/memory_check.h"
#include "run/run.h"
#include "run/run_log.h"
#include "run/telemetry.h"
#include "store/checkpoint.h"
#include "train/evaluate.h"

/* A zeroed one can be closed. */
typedef struct fth_running {
    const fth_run_spec *spec;
    fth_device *device;
    fth_log *log;
    char *checkpoints;    /* RUN/checkpoints */
    fth_checkpoint *from; /* what it goes on from, until it is loaded; NULL: nothing */
    fth_folder folder;
    fth_dataset *train, *valid;
    fth_run_items items; /* of an encoder */
    fth_batcher *batcher;
    fth_prefetch *prefetch;
    fth_verify *verify; /* reads the data to its end beside the first updates */
    fth_model model;
    fth_trainer trainer;
    fth_telemetry *telemetry; /* NULL: none */
    fth_evaluator evaluator;
    fth_batch_store *stores; /* [n_stores] the batches that are run, and those made ahead */
    int64_t n_stores;
    fth_run_log lines;
    fth_train_state state;
    fth_position position;   /* of the next batch */
    double started;          /* clock when this process began to train */
    double wall_before;      /* seconds of earlier processes */
    int64_t began;           /* update that this process went on from */
    double best_nll;         /* of this process's validations, or of all where the nll decides */
    fth_scorer *scorer;      /* NULL: none */
    bool resumed;            /* from a checkpoint */
    bool evaluates;          /* there is a validation set */
    double since;            /* clock at the last line of the log */
    int64_t tokens, updates; /* of this process since that line */
    double waited;           /* seconds that this rank had waited for others until then */
    int slow;                /* the rank that was warned of last; -1: none */
} fth_running;

/* run.c. Of several ranks one writes, and says what is to be said. */
bool fth_running_writes(const fth_running *r);
double fth_running_wall(const fth_running *r); /* seconds of all processes of the run */

/* run_log_lines.c */
fth_err fth_running_log_start(fth_running *r);
fth_err fth_running_log_train(fth_running *r); /* of the updates since the last such line */
fth_err fth_running_log_checkpoint(fth_running *r);
void fth_running_warn(void *running, const char *text); /* on standard error and in the log */

/* run_open.c: what each rank does by itself. */
fth_err fth_running_open(fth_running *r);
void fth_running_close(fth_running *r);
int64_t fth_running_longest(const fth_running *r); /* rows of the longest sentence */
int64_t fth_running_bytes(const fth_running *r);   /* planned on the device */

/* run_start.c: fresh, or where an earlier process stopped. */
fth_err fth_running_start(fth_running *r);

/* run_loop.c: updates, until a limit is met or *signal comes. */
fth_err fth_running_loop(fth_running *r, int *signal);

/* run_validate.c */
fth_err fth_running_validate(fth_running *r);
double fth_running_best(const fth_running *r); /* the best score as people know it */

/* run_checkpoint.c: saves one; catch_up does what a killed process has not come to after its own;
 * check_folder fails when RUN was removed or moved. */
fth_err fth_running_save(fth_running *r);
fth_err fth_running_catch_up(fth_running *r);
fth_err fth_running_check_folder(const fth_running *r);

/* run_end.c. FTH_DIVERGED, with the reason and RUN/diverged.json: diverged for an update that is
 * not finite and began at a position, end for a run that has failed by health.h. */
fth_err fth_running_diverged(fth_running *r, const fth_update *u, fth_position begun);
fth_err fth_running_end(fth_running *r, fth_run_result *result);

#endif
