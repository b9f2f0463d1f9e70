/* model_case.h: a tiny model on a device with a batch, for tests of whole models. */
#ifndef FTH_TEST_MODEL_CASE_H
#define FTH_TEST_MODEL_CASE_H

#include "backend/device/device.h"
#include "graph/batch_store.h"
#include "train/trainer.h"

typedef struct model_case {
    fth_model model;
    fth_device *device;
    fth_trainer trainer;
    fth_batch_store store; /* store.batch: ragged sentences, one of a single token */
    float *flat;           /* [params.size] what was loaded */
} model_case;

/* method in a 2-2 (or 2-layer) model of width 8; options as in config.json, may be NULL. */
fth_config model_case_config(const char *method, fth_arch arch);
void model_case_option(fth_config *c, const char *key, const char *text, double number);

/* Fresh parameters by seed, moved by `noise` from their start so that every path counts. device:
 * "ref", "cpu", or "cpu-bf16", which is cpu in that precision. */
void model_case_init(model_case *m, const fth_config *c, const char *device, int threads,
                     double noise, int64_t memory_budget);
void model_case_fini(model_case *m);

/* Loss (smoothed by 0.1) and gradients of update t; gradients as floats if grad is not NULL. */
fth_update model_case_gradients(model_case *m, int64_t t, float *grad);

/* Logits of a whole target of at most 9 tokens, computed at once: [n, vocab]. */
void model_case_logits(model_case *m, const int32_t *src, int32_t n_src, const int32_t *tgt,
                       int32_t n, double *out);

#endif
