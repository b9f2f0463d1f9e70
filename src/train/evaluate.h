/* evaluate.h: loss of a data set, every dropout off. */
#ifndef FTH_TRAIN_EVALUATE_H
#define FTH_TRAIN_EVALUATE_H

#include "backend/arenas.h"
#include "backend/program.h"
#include "data/batcher.h"
#include "graph/batch_store.h"
#include "model/model.h"
#include "train/trainer.h"

/* A forward program over parameters that someone else owns and may change between calls. */
typedef struct fth_evaluator {
    const fth_model *model;
    fth_program *program;
    fth_outputs outputs;
    fth_batch_store store;
    fth_packed packed;
    int32_t max_tokens;
} fth_evaluator;

/* lender: a program whose memory serves this one too (fth_program_spec); NULL: none. */
fth_err fth_evaluator_init(fth_evaluator *e, const fth_model *model, fth_device *dev,
                           const fth_arenas *arenas, fth_program *lender, int32_t max_tokens,
                           int64_t max_len);
void fth_evaluator_fini(fth_evaluator *e);

/* How a pass over the data is made. */
typedef struct fth_eval_spec {
    int64_t update;            /* completed updates: sets the method's numbers */
    int32_t block;             /* language model: tokens of a block; 0: sentences */
    int32_t context_window;    /* of them, tokens that are only read */
    const fth_item_spec *item; /* of encoders; NULL: no encoder's */
    bool strict;               /* a sentence that is too long is an error */
    bool of_several;           /* batches of one sentence are left out */
    bool wrong_sources;        /* every sentence gets the source of another one
                               (doc/analyses.md#when-a-run-has-failed d); only batches of several */
    int64_t most;              /* batches at most; 0: all */
} fth_eval_spec;

typedef struct fth_eval {
    double nll;       /* nats per target token */
    int64_t tokens;   /* target tokens, end symbols included */
    int64_t left_out; /* sentences that did not fit */
    int64_t alone;    /* sentences that had a batch of their own */
    /* Mean cosine between encoder outputs of different positions of a sentence; NAN without an
     * encoder. */
    double encoder_cosine;
} fth_eval;

fth_err fth_evaluate(fth_evaluator *e, const fth_dataset *data, const fth_eval_spec *spec,
                     fth_eval *out);

/* Copies a packed batch into a store; shift > 0 gives sentence i the source of sentence i +
 * shift. */
fth_err fth_store_packed(fth_batch_store *store, const fth_packed *p, const fth_config *c,
                         int32_t shift);

/* Its rows that carry loss, as fth_batch_targets counts them in the store: of an extent. */
int64_t fth_packed_targets(const fth_packed *p, const fth_config *c, fth_extent rows);

#endif
