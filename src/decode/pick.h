/* pick.h: choosing among the words of a vocabulary. */
#ifndef FTH_DECODE_PICK_H
#define FTH_DECODE_PICK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/philox.h"

typedef struct fth_candidate {
    double sum;   /* of the whole hypothesis */
    float logp;   /* of this token */
    int32_t from; /* hypothesis that it continues */
    int32_t token;
} fth_candidate;

/* out = log softmax(logits / temperature). False where the logits are not finite: out is no
 * distribution then. */
bool fth_log_softmax(const float *logits, int32_t n, double temperature, float *out);

/* The `wanted` best tokens that are not forbidden (-inf); ties go to the smaller token. Returns how
 * many. */
int32_t fth_pick_best(const float *logp, int32_t n, int32_t wanted, double sum, int32_t from,
                      fth_candidate *out);

/* Best first; ties go to the earlier hypothesis, then to the smaller token. Returns
 * min(n, most). */
int32_t fth_sort_candidates(fth_candidate *c, int32_t n, int32_t most);

/* The token at point u of [0, 1) of the distribution, cut to the topk likeliest and to those that
 * together reach topp (0: not cut); -1 where all are forbidden (-inf). scratch [n]. */
int32_t fth_pick_random(const float *logp, int32_t n, int32_t topk, double topp, double u,
                        fth_candidate *scratch);

#endif
