/* attention.c: o = D(softmax((q k^T scale + carried) / divisor + mask)) v by sentence and head. Blocks
 * of query rows against all keys of their sentence: 4 L^2 d operations per sentence, scores of one
 * block only. Bound by multiply-add and exp; a small part of a model unless sentences are long. */
#include "backend/cpu/kernel/attention.h"

/* A thread's buffers for sentences up to a number of keys. */
typedef struct buffers {
    float *q;      /* [Q_BLOCK, width] where rows have to be copied */
    float *k;      /* [keys, width] */
    float *kt;     /* [width, keys] */
    float *v;      /* [keys, width] */
    float *s;      /* [Q_BLOCK, keys] scores, then probabilities */
    float *o;      /* [Q_BLOCK, width] */
    float *factor; /* [keys] */
} buffers;

/* Cuts the buffers out of base; returns how many floats they take. */
static int64_t cut(buffers *b, float *base, int64_t keys, int64_t width) {
    const int64_t size[] = {Q_BLOCK * width, keys * width,    keys * width, keys * width,
                            Q_BLOCK * keys,  Q_BLOCK * width, keys};
    float **const place[] = {&b->q, &b->k, &b->kt, &b->v, &b->s, &b->o, &b->factor};
    int64_t used = 0;
    for (int i = 0; i < 7; i++) {
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

/* Carried scores: s becomes scale s + those of the layer below, which is kept for the layer above;
 * keys that causality hides get 0. */
static void carry_scores(const fth_exec *ex, const fth_op *op, const task *t, int64_t query,
                         int64_t seen, float *s) {
    const fth_tensor *prev = fth_arg(ex, op->in[ATT_PREV]);
    const fth_tensor *scores = fth_arg(ex, op->out[ATT_SCORES]);
    const int64_t pair = t->pair + query * t->k_len;
    for (int64_t j = 0; j < seen; j++) {
        s[j] *= op->u.attention.scale;
        if (prev) s[j] += element(prev, pair + j, t->head);
    }
    if (!scores || !scores->data) return;
    for (int64_t j = 0; j < t->k_len; j++)
        set_element(scores, pair + j, t->head, j < seen ? s[j] : 0.0f);
}

/* Makes exponentials of a row of scores times `by`, 0 for the keys from seen to n, n whole vectors;
 * returns the log of their sum and puts the factor that makes them probabilities into *norm. */
static float softmax_row(float *restrict_ s, int64_t seen, int64_t n, float by, float *norm) {
    for (int64_t j = seen; j < n; j++) s[j] = -INFINITY;
    vf most = v_mul(v_load(s), v_set(by)), sum = v_zero();
    for (int64_t j = 0; j < n; j += VW) most = v_max(most, v_mul(v_load(s + j), v_set(by)));
    const float highest = v_largest(most);
    for (int64_t j = 0; j < n; j += VW) {
        const vf e = v_exp(v_fma(v_load(s + j), v_set(by), v_set(-highest)));
        v_store(s + j, e);
        sum = v_add(sum, e);
    }
    const float total = v_sum(sum);
    *norm = 1 / total;
    return highest + fast_log(total);
}

/* Queries of a sentence that are too few to turn its keys for: a step of generation has one for each
 * hypothesis. Where a backward follows keys are turned all the same, so that it makes the very scores
 * again whose log-sum is kept here: rounded otherwise, large ones would not cancel. */
enum { FEW_QUERIES = 4 };

/* What a block of query rows is multiplied with. */
typedef struct memory {
    view k, v;       /* [keys, width] */
    const float *kt; /* [width, keys]; NULL: the queries are few */
    int64_t ld;      /* floats from row to row of kt and of the scores */
} memory;

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

/* Query rows [first, first + n) of a task. */
static void query_block(const fth_exec *ex, const fth_op *op, const task *t, const buffers *b,
                        const memory *m, int64_t first, int64_t n) {
    const rows o = rows_of(ex, op->out[ATT_O]);
    const full_rows lse = full_of(ex, op->out[ATT_LSE]);
    const int32_t width = fth_arg(ex, op->in[ATT_Q])->width / op->u.attention.heads;
    const bool causal = op->u.attention.causal, drops = op->u.attention.drop.p > 0;
    const bool carries = op->in[ATT_PREV] || op->out[ATT_SCORES];
    const int64_t keys = causal ? first + n : t->k_len; /* that any row of the block sees */
    const float by = (carries ? 1 : op->u.attention.scale) / op->u.attention.divisor;
    const view q = head_view(rows_of(ex, op->in[ATT_Q]), t->q + first, n, t->head, width, b->q);
    if (m->kt)
        small_product(n, v_round(keys),
                      &(small){.k = width, .a = q, .b = {m->kt, m->ld}, .c = b->s, .ldc = m->ld});
    else
        dot_scores(q, n, m->k, keys, v_round(width), b->s, m->ld);
    float norm[Q_BLOCK];
    for (int64_t i = 0; i < n; i++) {
        float *s = b->s + i * m->ld;
        const int64_t seen = causal ? first + i + 1 : t->k_len, whole = v_round(keys);
        if (carries) carry_scores(ex, op, t, first + i, seen, s);
        const float log_sum = softmax_row(s, seen, whole, by, &norm[i]);
        if (lse.data) lse.data[(t->q + first + i) * lse.ld + t->head] = log_sum;
        if (!drops) continue;
        attention_drop(ex, op, t, first + i, seen, whole, b->factor);
        for (int64_t j = 0; j < whole; j += VW)
            v_store(s + j, v_mul(v_load(s + j), v_load(b->factor + j)));
    }
    const int64_t ld = v_round(width);
    small_product(n, ld, &(small){.k = keys, .a = {b->s, m->ld}, .b = m->v, .c = b->o, .ldc = ld});
    for (int64_t i = 0; i < n; i++)
        store_head(o, t->q + first + i, 1, t->head, width, b->o + i * ld, norm[i]);
}

FTH_PART(attention) {
    const int32_t d = fth_arg(ex, op->in[ATT_Q])->width, heads = op->u.attention.heads;
    const rows k = rows_of(ex, op->in[ATT_K]), v = rows_of(ex, op->in[ATT_V]);
    const int32_t width = d / heads;
    const int64_t ld = v_round(width), most = longest(ex->capacity, op->u.attention.k_side);
    const bool trains = op->out[ATT_LSE] != 0;
    buffers b;
    cut(&b, thread_scratch(ex, team->thread, thread_floats(most, d, heads)), most, ld);
    task_walk walk = walk_tasks(ex, op, team);
    for (task t; next_task(&walk, &t);) {
        if (t.q_len == 0 || t.k_len == 0) continue;
        const memory m = {.k = head_view(k, t.k, t.k_len, t.head, width, b.k),
                          .v = head_view(v, t.k, t.k_len, t.head, width, b.v),
                          .kt = t.q_len > FEW_QUERIES || trains ? b.kt : NULL,
                          .ld = v_round(t.k_len)};
        if (m.kt) transpose(b.kt, m.ld, m.k, t.k_len, ld);
        for (int64_t i = 0; i < t.q_len; i += Q_BLOCK)
            query_block(ex, op, &t, &b, &m, i, t.q_len - i < Q_BLOCK ? t.q_len - i : Q_BLOCK);
    }
}
