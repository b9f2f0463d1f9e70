/* health.h: has a run failed (doc/analyses.md#when-a-run-has-failed), and where did it begin? */
#ifndef FTH_RUN_HEALTH_H
#define FTH_RUN_HEALTH_H

#include <stddef.h>

#include "run/advice.h"
#include "train/evaluate.h"

/* The first operation of an update whose output is not finite; op -1: there is none. */
typedef struct fth_nonfinite {
    int32_t op; /* of the program */
    fth_kind kind;
    fth_stack stack;
    fth_sub sub;
    int32_t layer; /* from 0, -1: outside of layers */
    bool backward;
} fth_nonfinite;

fth_err fth_health_first_nonfinite(fth_trainer *t, int64_t update, const fth_batch *batch,
                                   fth_nonfinite *out);
/* In words. */
void fth_nonfinite_text(const fth_nonfinite *n, char *where, size_t size);

/* What is wrong with a finished run by rules b to d; reason stays "" when it is healthy. */
typedef struct fth_judgement {
    fth_fault_kind kind;
    char reason[320];
    double encoder_cosine; /* NAN: not looked at */
} fth_judgement;

/* The same of a run that ends before it can have learned anything, from the nll of its first update
 * (NAN: not known) and the final one: has it become far worse than it began? */
void fth_health_judge_short(double first, double final, fth_judgement *out);

/* E.12 d, its first half: are the encoder's positions all the same? cosine: their mean one, NAN: no
 * encoder. */
#define FTH_COLLAPSED 0.99
bool fth_health_judge_cosine(double cosine, fth_judgement *out);

fth_err fth_health_judge(fth_evaluator *e, const fth_dataset *valid, int64_t update, int32_t block,
                         double best, double final, double unigram, fth_judgement *out);

#endif
