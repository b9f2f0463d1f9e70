/* attention_cached.c: attention of one new row per hypothesis over its history. Keys and values are
 * read once from the cache, in blocks, with a running maximum: bound by memory. A thread has whole
 * rows of the cache, all heads of a key at a time, where there are enough hypotheses: neighbours in
 * memory are then read one after the other, and what comes next is asked for. */
#include "backend/cpu/kernel/attention.h"

enum {
    BLOCK = 64, /* keys at a time */
    AT_ONCE = 4 /* of them */
};

/* New rows go to their places in the cache. */
static void write_cache(const fth_exec *ex, fth_val from, fth_val to, const fth_team *team) {
    const fth_tensor *t = fth_arg(ex, from);
    const rows in = rows_of(ex, from), cache = rows_of(ex, to);
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t row = mine.begin; row < mine.end; row++)
        memcpy(cache.data + ex->batch.slot[row] * cache.ld, in.data + row * in.ld,
               sizeof(real) * (size_t)t->width);
}

/* One row, the heads of it that are worked on, and what they have so far. */
typedef struct hypothesis {
    int64_t row, pair;      /* pair: its first one */
    const int32_t *history; /* [length] rows of the cache */
    int32_t length;
    int32_t width;      /* of a head */
    int32_t begin, end; /* heads */
    float *s;           /* [heads][BLOCK] scores of a block, then their exponentials */
    float *o;           /* [heads][width] sums of values */
    float *highest;     /* [heads] score */
    float *sum;         /* [heads] of exponentials */
} hypothesis;

/* Floats of s, o, highest and sum. */
static int64_t own_floats(int32_t heads, int32_t width) {
    return (int64_t)heads * (BLOCK + 2) + width;
}

/* Rows of a cache for AT_ONCE keys from key j on; those behind the last are the last. */
static void find_rows(const real *at[AT_ONCE], rows cache, const hypothesis *y, int32_t j) {
    for (int r = 0; r < AT_ONCE; r++) {
        const int32_t key = j + r < y->length ? j + r : y->length - 1;
        at[r] = cache.data + y->history[key] * cache.ld;
    }
}

/* Asks for a head's part of rows. */
inline_ void ask_for(const real *const at[AT_ONCE], int64_t column, int32_t width) {
    for (int32_t c = 0; c < width; c += 64 / (int32_t)sizeof(real))
        for (int r = 0; r < AT_ONCE; r++) __builtin_prefetch(at[r] + column + c);
}

/* Dots of a query and four keys, `width` numbers of each. */
inline_ void four_dots(const real *q, const real *const at[AT_ONCE], int64_t column, int32_t width,
                       float out[AT_ONCE]) {
    vf acc[AT_ONCE];
    int32_t c = 0;
    for (int r = 0; r < AT_ONCE; r++) acc[r] = v_zero();
    for (; c + VW <= width; c += VW) {
        const vf x = v_load_real(q + c);
#pragma GCC unroll 4
        for (int r = 0; r < AT_ONCE; r++)
            acc[r] = v_fma(x, v_load_real(at[r] + column + c), acc[r]);
    }
    v_sums4(acc, out);
    for (; c < width; c++)
        for (int r = 0; r < AT_ONCE; r++) out[r] += from_real(q[c]) * from_real(at[r][column + c]);
}

/* Scores of n keys from `first` on for all heads, as they are before the softmax. */
static void block_scores(const fth_exec *ex, const fth_op *op, const hypothesis *y, int32_t first,
                         int32_t n) {
    const rows q = rows_of(ex, op->in[ATT_CACHED_Q]), keys = rows_of(ex, op->in[ATT_CACHED_KCACHE]);
    const fth_tensor *prev = fth_arg(ex, op->in[ATT_CACHED_PREV]);
    const fth_tensor *scores = fth_arg(ex, op->out[ATT_CACHED_SCORES]);
    for (int32_t j = 0; j < n; j += AT_ONCE) {
        const real *at[AT_ONCE], *next[AT_ONCE];
        find_rows(at, keys, y, first + j);
        find_rows(next, keys, y, first + j + AT_ONCE);
        for (int32_t head = y->begin; head < y->end; head++) {
            const int64_t column = (int64_t)head * y->width;
            ask_for(next, column, y->width);
            four_dots(q.data + y->row * q.ld + column, at, column, y->width,
                      y->s + head * BLOCK + j);
        }
    }
    const float scale = op->u.attention.scale, divisor = op->u.attention.divisor;
    for (int32_t head = y->begin; head < y->end; head++)
        for (int32_t j = 0; j < n; j++) {
            float *s = y->s + head * BLOCK + j;
            const int64_t pair = y->pair + first + j;
            const float score = *s * scale + (prev ? element(prev, pair, head) : 0);
            if (scores && scores->data) set_element(scores, pair, head, score);
            *s = score / divisor;
        }
}

/* Exponentials of a block's scores for one head; what was summed so far shrinks to the new
 * maximum. */
static void exponentials(const hypothesis *y, int32_t head, int32_t n, bool is_first) {
    float *s = y->s + head * BLOCK, *o = y->o + head * y->width;
    for (int64_t j = n; j < v_round(n) || j % AT_ONCE; j++) s[j] = -INFINITY;
    vf most = v_load(s), sum = v_zero();
    for (int32_t j = VW; j < n; j += VW) most = v_max(most, v_load(s + j));
    float top = v_largest(most);
    if (!is_first && y->highest[head] > top) top = y->highest[head];
    for (int32_t j = 0; j < n; j += VW) {
        const vf e = v_exp(v_add(v_load(s + j), v_set(-top)));
        v_store(s + j, e);
        sum = v_add(sum, e);
    }
    const float shrink = is_first ? 0.0f : fast_exp(y->highest[head] - top);
    y->highest[head] = top;
    y->sum[head] = (is_first ? 0.0f : y->sum[head] * shrink) + v_sum(sum);
#pragma omp simd
    for (int32_t c = 0; c < y->width; c++) o[c] = is_first ? 0.0f : o[c] * shrink;
}

/* o += e v for four values of one head. */
inline_ void add_four(float *restrict_ o, const float e[AT_ONCE], const real *const at[AT_ONCE],
                      int64_t column, int32_t width) {
    int32_t c = 0;
    for (; c + VW <= width; c += VW) {
        vf x = v_load(o + c);
#pragma GCC unroll 4
        for (int r = 0; r < AT_ONCE; r++)
            x = v_fma(v_set(e[r]), v_load_real(at[r] + column + c), x);
        v_store(o + c, x);
    }
    for (; c < width; c++)
        for (int r = 0; r < AT_ONCE; r++) o[c] += e[r] * from_real(at[r][column + c]);
}

static void block_values(const fth_exec *ex, const fth_op *op, const hypothesis *y, int32_t first,
                         int32_t n) {
    const rows values = rows_of(ex, op->in[ATT_CACHED_VCACHE]);
    for (int32_t j = 0; j < n; j += AT_ONCE) {
        const real *at[AT_ONCE], *next[AT_ONCE];
        find_rows(at, values, y, first + j);
        find_rows(next, values, y, first + j + AT_ONCE);
        for (int32_t head = y->begin; head < y->end; head++) {
            const int64_t column = (int64_t)head * y->width;
            ask_for(next, column, y->width);
            add_four(y->o + column, y->s + head * BLOCK + j, at, column, y->width);
        }
    }
}

/* Some heads of one row. */
static void attend(const fth_exec *ex, const fth_op *op, const hypothesis *y) {
    const rows out = rows_of(ex, op->out[ATT_CACHED_O]);
    for (int32_t first = 0; first < y->length; first += BLOCK) {
        const int32_t n = y->length - first < BLOCK ? y->length - first : BLOCK;
        block_scores(ex, op, y, first, n);
        for (int32_t head = y->begin; head < y->end; head++) exponentials(y, head, n, first == 0);
        block_values(ex, op, y, first, n);
    }
    for (int32_t head = y->begin; head < y->end; head++) {
        const float norm = 1 / y->sum[head], *o = y->o + head * y->width;
        real *to = out.data + y->row * out.ld + head * y->width;
#pragma omp simd
        for (int32_t c = 0; c < y->width; c++) to[c] = to_real(o[c] * norm);
    }
}

FTH_SCRATCH(attention_cached) {
    (void)capacity;
    return threads_scratch_bytes(
        dev, own_floats(op->u.attention.heads, g->value[op->in[ATT_CACHED_Q]].width));
}

FTH_PART(attention_cached) {
    const fth_tensor *t = fth_arg(ex, op->in[ATT_CACHED_Q]);
    const int32_t heads = op->u.attention.heads;
    const int64_t n_rows = fth_rows_now(ex, t);
    hypothesis y = {.width = t->width / heads,
                    .s = thread_scratch(ex, team->thread, own_floats(heads, t->width))};
    y.o = y.s + heads * BLOCK;
    y.highest = y.o + t->width;
    y.sum = y.highest + heads;
    write_cache(ex, op->in[ATT_CACHED_K], op->in[ATT_CACHED_KCACHE], team);
    write_cache(ex, op->in[ATT_CACHED_V], op->in[ATT_CACHED_VCACHE], team);
    fth_team_wait(team);
    const fth_cpu_share mine =
        fth_team_share(team, n_rows * heads, 1); /* heads of rows, in order */
    for (; y.row < n_rows && y.row * heads < mine.end; y.pair += y.length, y.row++) {
        const int64_t at = y.row * heads, begin = mine.begin - at, end = mine.end - at;
        y.history = ex->batch.history + y.row * ex->batch.history_pitch;
        y.length = ex->batch.length[y.row];
        y.begin = begin > 0 ? (int32_t)(begin < heads ? begin : heads) : 0;
        y.end = end < heads ? (int32_t)end : heads;
        if (y.begin < y.end) attend(ex, op, &y);
    }
}
