/* batch.h: what changes from run to run: the tokens, and the numbers of the step. */
#ifndef FTH_GRAPH_BATCH_H
#define FTH_GRAPH_BATCH_H

#include <stdint.h>

/* One side of a packed batch: sentences end to end, pads left out. */
typedef struct fth_packed_side {
    int32_t rows;            /* tokens */
    int32_t max_len;         /* longest sentence */
    const int32_t *ids;      /* [rows] input tokens */
    const int32_t *pos;      /* [rows] index of the token in its sentence, from 0 */
    const int32_t *targets;  /* [rows] expected tokens, negative: no loss; NULL: none */
    const int32_t *offsets;  /* [n_sent + 1] first row of each sentence */
    const int32_t *order;    /* [rows] rows sorted by id, equal ids in row order: lets the
                               embedding's gradient be summed without collisions */
    const int32_t *sentence; /* [rows] which sentence a row belongs to */
} fth_packed_side;

/* Rows of numbers that come in place of tokens: the patches of pictures, the frames of speech. */
typedef struct fth_packed_numbers {
    int32_t rows, width;
    const float *data;      /* [rows, width] */
    const int32_t *offsets; /* [n_sent + 1] first row of each sentence */
    const int32_t *masked;  /* [rows] 1: hidden behind the mask token; NULL: none is */
} fth_packed_numbers;

typedef struct fth_batch {
    int32_t n_sent;
    fth_packed_side side[2];  /* by fth_side; an absent side has rows 0 */
    fth_packed_numbers input; /* rows 0: there is none */
    /* Of the source, for heads: */
    int32_t n_picked;          /* rows with a target, */
    const int32_t *picked;     /* [n_picked] which they are, ascending, */
    const int32_t *picked_ids; /* [n_picked] and their targets */
    const int32_t *labels;     /* [n_sent] class of each sentence, negative: no loss; NULL: none */
    const float *values;       /* [n_sent] or its value */
    /* generation only (attention_cached): */
    /* [tgt rows] cache row that takes the new key and value; no other row's history has it */
    const int32_t *slot;
    const int32_t *history; /* [tgt rows, history_pitch] cache rows of a hypothesis, oldest first,
                               the new one included */
    int32_t history_pitch;
    const int32_t *length; /* [tgt rows] how many of them */
} fth_batch;

/* One update of Adam over ranges of the flat arenas (doc/mathematics.md#optimiser-and-rates). */
typedef struct fth_adam_range {
    int64_t begin, end; /* elements */
    int64_t grad;       /* where the gradient of `begin` lies among the gradients */
    float lr_scale;     /* multiplies the learning rate (that of the decay too) */
} fth_adam_range;

typedef struct fth_adam {
    int64_t update; /* t, from 1 */
    double lr, beta1, beta2, eps, weight_decay;
    double grad_scale;           /* clipping factor, multiplies every gradient */
    const fth_adam_range *range; /* ascending in begin and in grad */
    int32_t n_ranges;
} fth_adam;

/* Sums over ranges, of the squares of ... */
enum {
    FTH_RANGE_GRAD,   /* ... the gradient, as it is */
    FTH_RANGE_PARAM,  /* ... the parameter, as it was before the newest update */
    FTH_RANGE_CHANGE, /* ... what that update did to it, found from Adam's moments */
    FTH_RANGE_SUMS
};

enum { FTH_STEP_SLOTS = 4, FTH_STEP_RATES = 24 };

/* The first extents of graph.h (fth_extent): those of which a batch has rows of its own. */
enum { FTH_ROW_EXTENTS = 5 };

/* The numbers of an update. */
typedef struct fth_step {
    uint64_t seed;
    uint32_t update;              /* t, from 1: dropout draws by it */
    double slots[FTH_STEP_SLOTS]; /* set by the method: slot 0 is the alpha that logs show */
    double loss_scale;            /* 1 / target tokens of the whole update */
    /* By extent: rows of this update in earlier micro-batches; first those of fth_side. */
    int64_t row_base[FTH_ROW_EXTENTS];
    /* For updates inside of the graph (inline_update.h): Adam without ranges or clipping (update 0:
     * nothing is updated), and what multiplies its rate, by fth_role. */
    fth_adam adam;
    float rate[FTH_STEP_RATES];
} fth_step;

#endif
