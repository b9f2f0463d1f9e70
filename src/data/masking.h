/* masking.h: which tokens a masked language model has to guess, and what stands in their place.
 *
 * A share of a text's tokens is chosen: single ones, whole words, or spans. Of the chosen, most
 * become the mask, some another token, some stay (BERT, section 3.1). Nothing is drawn: the choice
 * follows from seed, epoch and item, so it is the same whatever batch the item is in and however
 * often a run was stopped. */
#ifndef FTH_DATA_MASKING_H
#define FTH_DATA_MASKING_H

#include <stdint.h>

#include "base/error.h"
#include "text/tokenizer.h"

typedef enum fth_mask_unit { FTH_MASK_PIECES, FTH_MASK_WORDS, FTH_MASK_SPANS } fth_mask_unit;

typedef struct fth_masking {
    double share;        /* of the tokens that are to be guessed; 0: nothing is masked */
    double keep, random; /* of these, the share that stays and that becomes another token */
    fth_mask_unit unit;
    uint64_t seed;
    int32_t mask, vocab;       /* the id of the mask; ids are in [0, vocab) */
    fth_special_ids special;   /* never chosen, and no other token becomes them */
    const uint8_t *word_start; /* [vocab] 1: the piece begins a word; of words alone */
} fth_masking;

/* The mean length of a span, and the longest (SpanBERT, section 3.1). */
#define FTH_MASK_SPAN_MEAN 3.0
enum { FTH_MASK_SPAN_MOST = 10 };

/* Masks ids [n] of an item in an epoch: targets [n] gets the ids to guess, -1 elsewhere. */
fth_err fth_masking_apply(const fth_masking *m, int64_t epoch, int64_t item, int64_t n,
                          int32_t *ids, int32_t *targets);

/* Patches of a picture to guess: rectangles until share of all is covered (BEiT, algorithm 1).
 * masked [rows, columns]: 1 or 0; returns their number. */
int64_t fth_masking_blocks(uint64_t seed, int64_t epoch, int64_t item, double share, int32_t rows,
                           int32_t columns, int32_t *masked);

/* For each piece of a tokenizer, whether it begins a word: [size], malloc'd. */
fth_err fth_word_starts(const fth_tokenizer *t, uint8_t **out);

#endif
