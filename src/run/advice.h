/* advice.h: what usually helps a run that failed, in words that follow from its numbers. */
#ifndef FTH_RUN_ADVICE_H
#define FTH_RUN_ADVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

/* Which rule of doc/analyses.md#when-a-run-has-failed a run broke. */
typedef enum fth_fault_kind {
    FTH_FAULT_NONFINITE, /* a: a loss, gradient or parameter is not finite */
    FTH_FAULT_UNLEARNED, /* b: never much better than the unigram distribution */
    FTH_FAULT_WORSENED,  /* c: the end is more than 1 nat above the best */
    FTH_FAULT_COLLAPSED, /* d: the encoder's positions are all alike */
    FTH_FAULT_DEAF,      /* d: the decoder does not read the source */
    FTH_NO_FAULT
} fth_fault_kind;
const char *fth_fault_name(fth_fault_kind kind); /* "nonfinite", "unlearned", ... */
const char *fth_fault_rule(fth_fault_kind kind); /* "a: not finite", ... */

/* What is known of a failed run; NAN where it is not. */
typedef struct fth_evidence {
    fth_fault_kind kind;
    int64_t update; /* of the fault */
    int64_t max_update, warmup;
    double lr, peak_lr, clip;
    double gnorm, usual_gnorm; /* newest; median of the rows before it */
    double update_ratio;       /* largest of a sub-layer in the rows */
    double usual_update_ratio; /* median over the sub-layers of the newest row */
    char update_where[64];     /* the sub-layer of update_ratio */
    double growth;             /* median over sub-layers of parameter norm, newest over first */
    /* Of the first row, in the stack whose sub-layers differ most: smallest over largest gradient
     * norm of its layers. */
    double carried;
    int32_t layers; /* of that stack */
    double encoder_cosine;
    double dead;  /* share of the feed-forwards whose activations are almost all 0 */
    double sharp; /* share of the attentions that look at one position only */
    double loss_middle, loss_last; /* of the row in the middle of those kept, and of the newest */
    /* A method whose branches grow: its alpha now and the length of its schedule; 0: none. */
    double alpha;
    int64_t schedule;
    bool takes_branch_lr; /* it could let the rate of the branches follow alpha, and does not */
} fth_evidence;

/* [{"rule": name, "text": sentence}], the most telling first; never empty. NULL: no memory. */
json_t *fth_advice(const fth_evidence *e);

#endif
