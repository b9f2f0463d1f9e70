/* set.h: the probe set: sentences that every model is shown. It is read from a batch file
 * (doc/formats.md#batches-and-traces) or drawn from a data set by a seed, and walked in pieces that
 * fit into memory. */
#ifndef FTH_PROBE_SET_H
#define FTH_PROBE_SET_H

#include "data/dataset.h"
#include "train/padded.h"

typedef struct fth_probe_set {
    fth_padded all;       /* the whole of it */
    fth_batch_store part; /* part.batch: the piece at hand */
    int32_t max_tokens;   /* of a piece, of each side */
    int32_t next;         /* first sentence of the next piece */
    int64_t targets;      /* target tokens of the whole set */
    fth_side side;        /* the side with targets */
} fth_probe_set;

/* A sentence that is longer than max_tokens is a piece of its own. */
fth_err fth_probe_set_read(fth_probe_set *s, const char *path, const fth_config *c,
                           int64_t max_tokens);
void fth_probe_set_fini(fth_probe_set *s);

/* Most rows of a piece, by extent. */
void fth_probe_set_capacity(const fth_probe_set *s, int64_t capacity[FTH_N_EXTENTS]);

/* Pieces in order: rewind, then next until *more is false. */
void fth_probe_set_rewind(fth_probe_set *s);
fth_err fth_probe_set_next(fth_probe_set *s, bool *more);

/* How sentences are drawn. */
typedef struct fth_probe_draw {
    const char *data;  /* data set folder */
    const char *model; /* model folder */
    int split;         /* FTH_TRAIN, ... */
    int64_t sentences;
    uint64_t seed;
} fth_probe_draw;

/* Draws sentences that the model can read and writes them as a batch file. */
fth_err fth_probe_set_draw(const fth_probe_draw *draw, const fth_config *c, const char *path);

#endif
