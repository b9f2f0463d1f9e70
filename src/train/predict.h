/* predict.h: what a trained encoder says of sentences and pictures: a class or a number of each, or
 * a class of every patch or token. */
#ifndef FTH_TRAIN_PREDICT_H
#define FTH_TRAIN_PREDICT_H

#include "backend/arenas.h"
#include "backend/program.h"
#include "data/image_facts.h"
#include "graph/batch_store.h"
#include "model/model.h"

/* A forward program over parameters that someone else owns. A zeroed one may be freed. */
typedef struct fth_predictor {
    const fth_model *model;
    fth_program *program;
    fth_outputs outputs;
    fth_batch_store store;
    int32_t max_rows;
    /* the batch that is being filled */
    int32_t n, rows;
    int32_t *ids, *offsets; /* [max_rows], [max_rows + 1] */
    float *numbers;         /* [max_rows, numbers of a patch]; NULL: text */
} fth_predictor;

/* FTH_USAGE where the model's head has no answers of this kind. */
fth_err fth_predictor_init(fth_predictor *p, const fth_model *model, fth_device *dev,
                           const fth_arenas *arenas, int32_t max_rows);
void fth_predictor_fini(fth_predictor *p);

/* Adds a sentence of n tokens, whose bos and eos are put around it; *full: there is no room,
 * predict first. One that is too long for the model is cut. */
fth_err fth_predictor_add_text(fth_predictor *p, const int32_t *ids, int64_t n, bool *full);

/* Adds a picture: its patches [patches, numbers of a patch]. */
fth_err fth_predictor_add_patches(fth_predictor *p, const float *patches, bool *full);

/* Whether patches or tokens are what something is said of. */
bool fth_predictor_of_places(const fth_predictor *p);

/* What is said of the samples added: out [n, outputs], logits of classes or numbers; of places
 * [rows of the batch, outputs], a class token or bos before them, an eos behind. Then it is empty
 * again. */
fth_err fth_predictor_run(fth_predictor *p, double *out);

/* Numbers that are said of a sample. */
int32_t fth_predictor_outputs(const fth_predictor *p);

#endif
