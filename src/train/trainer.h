/* trainer.h: a model on a device that can be updated. The loop of `train`, the steps of `trace` and
 * `bench` all go through fth_trainer_update. */
#ifndef FTH_TRAIN_TRAINER_H
#define FTH_TRAIN_TRAINER_H

#include "backend/arenas.h"
#include "backend/program.h"
#include "graph/inline_update.h"
#include "model/model.h"
#include "ranks/exchange.h"
#include "train/schedule.h"

/* How updates are made. */
typedef struct fth_recipe {
    fth_schedule schedule;
    double beta1, beta2, eps, weight_decay;
    double clip;      /* 0: off */
    double smoothing; /* label smoothing */
    bool dropout;     /* the model's dropouts are on */
    uint64_t seed;
} fth_recipe;

/* Another program of the same operations, run in place of the trainer's own (telemetry.h). */
typedef struct fth_stand_in {
    fth_program *program;
    const fth_outputs *outputs; /* its own */
    /* Called after each micro-batch. */
    fth_err (*ran)(void *context, const fth_batch *batch);
    void *context;
} fth_stand_in;

typedef struct fth_pipeline fth_pipeline;

typedef struct fth_trainer {
    fth_model *model; /* borrowed */
    fth_device *device;
    fth_recipe recipe;
    fth_arenas arenas;      /* moments: of the own slice alone */
    fth_exchange *exchange; /* with the other ranks; NULL: alone */
    fth_slice own;          /* what this rank updates: all of it when alone */
    void *sum;       /* [own] gradient of several batches; NULL: of one, arenas.grad has it */
    bool summed;     /* the newest gradient is in sum */
    int batches;     /* of an update, at most */
    double *numbers; /* where ranks exchange losses and norms of them (sum.h) */
    fth_program
        *program; /* forward and backward; with a pipeline, of a stage, and the pipeline's */
    fth_pipeline *pipeline; /* NULL: every rank runs whole models (pipeline.h) */
    bool own_first;         /* as in the spec */
    int groups;             /* of ranks that have a whole model each, and take a batch at once */
    fth_outputs outputs;
    bool updates_inline;               /* matrices are updated by the program itself */
    fth_inline_updates inline_updates; /* which; n is 0 where none is */
    double *inline_sums; /* [inline_updates.n, FTH_RANGE_SUMS] of the newest update, roots */
    const fth_stand_in *watcher;   /* of the update at hand, borrowed; NULL: nobody looks */
    fth_adam_range *range;         /* [n_ranges] runs of the others with one learning rate */
    const fth_param **range_param; /* [n_ranges] a parameter that stands for the run */
    int32_t n_ranges;
} fth_trainer;

/* What is asked of the plan. */
typedef struct fth_trainer_spec {
    int64_t src_tokens, tgt_tokens; /* most of one batch */
    /* Likewise sentences, source rows with a target, and rows of numbers; 0: as many as source
     * tokens. */
    int64_t sentences, picked, numbers;
    int64_t max_len;       /* longest sentence of either side */
    int64_t memory_budget; /* bytes for everything on the device; 0: no limit */
    int64_t batches;       /* micro-batches of an update; 0: one */
    fth_ranks *ranks;      /* that share them; NULL: alone */
    int stages;            /* of a pipeline, each on a rank of its own; 0, 1: none */
    bool own_first;        /* each rank adds up its own batches first: one exchange an update, and
                            * the sum depends on the number of ranks */
    /* Updates matrices inside of the backward (inline_update.h); see fth_can_update_inline. There
     * is no fth_trainer_gradients then. */
    bool inline_updates;
} fth_trainer_spec;

/* Whether updates of so many batches by so many ranks allow it; the result is the same. */
bool fth_can_update_inline(const fth_recipe *recipe, int64_t batches, int ranks);

/* The graph of an update: forward, backward and, with updates, those of matrices. */
fth_err fth_update_graph(const fth_model *model, const fth_device *dev, const fth_recipe *recipe,
                         fth_taps *taps, fth_inline_updates *updates, fth_graph *graph,
                         fth_outputs *outputs);

/* Capacities of a graph by extent. */
void fth_capacities(const fth_trainer_spec *spec, int64_t capacity[FTH_N_EXTENTS]);

fth_err fth_trainer_init(fth_trainer *t, fth_model *model, fth_device *dev,
                         const fth_recipe *recipe, const fth_trainer_spec *spec);
void fth_trainer_fini(fth_trainer *t);

/* A forward and backward program over the trainer's parameters, as its own is; taps NULL: none;
 * lender: see fth_program_spec. */
fth_err fth_trainer_program(fth_trainer *t, const fth_trainer_spec *spec, fth_taps *taps,
                            fth_program *lender, fth_program **program, fth_outputs *outputs);

/* Fresh parameters on the device. */
fth_err fth_trainer_draw(fth_trainer *t, uint64_t seed);

/* Bytes on the device: parameters, moments, gradients, activations. */
int64_t fth_trainer_bytes(const fth_trainer *t);

/* What one update did. */
typedef struct fth_update {
    double loss, nll; /* per target token, nats */
    double gnorm;     /* before clipping */
    double lr, alpha;
    int64_t tokens; /* target tokens */
    bool finite;    /* false: nothing was applied, but for finite updates inside of the program */
} fth_update;

/* Rows of an extent that carry loss. */
int64_t fth_batch_targets(const fth_batch *batch, fth_extent rows);

/* The micro-batches of an update, one after the other: they need not all be in memory. */
typedef struct fth_batches {
    int n;
    int64_t targets; /* rows of all of them that carry loss, by which the loss is divided */
    fth_err (*next)(void *context, const fth_batch **out); /* good until it is called again */
    void *context;
    bool kept; /* all of them stay good until the update has been made */
} fth_batches;

/* Those of an array; *at is where it begins, and moves on. */
fth_batches fth_batches_of(const fth_trainer *t, const fth_batch *const **at, int n);

/* Update number `update` (from 1) over one or more micro-batches, each of which every rank has. The
 * gradient is the sum of theirs, each made by itself, in their order: the same whoever makes them.
 * A loss that is not finite applies nothing. */
fth_err fth_trainer_update_from(fth_trainer *t, int64_t update, const fth_batches *batches,
                                fth_update *out);
fth_err fth_trainer_update(fth_trainer *t, int64_t update, const fth_batch *const *batches,
                           int n_batches, fth_update *out);

/* What Adam works on: the own slice, its first element being element 0. */
fth_arenas fth_trainer_own(const fth_trainer *t);

/* What Adam gets at an update, ranges left out. */
fth_adam fth_trainer_adam(const fth_trainer *t, int64_t update, const fth_update *u);

/* Do two parameters always have the same learning rate? */
bool fth_same_rate(const fth_method_state *m, const fth_param *a, const fth_param *b);

/* What multiplies the learning rate of a parameter at an update. */
float fth_rate_of(const fth_method_state *m, const fth_param *p, int64_t update);

/* The parts of it: gradients and loss without the optimiser (trace). */
fth_err fth_trainer_gradients(fth_trainer *t, int64_t update, const fth_batch *const *batches,
                              int n_batches, fth_update *out);

#endif
