/* validate_directions.h: a validation of data of many languages: a line of the log for each
 * direction, and the mean, by which the best checkpoint is found. */
#ifndef FTH_RUN_VALIDATE_DIRECTIONS_H
#define FTH_RUN_VALIDATE_DIRECTIONS_H

#include "data/languages.h"
#include "run/run_log.h"
#include "train/evaluate.h"

/* As fth_evaluate; data without directions are evaluated as one. */
fth_err fth_validate_directions(fth_evaluator *e, const fth_dataset *data,
                                const fth_eval_spec *spec, const fth_languages *languages,
                                fth_run_log *log, fth_eval *mean);

#endif
