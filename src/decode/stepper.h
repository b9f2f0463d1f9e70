/* stepper.h: a model that generates: it encodes sources once, then takes one token for each live
 * hypothesis at a time and gives the best words that may come next, or the logits of all.
 *
 * A hypothesis's keys and values lie in cache rows ("slots"), one for each of its tokens. What it
 * has seen is a list of slots, so a beam that is copied copies numbers, not caches. */
#ifndef FTH_DECODE_STEPPER_H
#define FTH_DECODE_STEPPER_H

#include "backend/arenas.h"
#include "backend/program.h"
#include "graph/batch_store.h"
#include "model/model.h"

typedef struct fth_stepper fth_stepper;

typedef struct fth_stepper_spec {
    int32_t sentences;  /* most of one batch */
    int32_t src_tokens; /* most of one batch */
    int32_t rows;       /* most live hypotheses */
    int32_t length;     /* most tokens of a hypothesis, the first symbol counted */
    int32_t slots; /* cache rows; 0: as many as rows of that length take, which share nothing */
    int32_t top;   /* words of a row that the device chooses, at most FTH_TOP_MOST; 0: none */
} fth_stepper_spec;

/* The model, its device and its parameters outlive the stepper. Parameters must not change
 * meanwhile: a device may hold weights in another form. */
fth_err fth_stepper_new(const fth_model *model, fth_device *dev, const fth_arenas *arenas,
                        const fth_stepper_spec *spec, fth_stepper **out);
void fth_stepper_free(fth_stepper *s);

/* Begins a batch of sources, sentences end to end (encdec; a dec model needs n_sent alone). */
fth_err fth_stepper_begin(fth_stepper *s, int32_t n_sent, const int32_t *offsets,
                          const int32_t *ids);

/* The same of recordings: frames [rows, 4 features], masked [rows] (front/speech.c). */
fth_err fth_stepper_begin_frames(fth_stepper *s, int32_t n_sent, const int32_t *offsets,
                                 const float *frames, const int32_t *masked);

/* One row of a step. Rows come ordered by sentence. */
typedef struct fth_step_row {
    int32_t sentence;
    int32_t token;  /* what the hypothesis ends with */
    int32_t parent; /* its row in the step before, -1 in the first step */
    int32_t asked;  /* a word whose logit stands in the list of the best too; -1: none */
} fth_step_row;

/* Advances. Histories of rows that no row names as parent are forgotten. logits as of
 * fth_stepper_logits; NULL: they stay on the device. */
fth_err fth_stepper_step(fth_stepper *s, const fth_step_row *rows, int32_t n, const float **logits);

/* What the newest step gave; both belong to the stepper and are good until the next step.
 * *logits [n, vocab]: fetched from the device when first asked for, which takes its time. */
fth_err fth_stepper_logits(fth_stepper *s, const float **logits);

/* The best words of every row, by the columns of TOP_Y in graph/op.h. */
typedef struct fth_best {
    int32_t k;         /* 0: the device does not choose, there are no rows */
    const float *rows; /* [n, TOP_BEST + 2 k] */
} fth_best;
fth_err fth_stepper_best(fth_stepper *s, fth_best *best);

/* Times by kind of operation of encoder and steps, in seconds; only while profiling. */
void fth_stepper_profile(fth_stepper *s, bool on);
void fth_stepper_times(const fth_stepper *s, double times[FTH_N_KINDS]);

/* Bytes on the device beside the parameters. */
int64_t fth_stepper_bytes(const fth_stepper *s);

#endif
