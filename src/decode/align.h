/* align.h: which source tokens an output looked at: the cross-attention of the decoder's last
 * layer, averaged over its heads, of a forward pass over source and output.
 *
 *     w[t][s] = 1/H sum over heads h of softmax over s of (q_t . k_s of head h) / sqrt(d / H) */
#ifndef FTH_DECODE_ALIGN_H
#define FTH_DECODE_ALIGN_H

#include "backend/program.h"
#include "model/model.h"

typedef struct fth_aligner fth_aligner;

/* An encoder-decoder model with its parameters on the device, both borrowed. */
fth_err fth_aligner_new(const fth_model *model, fth_device *dev, const fth_arenas *arenas,
                        fth_aligner **out);
void fth_aligner_free(fth_aligner *a);

/* A source with its end symbol, and an output, which begins after `first`. *weights [n_tokens,
 * n_source], valid until the next call; every row sums to 1. */
fth_err fth_aligner_run(fth_aligner *a, const int32_t *source, int32_t n_source, int32_t first,
                        const int32_t *tokens, int32_t n_tokens, const float **weights);

#endif
