/* bpe_pairs.h: how often any two symbols stand next to each other in the words of a text, where,
 * and which two do most often. */
#ifndef FTH_TEXT_BPE_PAIRS_H
#define FTH_TEXT_BPE_PAIRS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct fth_bpe_pair {
    int32_t left, right;
    int64_t count;
    int32_t *words; /* [n_words] that have or had the pair, in the order in which they got it */
    int32_t n_words, room;
    int raised; /* is it in the list of those that became more? */
} fth_bpe_pair;

typedef struct fth_bpe_rank {
    int64_t count; /* when it was put into the heap */
    int32_t left, right;
} fth_bpe_rank;

/* A zeroed one is empty and may be freed. */
typedef struct fth_bpe_pairs {
    fth_bpe_pair *pairs; /* [n] */
    size_t n, room;
    int32_t *places; /* [size] pairs by hash; -1: nothing is here */
    size_t size;
    int32_t *raised; /* [n_raised] pairs that became more since the last fth_bpe_pairs_queue */
    size_t n_raised, room_raised;
    fth_bpe_rank *heap; /* [n_heap] the most frequent first; of equals the one of lower ids */
    size_t n_heap, room_heap;
} fth_bpe_pairs;

void fth_bpe_pairs_fini(fth_bpe_pairs *p);

/* The pair stands `more` times more often in a word. */
fth_err fth_bpe_pairs_count(fth_bpe_pairs *p, int32_t left, int32_t right, int64_t more,
                            int32_t word);

/* Puts all that became more into the heap. */
fth_err fth_bpe_pairs_queue(fth_bpe_pairs *p);

/* Takes the most frequent pair out; NULL when none is left that stands `least` times. Valid until
 * the next fth_bpe_pairs_count. */
fth_err fth_bpe_pairs_take(fth_bpe_pairs *p, int64_t least, fth_bpe_pair **out);

#endif
