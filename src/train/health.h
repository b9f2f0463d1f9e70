/* health.h: has a run failed (METHODS E.12), and where did it begin? */
#ifndef FTH_TRAIN_HEALTH_H
#define FTH_TRAIN_HEALTH_H

#include <stddef.h>

#include "train/evaluate.h"

/* Names the first sub-layer whose values are not finite in an update, in words. */
fth_err fth_health_first_fault(fth_trainer *t, int64_t update, const fth_batch *batch, char *where,
                               size_t size);

/* Judges a finished run by E.12 b to d. reason stays "" when it is healthy. */
fth_err fth_health_judge(fth_evaluator *e, const fth_dataset *valid, int64_t update, int32_t block,
                         double best, double final, double unigram, char *reason, size_t size);

#endif
