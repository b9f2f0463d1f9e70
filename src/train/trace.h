/* trace.h: one forward and backward written out, number by number
 * (doc/formats.md#batches-and-traces). */
#ifndef FTH_TRAIN_TRACE_H
#define FTH_TRAIN_TRACE_H

#include "train/trainer.h"

typedef struct fth_trace_spec {
    const char *batch, *out; /* safetensors files */
    int64_t update;          /* of the forward and backward; sets alpha_t */
    int64_t steps;           /* training updates afterwards, 0: none */
    fth_recipe recipe;
} fth_trace_spec;

fth_err fth_trace(fth_model *model, const float *flat, fth_device *dev, const fth_trace_spec *spec);

#endif
