/* bpe_merges.h: the merges of a BPE, and a word put together by them.
 *
 * Each step makes the merge of the lowest rank among all neighbours, the leftmost first, until
 * none is left (Sennrich et al. 2016). */
#ifndef FTH_TEXT_BPE_MERGES_H
#define FTH_TEXT_BPE_MERGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/philox.h"

typedef struct fth_bpe_merge {
    int32_t left, right; /* ids; left -1: nothing is here */
    int32_t rank, made;  /* which of all merges, and the id that it makes */
} fth_bpe_merge;

/* A table by hash. Zeroed: may be freed. */
typedef struct fth_bpe_merges {
    fth_bpe_merge *places; /* [size], a power of two, half of it empty at least */
    size_t size;
} fth_bpe_merges;

fth_err fth_bpe_merges_init(fth_bpe_merges *m, size_t n);
void fth_bpe_merges_fini(fth_bpe_merges *m);

/* NULL: the two make nothing. */
const fth_bpe_merge *fth_bpe_merges_find(const fth_bpe_merges *m, int32_t left, int32_t right);

/* At most as many as it was made for. FTH_BAD_INPUT when the pair is there already. */
fth_err fth_bpe_merges_add(fth_bpe_merges *m, fth_bpe_merge merge);

/* Merges ids [*n] in place. n log n. */
fth_err fth_bpe_join(const fth_bpe_merges *m, int32_t *ids, size_t *n);

/* The same, where each possible merge of each step is passed over with probability p (Provilkov et
 * al. 2020); when all are, the word is done. n^2. */
void fth_bpe_join_dropped(const fth_bpe_merges *m, double p, fth_rng *rng, int32_t *ids, size_t *n);

#endif
