/* ngram.h: exact counts of the n-grams of a hypothesis and its references.
 *
 * An n-gram is named by the pair (name of its first n - 1 symbols, its last symbol), so names are
 * small numbers, two n-grams never share one, and counting is one look-up per n-gram. */
#ifndef FTH_METRIC_NGRAM_H
#define FTH_METRIC_NGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "metric/words.h"

enum { FTH_MAX_ORDER = 16 };

/* Where n-grams are counted. */
typedef enum fth_gram_side { FTH_IN_HYP, FTH_IN_REF, FTH_IN_NEW_REF, FTH_GRAM_SIDES } fth_gram_side;

typedef struct fth_ngrams {
    struct fth_ngram_slot *slot; /* [n_slots], a power of two, more than twice n */
    struct fth_ngram *gram;      /* [n_slots / 2], the first n are in use */
    size_t n, n_slots;
    uint32_t round;     /* slots of an older round are free */
    fth_word_ids names; /* names of the n-grams of the newest order */
} fth_ngrams;

/* Forgets everything; a zeroed fth_ngrams must be reset before it is used. */
fth_err fth_ngrams_reset(fth_ngrams *g);
void fth_ngrams_fini(fth_ngrams *g);

/* Counts all n-grams of 1 to max_order symbols on one side. */
fth_err fth_ngrams_add(fth_ngrams *g, fth_gram_side side, const fth_word_ids *symbols,
                       int max_order);

/* Sets the counts of a side to 0. */
void fth_ngrams_clear(fth_ngrams *g, fth_gram_side side);

/* REF becomes the larger one of REF and NEW_REF; NEW_REF becomes 0. */
void fth_ngrams_merge_ref(fth_ngrams *g);

/* Adds to matches[n - 1] the sum over all n-grams of the smaller one of HYP and REF. */
void fth_ngrams_match(const fth_ngrams *g, int64_t *matches);

/* How many n-grams a sequence of length symbols has. */
static inline int64_t fth_ngram_total(size_t length, int order) {
    return length >= (size_t)order ? (int64_t)(length - (size_t)order + 1) : 0;
}

#endif
