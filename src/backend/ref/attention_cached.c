/* attention_cached.c: attention of one new row per hypothesis over its history. The new keys and
 * values go to the cache first; a history names cache rows, so hypotheses may share their past. */
#include "backend/ref/ref.h"

#include <math.h>

static void write_cache(fth_exec *ex, const fth_tensor *rows, const fth_tensor *cache) {
    for (int64_t row = 0; row < fth_rows_now(ex, rows); row++)
        for (int32_t c = 0; c < rows->width; c++)
            fth_ref_put(cache, ex->batch.slot[row], c, fth_ref_get(rows, row, c));
}

/* One head of row `row`, whose first pair is `pair`. */
static void attend(fth_exec *ex, const fth_op *op, int64_t row, int64_t pair, int32_t head) {
    const fth_tensor *q = fth_arg(ex, op->in[ATT_CACHED_Q]);
    const fth_tensor *prev = fth_arg(ex, op->in[ATT_CACHED_PREV]);
    const fth_tensor *keys = fth_arg(ex, op->in[ATT_CACHED_KCACHE]);
    const fth_tensor *values = fth_arg(ex, op->in[ATT_CACHED_VCACHE]);
    const fth_tensor *o = fth_arg(ex, op->out[ATT_CACHED_O]);
    const fth_tensor *scores = fth_arg(ex, op->out[ATT_CACHED_SCORES]);
    const int32_t *history = ex->batch.history + row * ex->batch.history_pitch;
    const int32_t length = ex->batch.length[row];
    const int32_t first = head * (q->width / op->u.attention.heads);
    const int32_t end = first + q->width / op->u.attention.heads;
    double *p = ex->scratch; /* [length] */
    double highest = -INFINITY, sum = 0;
    for (int32_t j = 0; j < length; j++) {
        double s = 0;
        for (int32_t c = first; c < end; c++)
            s += fth_ref_get(q, row, c) * fth_ref_get(keys, history[j], c);
        s *= (double)op->u.attention.scale;
        if (prev) s += fth_ref_get(prev, pair + j, head);
        if (scores) fth_ref_put(scores, pair + j, head, s);
        p[j] = s / (double)op->u.attention.divisor;
        highest = fmax(highest, p[j]);
    }
    for (int32_t j = 0; j < length; j++) {
        p[j] = exp(p[j] - highest);
        sum += p[j];
    }
    for (int32_t c = first; c < end; c++) {
        double out = 0;
        for (int32_t j = 0; j < length; j++) out += p[j] * fth_ref_get(values, history[j], c);
        fth_ref_put(o, row, c, out / sum);
    }
}

fth_err fth_ref_attention_cached(fth_exec *ex, const fth_op *op) {
    write_cache(ex, fth_arg(ex, op->in[ATT_CACHED_K]), fth_arg(ex, op->in[ATT_CACHED_KCACHE]));
    write_cache(ex, fth_arg(ex, op->in[ATT_CACHED_V]), fth_arg(ex, op->in[ATT_CACHED_VCACHE]));
    const int64_t rows = fth_rows_now(ex, fth_arg(ex, op->out[ATT_CACHED_O]));
    int64_t pair = 0;
    for (int64_t row = 0; row < rows; pair += ex->batch.length[row++])
        for (int32_t head = 0; head < op->u.attention.heads; head++)
            attend(ex, op, row, pair, head);
    return FTH_OK;
}

/* A history is no longer than the cache. */
int64_t fth_ref_attention_cached_scratch(const fth_device *dev, const fth_graph *g,
                                         const fth_op *op, const int64_t capacity[FTH_N_EXTENTS]) {
    (void)dev, (void)capacity;
    return g->value[op->in[ATT_CACHED_KCACHE]].rows * (int64_t)sizeof(double);
}
