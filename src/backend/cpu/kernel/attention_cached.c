/* attention_cached.c: attention of one new row per hypothesis over its history. Keys and values are
 * read once from the cache, in blocks, with a running maximum: bound by memory. */
#include "backend/cpu/kernel/attention.h"

enum { BLOCK = 64 }; /* keys at a time */

/* New rows go to their places in the cache. */
static void write_cache(const fth_exec *ex, fth_val from, fth_val to, const fth_team *team) {
    const fth_tensor *t = fth_arg(ex, from);
    const rows in = rows_of(ex, from), cache = rows_of(ex, to);
    const fth_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t row = mine.begin; row < mine.end; row++)
        memcpy(cache.data + ex->batch.slot[row] * cache.ld, in.data + row * in.ld,
               sizeof(real) * (size_t)t->width);
}

/* One row and its first pair. */
typedef struct hypothesis {
    int64_t row, pair;
    const int32_t *history; /* [length] rows of the cache */
    int32_t length;
} hypothesis;

/* Scores of n keys from `first` on for one head. */
static void block_scores(const fth_exec *ex, const fth_op *op, const hypothesis *y, int32_t head,
                         int32_t width, int32_t first, int32_t n, float *s) {
    const rows q = rows_of(ex, op->in[ATT_CACHED_Q]), keys = rows_of(ex, op->in[ATT_CACHED_KCACHE]);
    const fth_tensor *prev = fth_arg(ex, op->in[ATT_CACHED_PREV]);
    const fth_tensor *scores = fth_arg(ex, op->out[ATT_CACHED_SCORES]);
    const real *a = q.data + y->row * q.ld + head * width;
    for (int32_t j = 0; j < n; j++) {
        const real *b = keys.data + y->history[first + j] * keys.ld + head * width;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int32_t c = 0; c < width; c++) sum += from_real(a[c]) * from_real(b[c]);
        sum *= op->u.attention.scale;
        if (prev) sum += element(prev, y->pair + first + j, head);
        if (scores && scores->data) set_element(scores, y->pair + first + j, head, sum);
        s[j] = sum / op->u.attention.divisor;
    }
}

/* One head of one row; o: [width] sums in between. */
static void attend(const fth_exec *ex, const fth_op *op, const hypothesis *y, int32_t head,
                   int32_t width, float *restrict_ o) {
    const rows values = rows_of(ex, op->in[ATT_CACHED_VCACHE]);
    const rows out = rows_of(ex, op->out[ATT_CACHED_O]);
    float highest = -INFINITY, sum = 0, s[BLOCK];
    for (int32_t c = 0; c < width; c++) o[c] = 0;
    for (int32_t first = 0; first < y->length; first += BLOCK) {
        const int32_t n = y->length - first < BLOCK ? y->length - first : BLOCK;
        block_scores(ex, op, y, head, width, first, n, s);
        float top = highest;
        for (int32_t j = 0; j < n; j++) top = s[j] > top ? s[j] : top;
        const float shrink = first == 0 ? 0.0f : fast_exp(highest - top);
        highest = top;
        sum *= shrink;
#pragma omp simd
        for (int32_t c = 0; c < width; c++) o[c] *= shrink;
        for (int32_t j = 0; j < n; j++) {
            const float e = fast_exp(s[j] - top);
            const real *v = values.data + y->history[first + j] * values.ld + head * width;
            sum += e;
#pragma omp simd
            for (int32_t c = 0; c < width; c++) o[c] += e * from_real(v[c]);
        }
    }
    real *to = out.data + y->row * out.ld + head * width;
    const float norm = 1 / sum;
#pragma omp simd
    for (int32_t c = 0; c < width; c++) to[c] = to_real(o[c] * norm);
}

FTH_SCRATCH(attention_cached) {
    (void)capacity;
    return threads_scratch_bytes(dev, g->value[op->in[ATT_CACHED_Q]].width);
}

FTH_PART(attention_cached) {
    const fth_tensor *t = fth_arg(ex, op->in[ATT_CACHED_Q]);
    const int32_t heads = op->u.attention.heads;
    const int64_t n_rows = fth_rows_now(ex, t);
    float *o = thread_scratch(ex, team->thread, t->width);
    write_cache(ex, op->in[ATT_CACHED_K], op->in[ATT_CACHED_KCACHE], team);
    write_cache(ex, op->in[ATT_CACHED_V], op->in[ATT_CACHED_VCACHE], team);
    fth_team_wait(team);
    const fth_share mine = fth_team_share(team, n_rows * heads, 1); /* a row's heads are tasks */
    hypothesis y = {0};
    for (; y.row < n_rows; y.pair += y.length, y.row++) {
        y.history = ex->batch.history + y.row * ex->batch.history_pitch;
        y.length = ex->batch.length[y.row];
        for (int32_t head = 0; head < heads; head++) {
            const int64_t at = y.row * heads + head;
            if (at >= mine.begin && at < mine.end) attend(ex, op, &y, head, t->width / heads, o);
        }
    }
}
