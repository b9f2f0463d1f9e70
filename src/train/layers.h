/* layers.h: quantities per sub-layer, for the log and the figures. */
#ifndef FTH_TRAIN_LAYERS_H
#define FTH_TRAIN_LAYERS_H

#include "train/run_log.h"
#include "train/trainer.h"

/* Sub-layers of a stack, bottom to top. */
int32_t fth_sublayers(const fth_config *c, fth_stack stack);

/* Norm of the gradient of each sub-layer's parameters after fth_trainer_gradients or an update:
 * out [fth_sublayers]. */
fth_err fth_layer_grad_norms(const fth_trainer *t, fth_stack stack, double *out);

/* Writes a `layers` line for each stack. */
fth_err fth_log_grad_norms(const fth_trainer *t, int64_t update, fth_run_log *log);

#endif
