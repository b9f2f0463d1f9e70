/* words.h: words become numbers, so that the scores compare integers.
 *
 * A fth_vocab gives each different word the next free id; equal words have equal ids. */
#ifndef FTH_METRIC_WORDS_H
#define FTH_METRIC_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "text/text.h"

/* A sequence of ids that grows. Zeroed it is empty. */
typedef struct fth_word_ids {
    uint32_t *id; /* [capacity], the first n are the list */
    size_t n, capacity;
} fth_word_ids;

fth_err fth_word_ids_add(fth_word_ids *list, uint32_t id);
void fth_word_ids_fini(fth_word_ids *list);

typedef struct fth_vocab {
    fth_str words;  /* all words end to end */
    size_t *start;  /* [capacity + 1] word i is words[start[i] .. start[i + 1]) */
    uint32_t *slot; /* [n_slots] id + 1 by hash, 0 where free; n_slots is a power of two */
    size_t n_slots; /* more than twice n */
    size_t n;       /* ids given so far: 0 .. n - 1 */
    size_t capacity;
} fth_vocab;

/* Zeroed it is empty. */
fth_err fth_vocab_id(fth_vocab *v, fth_text word, uint32_t *id);
void fth_vocab_fini(fth_vocab *v);

/* Makes out the ids of the words of t, which white space separates. */
fth_err fth_split_words(fth_vocab *v, fth_text t, fth_word_ids *out);

/* Makes out the code points of t. */
fth_err fth_code_points(fth_text t, fth_word_ids *out);

/* The same without white space. */
fth_err fth_dense_code_points(fth_text t, fth_word_ids *out);

#endif
