/* evaluate_directions.h: the loss of each direction of data of many languages, and their mean. */
#ifndef FTH_TRAIN_EVALUATE_DIRECTIONS_H
#define FTH_TRAIN_EVALUATE_DIRECTIONS_H

#include "train/evaluate.h"

/* Evaluates direction after direction. of [data->n_directions] gets each, an nll of NAN where it
 * has no sentence; *mean the mean of their nll and encoder_cosine, every direction with the same
 * weight, and the sums of the rest. */
fth_err fth_evaluate_directions(fth_evaluator *e, const fth_dataset *data,
                                const fth_eval_spec *spec, fth_eval *of, fth_eval *mean);

#endif
