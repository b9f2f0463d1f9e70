/* padded.h: batches as other programs keep them, right-padded matrices in a safetensors file
 * (doc/formats.md#batches-and-traces), and the way from there to packed batches and back. */
#ifndef FTH_TRAIN_PADDED_H
#define FTH_TRAIN_PADDED_H

#include "graph/batch_store.h"
#include "model/model.h"

/* A padded side: ids [n, width]; rows of the packed batch are its non-pad entries in order. */
typedef struct fth_padded_side {
    int64_t width;
    int32_t *ids;     /* [n, width] */
    int32_t *targets; /* [n, width], NULL: none */
    int32_t *cell;    /* [rows] which entry of the matrix a packed row is */
    int32_t rows, longest;
} fth_padded_side;

typedef struct fth_padded {
    int64_t n; /* sentences */
    fth_padded_side side[2];
    fth_batch_store store; /* store.batch is the packed batch */
} fth_padded;

/* Reads the tensors that the architecture takes: src, tgt_in, tgt_out; src_out for enc. */
fth_err fth_padded_read(const char *path, const fth_config *config, fth_padded *out);
void fth_padded_fini(fth_padded *p);

/* Spreads packed rows [rows, width] into out [n * padded width, width]; pads are 0. */
void fth_padded_spread(const fth_padded *p, fth_side side, const double *rows, int64_t width,
                       float *out);

#endif
