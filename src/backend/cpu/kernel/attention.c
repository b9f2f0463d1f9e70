/* attention.c: o = D(softmax((q k^T scale + carried) / divisor + mask)) v by sentence and head.
 * Blocks of query rows against all keys of their sentence: 4 L^2 d operations per sentence, scores
 * of one block only, a lane for each query. Bound by multiply-add and exp; a small part of a model
 * unless sentences are long. */
#include "backend/cpu/kernel/attention.h"

/* A thread's buffers for sentences up to a number of keys. */
typedef struct buffers {
    float *q;              /* [Q_BLOCK, width] where rows have to be copied */
    float *qt;             /* [width, Q_BLOCK] */
    float *k, *v;          /* [keys, width] */
    float *s;              /* [keys, Q_BLOCK] scores, then probabilities; few queries: [n, keys] */
    float *o;              /* [Q_BLOCK, width] */
    float *drawn, *factor; /* dropout's factors: [Q_BLOCK, keys], also for pairs; [keys, Q_BLOCK] */
} buffers;

/* Cuts the buffers out of base; returns how many floats they take. */
static int64_t cut(buffers *b, float *base, int64_t keys, int64_t width) {
    const int64_t size[] = {Q_BLOCK * width, Q_BLOCK * width, keys * width,   keys * width,
                            Q_BLOCK * keys,  Q_BLOCK * width, Q_BLOCK * keys, Q_BLOCK * keys};
    float **const place[] = {&b->q, &b->qt, &b->k, &b->v, &b->s, &b->o, &b->drawn, &b->factor};
    int64_t used = 0;
    for (int i = 0; i < 8; i++) {
        *place[i] = base ? base + used : NULL;
        used += whole_lines(size[i]);
    }
    return used;
}

static int64_t thread_floats(int64_t keys, int32_t width, int32_t heads) {
    buffers b;
    return cut(&b, NULL, keys, v_round(width / heads));
}

FTH_SCRATCH(attention) {
    const int64_t keys = longest(capacity, op->u.attention.k_side);
    const int32_t width = g->value[op->in[ATT_Q]].width;
    return threads_scratch_bytes(dev, thread_floats(keys, width, op->u.attention.heads));
}

/* Carried scores of one query, `step` floats from key to key: s becomes scale s + those of the
 * layer below, which is kept for the layer above; keys that causality hides get 0. */
static void carry_scores(const fth_exec *ex, const fth_op *op, const task *t, int64_t query,
                         float *s, int64_t step) {
    const fth_tensor *prev = fth_arg(ex, op->in[ATT_PREV]);
    const fth_tensor *scores = fth_arg(ex, op->out[ATT_SCORES]);
    const int64_t pair = t->pair + query * t->k_len;
    const int64_t seen = op->u.attention.causal ? query + 1 : t->k_len;
    for (int64_t j = 0; j < seen; j++) {
        s[j * step] *= op->u.attention.scale;
        if (prev) s[j * step] += element(prev, pair + j, t->head);
    }
    if (!scores || !scores->data) return;
    for (int64_t j = 0; j < t->k_len; j++)
        set_element(scores, pair + j, t->head, j < seen ? s[j * step] : 0.0f);
}

/* What every score is multiplied with before its exponential; carried ones have been scaled. */
static float score_factor(const fth_op *op) {
    const bool carries = op->in[ATT_PREV] || op->out[ATT_SCORES];
    return (carries ? 1 : op->u.attention.scale) / op->u.attention.divisor;
}

/* ---- many queries: a lane for each ---- */

/* Makes exponentials of the columns of s [keys][Q_BLOCK] times `by`; norm [Q_BLOCK] gets what makes
 * them probabilities, log_sum [Q_BLOCK] the log of their sum. */
static void softmax_columns(float *restrict_ s, const block *w, float by, float *norm,
                            float *log_sum) {
    for (int64_t c = 0; c < w->n; c += VW) {
        const vf most = largest_of_column(s + c, w->keys);
        vf sum = v_zero();
        for (float *at = s + c, *end = at + w->keys * Q_BLOCK; at < end; at += Q_BLOCK) {
            const vf e = exp_below(v_load(at), most, by);
            v_store(at, e);
            sum = v_add(sum, e);
        }
        v_store(norm + c, sum);
        v_store(log_sum + c, v_mul(most, v_set(by)));
    }
#pragma omp simd
    for (int64_t i = 0; i < w->n; i++) {
        log_sum[i] += fast_log(norm[i]);
        norm[i] = 1 / norm[i];
    }
}

/* Queries without a key to look at. */
static void store_nothing(const fth_exec *ex, const fth_op *op, const task *t) {
    const rows o = rows_of(ex, op->out[ATT_O]);
    const full_rows lse = full_of(ex, op->out[ATT_LSE]);
    clear_head(o, t->q, t->q_len, t->head,
               fth_arg(ex, op->in[ATT_Q])->width / op->u.attention.heads);
    for (int64_t i = 0; lse.data && i < t->q_len; i++)
        lse.data[(t->q + i) * lse.ld + t->head] = -INFINITY;
}

/* A block of query rows with the keys and values of its sentence, as a unit takes them. */
static void query_block(const fth_exec *ex, const fth_op *op, const task *t, const buffers *b,
                        const block *w, const fth_cpu_pairs_path *unit, view k, view v) {
    const rows o = rows_of(ex, op->out[ATT_O]);
    const full_rows lse = full_of(ex, op->out[ATT_LSE]);
    const int32_t width = fth_arg(ex, op->in[ATT_Q])->width / op->u.attention.heads;
    const int64_t row = t->q + w->first, ld = v_round(width);
    const head_rows queries = rows_of_head(rows_of(ex, op->in[ATT_Q]), row, w->n, t->head, width);
    float norm[Q_BLOCK], log_sum[Q_BLOCK];
    score_columns(unit, w, k, along_rows(unit, &queries, b->q), width, b->qt, b->s);
    if (op->in[ATT_PREV] || op->out[ATT_SCORES])
        for (int64_t i = 0; i < w->n; i++) carry_scores(ex, op, t, w->first + i, b->s + i, Q_BLOCK);
    if (op->u.attention.causal) hide_later_keys(w, b->s);
    softmax_columns(b->s, w, score_factor(op), norm, log_sum);
    for (int64_t i = 0; lse.data && i < w->n; i++)
        lse.data[(row + i) * lse.ld + t->head] = log_sum[i];
    if (op->u.attention.drop.p > 0) {
        drop_columns(ex, op, t, w, b->drawn, b->factor);
        for (int64_t j = 0; j < w->keys * Q_BLOCK; j += VW)
            v_store(b->s + j, v_mul(v_load(b->s + j), v_load(b->factor + j)));
    }
    small_product(w->n, ld,
                  &(small){.k = steps_of(unit, w->keys),
                           .a = sum_keys(unit, w, b->s, b->drawn),
                           .by_column = !fth_cpu_pairs_on_tiles(unit),
                           .b = v,
                           .c = b->o,
                           .ldc = ld,
                           .unit = unit});
    store_head(o, row, w->n, t->head, width, b->o, 1, norm);
}

/* ---- few queries ---- */

/* Queries of a sentence that are too few for lanes of their own: a step of generation has one for
 * each hypothesis. Where a backward follows, scores are by columns all the same, as it makes them,
 * so that both have the same probabilities. */
enum { FEW_QUERIES = 4 };

/* Makes exponentials of a row of scores times `by`, 0 for the keys from seen to n, n whole vectors;
 * returns the factor that makes them probabilities. */
static float softmax_row(float *restrict_ s, int64_t seen, int64_t n, float by) {
    for (int64_t j = seen; j < n; j++) s[j] = -INFINITY;
    vf most = v_load(s), sum = v_zero();
    for (int64_t j = 0; j < n; j += VW) most = v_max(most, v_load(s + j));
    most = v_set(v_largest(most));
    for (int64_t j = 0; j < n; j += VW) {
        const vf e = exp_below(v_load(s + j), most, by);
        v_store(s + j, e);
        sum = v_add(sum, e);
    }
    return 1 / v_sum(sum);
}

/* s[n][ld] = q k^T as dots of rows, width in whole vectors. The places from keys to the next whole
 * vector get numbers too, of rows that are there. */
static void dot_scores(view q, int64_t n, view k, int64_t keys, int64_t width, float *s,
                       int64_t ld) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < v_round(keys); j += 4) {
            const float *a = q.data + i * q.ld, *b[4];
            vf acc[4];
            for (int r = 0; r < 4; r++) {
                b[r] = k.data + (j + r < keys ? j + r : keys - 1) * k.ld;
                acc[r] = v_zero();
            }
            for (int64_t c = 0; c < width; c += VW)
#pragma GCC unroll 4
                for (int r = 0; r < 4; r++) acc[r] = v_fma(v_load(a + c), v_load(b[r] + c), acc[r]);
            v_sums4(acc, s + i * ld + j);
        }
}

/* All queries of a task that has few. */
static void few_queries(const fth_exec *ex, const fth_op *op, const task *t, const buffers *b,
                        view k, view v) {
    const rows o = rows_of(ex, op->out[ATT_O]);
    const int32_t width = fth_arg(ex, op->in[ATT_Q])->width / op->u.attention.heads;
    const int64_t whole = v_round(t->k_len), n = t->q_len, ld = v_round(width);
    const head_rows queries = rows_of_head(rows_of(ex, op->in[ATT_Q]), t->q, n, t->head, width);
    const view q = head_view(&queries, b->q);
    float norm[FEW_QUERIES];
    dot_scores(q, n, k, t->k_len, ld, b->s, whole);
    for (int64_t i = 0; i < n; i++) {
        float *s = b->s + i * whole;
        const int64_t seen = op->u.attention.causal ? i + 1 : t->k_len;
        if (op->in[ATT_PREV] || op->out[ATT_SCORES]) carry_scores(ex, op, t, i, s, 1);
        norm[i] = softmax_row(s, seen, whole, score_factor(op));
        if (op->u.attention.drop.p <= 0) continue;
        attention_drop(ex, op, t, i, seen, whole, b->drawn);
        for (int64_t j = 0; j < whole; j += VW)
            v_store(s + j, v_mul(v_load(s + j), v_load(b->drawn + j)));
    }
    small_product(n, ld, &(small){.k = t->k_len, .a = {b->s, whole}, .b = v, .c = b->o, .ldc = ld});
    store_head(o, t->q, n, t->head, width, b->o, 1, norm);
}

FTH_PART(attention) {
    const int32_t d = fth_arg(ex, op->in[ATT_Q])->width, heads = op->u.attention.heads;
    const rows keys = rows_of(ex, op->in[ATT_K]), values = rows_of(ex, op->in[ATT_V]);
    const rows factors[] = {rows_of(ex, op->in[ATT_Q]), keys, values};
    const int32_t width = d / heads;
    const int64_t most = longest(ex->capacity, op->u.attention.k_side);
    const bool trains = op->out[ATT_LSE] != 0, causal = op->u.attention.causal;
    const fth_cpu_pairs_path *best = head_unit(ex, width, factors, 3);
    buffers b;
    cut(&b, thread_scratch(ex, team->thread, thread_floats(most, d, heads)), most, v_round(width));
    if (fth_cpu_pairs_on_tiles(best)) best->tiles.begin();
    task_walk walk = walk_tasks(ex, op, team);
    for (task t; next_task(&walk, &t);) {
        if (t.k_len == 0) store_nothing(ex, op, &t);
        if (t.q_len == 0 || t.k_len == 0) continue;
        const bool few = t.q_len <= FEW_QUERIES && !trains;
        const fth_cpu_pairs_path *unit = few ? NULL : best;
        const head_rows k_rows = rows_of_head(keys, t.k, t.k_len, t.head, width);
        const head_rows v_rows = rows_of_head(values, t.k, t.k_len, t.head, width);
        const view k = whole_rows(unit, &k_rows, b.k);
        const view v = across_rows(unit, &v_rows, along_rows(unit, &v_rows, b.v), b.v);
        if (few) {
            few_queries(ex, op, &t, &b, k, v);
            continue;
        }
        for (block w = {0}; w.first < t.q_len; w.first += w.n) {
            w.n = block_size(w.first, t.q_len, causal);
            w.keys = causal ? w.first + w.n : t.k_len;
            query_block(ex, op, &t, &b, &w, unit, k, v);
        }
    }
    if (fth_cpu_pairs_on_tiles(best)) best->tiles.end();
}
