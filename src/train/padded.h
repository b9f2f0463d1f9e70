/* padded.h: batches as other programs keep them, right-padded matrices in a safetensors file
 * (doc/formats.md#batches-and-traces), and the way from there to packed batches and back. */
#ifndef FTH_TRAIN_PADDED_H
#define FTH_TRAIN_PADDED_H

#include "graph/batch_store.h"
#include "model/model.h"

/* A padded side: ids [n, width]; rows of the packed batch are its non-pad entries in order. Of
 * pictures the entries are the patches; a class token's row is no entry. */
typedef struct fth_padded_side {
    int64_t width;
    int32_t *ids;     /* [n, width] */
    int32_t *targets; /* [n, width], NULL: none */
    int32_t *cell;    /* [rows] which entry of the matrix a packed row is; -1: none */
    int32_t rows, longest;
} fth_padded_side;

typedef struct fth_padded {
    int64_t n; /* sentences */
    fth_padded_side side[2];
    float *numbers;        /* [rows, numbers of one] patches or frames, NULL: none, as the others */
    int32_t *masked;       /* [rows] */
    int32_t *frames;       /* [n] of each utterance */
    int32_t *labels;       /* [n] */
    float *values;         /* [n] */
    fth_batch_store store; /* store.batch is the packed batch */
} fth_padded;

/* Reads the tensors that the model takes: src, image and masked, or frames and
 * frame_count; tgt_in and tgt_out; src_out or label. */
fth_err fth_padded_read(const char *path, const fth_config *config, fth_padded *out);
void fth_padded_fini(fth_padded *p);

/* The padded shape of a value with rows of an extent, and how many dimensions that are. all: with
 * the rows of class tokens, for the stack's output. */
int fth_padded_shape(const fth_padded *p, const fth_config *c, fth_extent rows, bool all,
                     int64_t width, int64_t shape[3]);

/* Spreads n packed rows [n, width] of an extent into zeroed `out` of that shape. */
void fth_padded_spread(const fth_padded *p, fth_extent rows, bool all, const double *numbers,
                       int64_t n, int64_t width, float *out);

#endif
