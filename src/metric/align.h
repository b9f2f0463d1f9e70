/* align.h: how two sequences of symbols match: edit operations and longest common subsequences.
 *
 * Both work on 64 symbols at a time with bit vectors (Myers, 1999; Hyyro, 2003 and 2004): the
 * differences between neighbouring cells of the table are one bit each. Time n * m / 64. */
#ifndef FTH_METRIC_ALIGN_H
#define FTH_METRIC_ALIGN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Working space; zeroed it is ready. */
typedef struct fth_align {
    uint64_t *mask;  /* [rows][n_words] bit i of a symbol's row: position i of the pattern has it */
    uint32_t *key;   /* [n_slots] symbols of the pattern by hash, n_slots is a power of two */
    uint32_t *row;   /* [n_slots] the row of that symbol; 0, a row of zeros: the slot is free */
    uint64_t *plus;  /* [m + 1][n_words] where the table goes up by one to the next symbol */
    uint64_t *minus; /* [m + 1][n_words] where it goes down by one */
    size_t n_words, n_slots;
    size_t mask_room, slot_room, table_room; /* elements of the arrays above */
} fth_align;

void fth_align_fini(fth_align *w);

/* What turns a reference into a hypothesis. */
typedef struct fth_edits {
    int64_t hits, substitutions, insertions, deletions;
} fth_edits;

/* Adds the edits of one pair to *sum. There are often several shortest ways; which one is taken is
 * the choice of RapidFuzz (Bachmann), on which jiwer is built. */
fth_err fth_align_edits(fth_align *w, const uint32_t *ref, size_t n, const uint32_t *hyp, size_t m,
                        fth_edits *sum);

/* The length of the longest common subsequence. Sets chosen[i] = 1 where ref[i] belongs to one such
 * subsequence: the one found from the end, which drops a symbol of ref where it can. chosen may be
 * NULL. */
fth_err fth_align_lcs(fth_align *w, const uint32_t *ref, size_t n, const uint32_t *can, size_t m,
                      uint8_t *chosen /* [n] */, size_t *length);

#endif
