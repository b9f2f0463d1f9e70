/* weights.h: parameters between model folders and the flat arena. */
#ifndef FTH_TRAIN_WEIGHTS_H
#define FTH_TRAIN_WEIGHTS_H

#include "store/safetensors.h"
#include "model/model.h"

/* One tensor per parameter, named prefix + its name, whose data lies in flat [params.size].
 * malloc'd in one piece, names included. */
fth_err fth_weights_tensors(const fth_params *params, const char *prefix, const float *flat,
                            fth_st_tensor **out);

/* Reads a model folder: the model is described by its config.json, *flat (malloc'd) gets its
 * parameters. */
fth_err fth_weights_read(const char *folder, fth_model *model, float **flat);

/* Fails with the first number of a model that is not finite, for what none can be done with: rule
 * says what that is. */
fth_err fth_weights_finite(const fth_model *model, const float *flat, const char *rule);

/* Fills flat from the tensors prefix + name of a file; tensors of other prefixes may lie beside. */
fth_err fth_weights_from(const fth_st_file *file, const fth_params *params, const char *prefix,
                         float *flat);

/* Writes a model folder. tokenizer_from: folder whose tokenizer is copied along, or NULL. */
fth_err fth_weights_write(const char *folder, const fth_model *model, const float *flat,
                          const char *tokenizer_from);

#endif
