/* run_encoder.h: how a data set and an encoder-only model find each other. */
#ifndef FTH_RUN_RUN_ENCODER_H
#define FTH_RUN_RUN_ENCODER_H

#include "run/run.h"

/* The front, the head and their sizes in a configuration whose arch is enc: by the data, unless the
 * head was asked for. FTH_USAGE where the data cannot feed the head. */
fth_err fth_run_encoder_config(const fth_run_spec *spec, const fth_dataset *data, fth_config *c);

/* What lists for fronts and heads a batch can hold at most: a GPU's products are as large as that.
 * `block` is the length of the blocks that text is cut into; 0: sentences. */
void fth_run_encoder_room(const fth_run_items *items, const fth_config *c, int64_t block,
                          fth_trainer_spec *size);

#endif
