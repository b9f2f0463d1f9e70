/* choice_scores.h: how likely a model finds the endings of questions. */
#ifndef FTH_CLI_CHOICE_SCORES_H
#define FTH_CLI_CHOICE_SCORES_H

#include "decode/stepper.h"
#include "base/log.h"
#include "data/choices.h"
#include "model/model.h"
#include "text/tokenizer.h"

/* A model that lies on a device; everything is borrowed. */
typedef struct fth_choices_model {
    const fth_model *model;
    fth_device *device;
    const fth_arenas *arenas;
    const fth_tokenizer *src, *tgt; /* the same for dec */
} fth_choices_model;

typedef struct fth_choice_task {
    const char *name; /* of the file, for messages */
    const fth_questions *questions;
    const fth_question *const *shots; /* [n_shots] answered before every question (dec) */
    int64_t n_shots;
    int64_t max_tokens; /* cache rows of a batch, where a question needs no more */
    fth_log *log;
} fth_choice_task;

typedef struct fth_ending_score {
    double logp; /* nats, of all its tokens */
    int32_t tokens;
} fth_ending_score;

/* A zeroed one may be freed. */
typedef struct fth_choice_scores {
    fth_ending_score *endings; /* of all questions */
    size_t *first;             /* [questions] where those of a question begin */
    int64_t rows, rows_alone;  /* tokens computed; what they would be if nothing were shared */
    int64_t cut;               /* prompts that lost their beginning */
} fth_choice_scores;

/* FTH_BAD_INPUT where an ending does not fit into the model. */
fth_err fth_choice_scores_make(const fth_choices_model *m, const fth_choice_task *task,
                               fth_choice_scores *out);
void fth_choice_scores_fini(fth_choice_scores *s);

#endif
