/* ter_shift.h: the edits of TER between two lists of words: a greedy search for shifts that make
 * the rest of the edits fewer, with the limits of Tercom and sacreBLEU. */
#ifndef FTH_METRIC_TER_SHIFT_H
#define FTH_METRIC_TER_SHIFT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "metric/ter_distance.h"
#include "metric/words.h"

/* Working space; zeroed it is ready. */
typedef struct fth_ter_work {
    fth_ter_distance distance;
    const uint32_t *hyp, *ref; /* [n], [m] words, borrowed */
    size_t n, m;
    uint32_t *order, *trial, *best; /* [n] of the words: now, with a shift tried, with the best */
    uint8_t *hyp_wrong, *ref_wrong; /* [n], [m] words that an edit touches */
    size_t *place; /* [m] how many words of the hypothesis are before the end of a reference word */
    size_t capacity; /* of each of these lists */
} fth_ter_work;

void fth_ter_work_fini(fth_ter_work *w);

fth_err fth_ter_edits(fth_ter_work *w, const fth_word_ids *hyp, const fth_word_ids *ref,
                      size_t *edits);

#endif
