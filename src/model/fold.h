/* fold.h: turns a trained model into a plain Post-LN or Pre-LN model with the same outputs. */
#ifndef FTH_MODEL_FOLD_H
#define FTH_MODEL_FOLD_H

#include "model/model.h"

/* *to and *to_flat (malloc'd) are the caller's to free. FTH_BAD_CONFIG with the reason when the
 * method cannot be folded. */
fth_err fth_model_fold(const fth_model *from, const float *from_flat, fth_model *to,
                       float **to_flat);

#endif
