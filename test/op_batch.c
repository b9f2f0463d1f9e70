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
    int32_t *data = fth_arena_alloc(&t->graph.arena, sizeof *data * ((size_t)rows * 5 + 8));
    if (!data) return fth_fail(FTH_NO_MEMORY, "no memory");
    int32_t *ids = data, *pos = ids + rows, *targets = pos + rows, *order = targets + rows;
    int32_t *sentence = order + rows, *offsets = sentence + rows, row = 0;
    *side = (fth_packed_side){rows, 0, ids, pos, targets, offsets, order, sentence};
    for (int k = 0; k < s->n_sent; k++) {
        if (lengths[k] > side->max_len) side->max_len = lengths[k];
        for (int i = 0; i < lengths[k]; i++, row++) {
            ids[row] = (int32_t)fth_rng_below(&t->rng, (uint64_t)s->vocab);
            targets[row] = (int32_t)fth_rng_below(&t->rng, (uint64_t)s->vocab);
            if (row % 5 == 2) targets[row] = -1;
            pos[row] = i;
            sentence[row] = k;
        }
        offsets[k + 1] = row;
    }
    sort_rows(ids, rows, order);
    return FTH_OK;
}

/* Rows of numbers for the source: one for each row, or for all but the first of each sentence,
 * whose place a class token has; every third is hidden. */
fth_err fth_trial_numbers(fth_trial *t, int32_t width, bool cls) {
    const fth_packed_side *src = &t->batch.side[FTH_SRC];
    const int32_t n = t->from->shape->n_sent, rows = src->rows - (cls ? n : 0);
    float *data = fth_arena_alloc(&t->graph.arena, sizeof *data * ((size_t)(rows * width) + 1));
    int32_t *list = fth_arena_alloc(&t->graph.arena, sizeof *list * (size_t)(rows + n + 1));
    if (!data || !list) return fth_fail(FTH_NO_MEMORY, "no memory");
    int32_t *masked = list, *offsets = list + rows;
    for (int32_t i = 0; i < rows * width; i++) data[i] = (float)fth_rng_normal(&t->rng);
    for (int32_t r = 0; r < rows; r++) masked[r] = r % 3 == 1;
    for (int32_t s = 0; s <= n; s++) offsets[s] = src->offsets[s] - (cls ? s : 0);
    t->batch.input = (fth_packed_numbers){rows, width, data, offsets, masked};
    t->rows[FTH_ROWS_INPUT] = rows;
    t->capacity[FTH_ROWS_INPUT] = rows + 3;
    return FTH_OK;
}

/* What heads read: the rows of the source that have a target, and classes and values of sentences;
 * the second sentence has no class. */
fth_err fth_trial_lists(fth_trial *t) {
    const fth_shape *s = t->from->shape;
    const fth_packed_side *src = &t->batch.side[FTH_SRC];
    const size_t room = (size_t)src->rows * 2 + (size_t)s->n_sent + 1;
    int32_t *picked = fth_arena_alloc(&t->graph.arena, sizeof *picked * room);
    float *values = fth_arena_alloc(&t->graph.arena, sizeof *values * (size_t)(s->n_sent + 1));
    if (!picked || !values) return fth_fail(FTH_NO_MEMORY, "no memory");
    int32_t *ids = picked + src->rows, *labels = ids + src->rows, n = 0;
    for (int32_t r = 0; r < src->rows; r++) {
        if (src->targets[r] < 0) continue;
        picked[n] = r;
        ids[n++] = src->targets[r];
    }
    for (int k = 0; k < s->n_sent; k++) {
        labels[k] = k == 1 ? -1 : (int32_t)fth_rng_below(&t->rng, (uint64_t)s->vocab);
        values[k] = (float)fth_rng_normal(&t->rng);
    }
    t->batch.n_picked = n;
    t->batch.picked = picked;
    t->batch.picked_ids = ids;
    t->batch.labels = labels;
    t->batch.values = values;
    t->rows[FTH_ROWS_PICKED] = n;
    t->rows[FTH_ROWS_SENTENCES] = s->n_sent;
    return FTH_OK;
}
