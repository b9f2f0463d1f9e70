/* average.h: the mean of the parameters of several models. */
#ifndef FTH_STORE_AVERAGE_H
#define FTH_STORE_AVERAGE_H

#include "store/model_dir.h"

/* Writes a model folder whose parameters are the means over models [n], F32, summed in double. The
 * models must describe the same model and hold finite numbers; the highest step and the first one's
 * tokenizer are taken over. The tensors pass through in pieces: no copy of a model is made. */
fth_err fth_average_write(const char *path, const fth_model_dir *const *models, size_t n);

#endif
