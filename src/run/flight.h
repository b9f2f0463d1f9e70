/* flight.h: what a preflight has open: the run as it would be, without its folder. For
 * preflight*.c. */
#ifndef FTH_RUN_FLIGHT_H
#define FTH_RUN_FLIGHT_H

#include "base/philox.h"
#include "base/progress.h"
#include "graph/batch_store.h"
#include "run/preflight.h"
#include "run/telemetry.h"

/* Updates that the time is measured with, after some that warm up. */
enum { FTH_FLIGHT_TIMED = 5, FTH_FLIGHT_WARM = 2, FTH_FLIGHT_SECONDS = 45 /* of a quick look */ };

/* What a preflight has open. A zeroed one can be freed. */
typedef struct fth_flight {
    const fth_run_spec *spec;
    fth_device *device;
    fth_folder folder;
    fth_dataset *train;
    fth_run_items items;  /* of an encoder */
    fth_batcher *batcher; /* NULL: sentences are made up */
    fth_rng rng;          /* of made-up sentences */
    const fth_preflight_how *how;
    int64_t tokens; /* of the batches at hand */
    int n_batches;  /* of an update at hand */
    double began;   /* clock */
    fth_progress bar;
    int64_t made; /* updates of the whole preflight */
    fth_packed packed;
    fth_model model;
    fth_trainer_spec size;
    fth_trainer trainer;
    fth_telemetry *telemetry;
    fth_program *probe; /* forward, dropout off, hidden states and logits kept */
    fth_outputs seen;
    fth_batch_store store;       /* of the batch that is run */
    fth_batch_store probe_store; /* of the one that the model is looked at with */
    bool filled;                 /* store has the next batch */
    double *start, *now;         /* [rows * width] top output: of the fresh model, newest */
    double *logits[2];           /* [rows * V] likewise */
    fth_preflight *out;
} fth_flight;

/* Opens data and model; fills in the memory of the plan. */
fth_err fth_flight_open(fth_flight *f);
fth_err fth_flight_plan(fth_flight *f);

/* What the trainer's arenas are there for: room for batches, and the program that looks at the
 * model. */
fth_err fth_flight_stores(fth_flight *f);
fth_err fth_flight_probe(fth_flight *f);

/* Batches of so many tokens, from the first on. Small ones may leave sentences out that the run
 * does not. */
fth_err fth_flight_batches(fth_flight *f, int64_t tokens);

/* The next batch; the n_batches of an update, of which the first is made at once and the others
 * where they are asked for. */
fth_err fth_flight_fill(fth_flight *f, fth_batch_store *store);
fth_err fth_flight_next(fth_flight *f, fth_batches *out);

/* The first batch of the run is the one that the model is looked at with. */
const fth_batch *fth_flight_probe_batch(const fth_flight *f);

/* The model as it is drawn, without moments, and the first batch. */
fth_err fth_flight_restart(fth_flight *f);

/* An update was made. */
void fth_flight_show(fth_flight *f, double loss);

/* Measures the time of the run's updates; seconds: of one with the batches at hand. */
fth_err fth_flight_time(fth_flight *f, double seconds);

/* preflight_ranks.c: the plans for several ranks. */
fth_err fth_preflight_ranks(fth_flight *f);

void fth_flight_fini(fth_flight *f);

#endif
