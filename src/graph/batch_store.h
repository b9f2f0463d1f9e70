/* batch_store.h: memory for packed batches, taken once and filled again and again. */
#ifndef FTH_GRAPH_BATCH_STORE_H
#define FTH_GRAPH_BATCH_STORE_H

#include "base/error.h"
#include "graph/batch.h"
#include "graph/graph.h"

typedef struct fth_batch_store {
    fth_batch batch; /* points into the arrays below once both sides are filled */
    int32_t max_rows[2], max_sent;
    struct {
        int32_t *ids, *pos, *targets, *order, *sentence; /* [max_rows] */
        int32_t *offsets;                                /* [max_sent + 1] */
    } side[2];
    int32_t *picked, *picked_ids; /* [max_rows of the source] */
    int32_t *number_offsets;      /* [max_sent + 1] */
    float *numbers;               /* [number_room] made with the first batch that has some */
    int32_t *masked;              /* [number_room] */
    int64_t number_room;
    int32_t *labels;  /* [max_sent] */
    float *values;    /* [max_sent] */
    uint32_t *counts; /* [65536] of the sort */
    int32_t *temp;    /* [larger max_rows] */
} fth_batch_store;

fth_err fth_batch_store_init(fth_batch_store *s, int32_t src_rows, int32_t tgt_rows,
                             int32_t max_sent);

/* The bytes that it takes. */
int64_t fth_batch_store_bytes(int32_t src_rows, int32_t tgt_rows, int32_t max_sent);
void fth_batch_store_fini(fth_batch_store *s);

/* Fills one side from packed arrays. ids [offsets[n_sent]], every one in [0, vocab); NULL: rows
 * that are no words. targets may be NULL; every one must be below `classes`. */
fth_err fth_batch_store_rows(fth_batch_store *s, fth_side side, int32_t n_sent,
                             const int32_t *offsets, const int32_t *ids, int32_t vocab,
                             const int32_t *targets, int32_t classes);

/* The same where targets are words too. */
fth_err fth_batch_store_fill(fth_batch_store *s, fth_side side, int32_t n_sent,
                             const int32_t *offsets, const int32_t *ids, const int32_t *targets,
                             int32_t vocab);

/* Rows of numbers, which are copied: offsets [n_sent + 1] says which are a sentence's; pictures
 * have as many each. And labels or values of the n_sent sentences of the batch. NULL: there are
 * none. */
fth_err fth_batch_store_numbers(fth_batch_store *s, int32_t n_sent, const int32_t *offsets,
                                int32_t width, const float *data, const int32_t *masked);
fth_err fth_batch_store_pictures(fth_batch_store *s, int32_t n_sent, int32_t rows, int32_t width,
                                 const float *data, const int32_t *masked);
void fth_batch_store_labels(fth_batch_store *s, const int32_t *labels, const float *values);

/* Rows of a batch by extent. */
void fth_batch_rows(const fth_batch *batch, int64_t rows[FTH_N_EXTENTS]);

#endif
