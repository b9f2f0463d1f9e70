/* constraints.h: phrases that an output must have, in their order.
 *
 * A hypothesis has met some of their tokens. The beam is shared out over these numbers (dynamic
 * beam allocation, Post and Vilar 2018): the best hypothesis of those that have met most, then of
 * those that have met one less, and so on in turn, so that hypotheses on their way are not crowded
 * out by likelier ones that have met nothing. */
#ifndef FTH_DECODE_CONSTRAINTS_H
#define FTH_DECODE_CONSTRAINTS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "decode/pick.h"

/* Ends a phrase in a list of tokens. */
enum { FTH_PHRASE_END = -1 };

typedef struct fth_constraint {
    int32_t n;      /* tokens of all phrases; 0: none */
    int32_t *token; /* [n] */
    int32_t *begin; /* [n] where the phrase of each begins */
} fth_constraint;

/* Of a list of n_ids tokens, every phrase with its end. */
fth_err fth_constraint_make(const int32_t *ids, int32_t n_ids, fth_arena *arena,
                            fth_constraint *out);

/* How many tokens are met after one more; a phrase that is broken off begins anew. */
int32_t fth_constraint_step(const fth_constraint *c, int32_t met, int32_t token);

/* Puts n candidates, sorted, into the order in which a beam takes them, and cuts them to `most`;
 * met [n] is how many tokens each has met, and is reordered along. */
int32_t fth_constraint_share(fth_candidate *c, int32_t *met, int32_t n, int32_t most);

#endif
