/* batcher.h: packed batches of a data set: shuffled for training, or in order for evaluation.
 *
 * Training goes through the data in epochs without end. The order of an epoch follows from seed and
 * epoch alone (data/shuffle.h); it is worked through in windows, and each window is divided into
 * batches (data/pack.h), so memory does not grow with the data. A position names a batch exactly,
 * and going there costs no more than one window: this is how a run is resumed.
 *
 * max_tokens bounds the source rows and the target rows of a batch, each. */
#ifndef FTH_DATA_BATCHER_H
#define FTH_DATA_BATCHER_H

#include <stdint.h>

#include "base/error.h"
#include "data/dataset.h"
#include "data/items.h"

typedef struct fth_position {
    int64_t epoch;  /* from 1 */
    int64_t window; /* of the epoch, from 0 */
    int64_t batch;  /* of the window, from 0 */
    int64_t index;  /* of the epoch, from 0: how many batches came before */
} fth_position;

/* Where training begins. */
#define FTH_FIRST_POSITION ((fth_position){.epoch = 1})

/* A batch without pads: sentences end to end. */
typedef struct fth_packed {
    int32_t n_sent;   /* 0: there is no batch: the end of a pass in order */
    int32_t src_rows; /* 0 for a data set with one side */
    int32_t tgt_rows;
    int32_t *src;         /* [src_rows] ids, eos at the end of each sentence */
    int32_t *src_offsets; /* [n_sent + 1] first row of each sentence; all 0 without source */
    int32_t *tgt_in;      /* [tgt_rows] what the decoder reads: bos, ids */
    int32_t *tgt_out;     /* [tgt_rows] what it has to say: ids, eos; -1: no loss there */
    int32_t *tgt_offsets; /* [n_sent + 1] */
    int32_t *src_out;     /* [src_rows] an encoder's targets, -1: none; of masked items alone */
    int32_t *labels;      /* [n_sent] classes, where the data have classes */
    float *values;        /* [n_sent] numbers, where labels are numbers */
    float *numbers;  /* [rows, number_width] patches of pictures, or frames: then the rows are those
                       of the source; else NULL */
    int32_t *masked; /* [rows] 1: hidden */
    int32_t number_rows, number_width; /* rows of numbers of each sentence, 0: those of the source;
                                          and their width */
    bool has_src_out, has_labels, has_values, has_masked;
    int64_t *sentences;    /* [n_sent] their numbers in the data set; or those of blocks */
    fth_position position; /* of this batch */
    fth_position next;     /* of the one after it: what a checkpoint keeps */
    int32_t max_tokens;    /* capacity of the arrays: that of src, tgt_in, tgt_out, and of
                                  sentences */
} fth_packed;

typedef struct fth_batch_options {
    int32_t max_tokens;    /* rows of a batch, of each side */
    int32_t max_sentences; /* of a batch; 0: no bound */
    int32_t max_length;    /* rows of a sentence, of each side; 0: max_tokens is the only bound */
    int in_order;          /* one pass in the order of the data set, instead of shuffled epochs */
    int strict;            /* a sentence that does not fit is an error, instead of left out */
    uint64_t seed;
    fth_item_spec
        item;      /* encoders, masks, pictures (data/items.h); block and context stand here: */
    int32_t block; /* > 0: the text as blocks of so many tokens (data/items.h) */
    int32_t context_window; /* of them, tokens that are only read */
    double temperature;     /* of directions (data/direction_draw.h); 0: that of the data */
    int64_t window;         /* items of a window; 0: chosen by the data */
    int64_t neighbours;     /* items that are shuffled as one; 0: chosen, 1 unless there are so many
                               that reading them one by one would take too long */
} fth_batch_options;

/* Since the start, or since fth_batcher_seek. */
typedef struct fth_batch_stats {
    int64_t batches, sentences;
    int64_t src_rows, tgt_rows;
    int64_t left_out; /* sentences that are too long; each counts again in every epoch */
} fth_batch_stats;

typedef struct fth_batcher fth_batcher;

/* The data set must outlive the batcher. Begins at FTH_FIRST_POSITION. */
fth_err fth_batcher_new(const fth_dataset *data, const fth_batch_options *options,
                        fth_batcher **out);
void fth_batcher_free(fth_batcher *b);

/* Goes to a position that an earlier batch gave, of the same data set and options.
 * FTH_BAD_INPUT when there is no such position. */
fth_err fth_batcher_seek(fth_batcher *b, fth_position position);

/* The next batch, into arrays that fth_packed_init made; those of pictures are made with the
 * first. */
fth_err fth_batcher_next(fth_batcher *b, fth_packed *out);

/* What is counted of a batch. */
typedef int64_t fth_batch_count(const void *context, const fth_packed *packed);

/* Adds up the counts of the next n batches, which are the next ones afterwards too; `room` holds
 * one at a time. An error is left to whoever makes them. */
int64_t fth_batcher_count(fth_batcher *b, int64_t n, fth_packed *room, fth_batch_count *count,
                          const void *context);

/* How many sentences every epoch leaves out because they are too long. Walks through the data only
 * when there are any. */
fth_err fth_batcher_too_long(const fth_batcher *b, int64_t *out);

fth_batch_stats fth_batcher_stats(const fth_batcher *b);

/* The share of the capacity that was filled on the side with more rows, in [0, 1]. */
double fth_batcher_fill(const fth_batcher *b);

/* How many batches an epoch has, about: exact when they are full. */
int64_t fth_batcher_expected(const fth_batcher *b);

/* Arrays for batches of max_tokens. A zeroed fth_packed may be freed. */
fth_err fth_packed_init(fth_packed *p, int32_t max_tokens);
void fth_packed_fini(fth_packed *p);

#endif
