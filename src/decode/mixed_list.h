/* mixed_list.h: the best words of a row by the mean of several models' probabilities, from the
 * lists that their devices have chosen (fth_stepper_best).
 *
 * A word that stands in no list is, in each model, no better than the last word of that model's
 * list; so the mean of the last ones bounds it. The words of the lists that are above the bound are
 * the best of all, in their order, and nothing but them is looked at. */
#ifndef FTH_DECODE_MIXED_LIST_H
#define FTH_DECODE_MIXED_LIST_H

#include "decode/stepper.h"

typedef struct fth_mixed_list {
    int32_t n;     /* words, best first, equal ones by their numbers */
    bool all;      /* no other word has a probability */
    int32_t *word; /* [count * FTH_TOP_MOST] */
    float *logp;   /* [count * FTH_TOP_MOST] log of the mean */
    float *each;   /* [count, count * FTH_TOP_MOST + 1] log-probabilities by model, and the bound */
    const float **row; /* [count] of each */
    int count;         /* models */
} fth_mixed_list;

/* A zeroed one can be freed. */
fth_err fth_mixed_list_init(fth_mixed_list *l, int count);
void fth_mixed_list_fini(fth_mixed_list *l);

/* best [count] and logits [count][rows, vocab] of the newest step. False: the logits of the row are
 * not finite. */
bool fth_mixed_list_fill(fth_mixed_list *l, const fth_best *best, const float *const *logits,
                         int32_t vocab, int32_t row);

/* The log of the mean probability of the word that the row asked for. */
bool fth_mixed_list_asked(fth_mixed_list *l, const fth_best *best, int32_t row, float *logp);

#endif
