/* top.c: the best words of every row. Reads the logits three times (largest, sum, choice), from the
 * caches after the first: bound by memory, or by the exponentials where a row stays in a cache. A
 * row is one thread's, so its result depends on nothing else. */
#include "backend/cpu/kernel/kernel.h"

#include "backend/top_words.h"

/* Floats of one thread: a row where the logits are no floats. */
static int64_t floats_of(int64_t vocab) {
    return REAL_DTYPE == FTH_F32 ? 0 : vocab;
}

FTH_SCRATCH(top) {
    (void)capacity;
    return threads_scratch_bytes(dev, floats_of(g->value[op->in[TOP_X]].width));
}

static const float *as_floats(const real *x, int32_t n, float *room) {
#ifdef FTH_REAL_IS_bf16
    for (int32_t i = 0; i < n; i++) room[i] = from_real(x[i]);
    return room;
#else
    (void)n, (void)room;
    return x;
#endif
}

FTH_PART(top) {
    const rows logits = rows_of(ex, op->in[TOP_X]);
    const full_rows out = full_of(ex, op->out[TOP_Y]);
    const int32_t n = fth_arg(ex, op->in[TOP_X])->width;
    const int32_t k = (fth_arg(ex, op->out[TOP_Y])->width - TOP_BEST) / 2;
    const int32_t *asked = ex->batch.side[FTH_TGT].targets;
    float *room = thread_scratch(ex, team->thread, floats_of(n));
    const fth_cpu_share mine =
        fth_team_share(team, fth_rows_now(ex, fth_arg(ex, op->in[TOP_X])), 1);
    for (int64_t row = mine.begin; row < mine.end; row++) {
        const float *x = as_floats(logits.data + row * logits.ld, n, room);
        float *y = out.data + row * out.ld;
        int32_t word[FTH_TOP_MOST];
        y[TOP_LSE] = fth_row_lse(x, n);
        y[TOP_ASKED] = asked && asked[row] >= 0 ? x[asked[row]] : 0.0f;
        const int32_t count = fth_row_best(x, n, k, y + TOP_BEST, word);
        for (int32_t i = count; i < k; i++) y[TOP_BEST + i] = -INFINITY;
        for (int32_t i = 0; i < k; i++) y[TOP_BEST + k + i] = i < count ? (float)word[i] : -1.0f;
    }
}
