/* op_batch.c: the batches that the cases of op_cases.c run on. */
#include "op_harness.h"

/* Rows sorted by id, equal ids in row order: by insertion, batches are small. */
static void sort_rows(const int32_t *ids, int32_t rows, int32_t *order) {
    for (int32_t r = 0; r < rows; r++) {
        int32_t at = r;
        for (; at > 0 && ids[order[at - 1]] > ids[r]; at--) order[at] = order[at - 1];
        order[at] = r;
    }
}

/* One side of the batch: random ids, of which some repeat; every fifth row has no target. */
fth_err fth_trial_side(fth_trial *t, const int *lengths, fth_packed_side *side) {
    const fth_shape *s = t->from->shape;
    int32_t rows = 0;
    for (int k = 0; k < s->n_sent; k++) rows += lengths[k];
    int32_t *data = fth_arena_alloc(&t->graph.arena, sizeof *data * ((size_t)rows * 4 + 8));
    if (!data) return fth_fail(FTH_NO_MEMORY, "no memory");
    int32_t *ids = data, *pos = ids + rows, *targets = pos + rows, *order = targets + rows;
    int32_t *offsets = order + rows, row = 0;
    *side = (fth_packed_side){rows, 0, ids, pos, targets, offsets, order};
    for (int k = 0; k < s->n_sent; k++) {
        if (lengths[k] > side->max_len) side->max_len = lengths[k];
        for (int i = 0; i < lengths[k]; i++, row++) {
            ids[row] = (int32_t)fth_rng_below(&t->rng, (uint64_t)s->vocab);
            targets[row] = (int32_t)fth_rng_below(&t->rng, (uint64_t)s->vocab);
            if (row % 5 == 2) targets[row] = -1;
            pos[row] = i;
        }
        offsets[k + 1] = row;
    }
    sort_rows(ids, rows, order);
    return FTH_OK;
}
