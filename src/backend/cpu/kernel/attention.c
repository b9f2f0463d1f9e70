/* attention.c: o = D(softmax((q k^T scale + carried) / divisor + mask)) v by sentence and head. Blocks
 * of query rows against all keys of their sentence: 4 L^2 d operations per sentence, scores of one
 * block only. Bound by multiply-add and exp; a small part of a model unless sentences are long. */
#include "backend/cpu/kernel/attention.h"

/* A thread's buffers for sentences up to a number of keys. */
typedef struct buffers {
    float *q;      /* [Q_BLOCK, width] */
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

/* Carried scores: adds those of the layer below and keeps the sum for the layer above; keys that
 * causality hides get 0. */
static void carry_scores(const fth_exec *ex, const fth_op *op, const task *t, int64_t query,
                         int64_t seen, float *s) {
    const fth_tensor *prev = fth_arg(ex, op->in[ATT_PREV]);
    const fth_tensor *scores = fth_arg(ex, op->out[ATT_SCORES]);
    const int64_t pair = t->pair + query * t->k_len;
    for (int64_t j = 0; prev && j < seen; j++) s[j] += element(prev, pair + j, t->head);
    if (!scores || !scores->data) return;
    for (int64_t j = 0; j < t->k_len; j++)
        set_element(scores, pair + j, t->head, j < seen ? s[j] : 0.0f);
}

/* Makes exponentials of a row of scores, 0 for the keys from seen to n; returns the log of their sum
 * and puts the factor that makes them probabilities into *norm. */
static float softmax_row(float *restrict_ s, int64_t seen, int64_t n, float by, float *norm) {
    float highest = -INFINITY, sum = 0;
#pragma omp simd reduction(max : highest)
    for (int64_t j = 0; j < seen; j++) highest = s[j] > highest ? s[j] : highest;
    const float shift = highest * by;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < seen; j++) {
        const float e = fast_exp(s[j] * by - shift);
        s[j] = e;
        sum += e;
    }
    for (int64_t j = seen; j < n; j++) s[j] = 0;
    *norm = 1 / sum;
    return shift + logf(sum);
}

/* Query rows [first, first + n) of a task. */
static void query_block(const fth_exec *ex, const fth_op *op, const task *t, const buffers *b,
                        int64_t first, int64_t n) {
    const rows q = rows_of(ex, op->in[ATT_Q]), o = rows_of(ex, op->out[ATT_O]);
    const full_rows lse = full_of(ex, op->out[ATT_LSE]);
    const int32_t width = fth_arg(ex, op->in[ATT_Q])->width / op->u.attention.heads;
    const int64_t ld = v_round(width), keys_ld = v_round(t->k_len);
    const bool causal = op->u.attention.causal, drops = op->u.attention.drop.p > 0;
    const int64_t keys = causal ? first + n : t->k_len; /* that any row of the block sees */
    float norm[Q_BLOCK];
    copy_head(b->q, ld, q, t->q + first, n, t->head, width, op->u.attention.scale);
    small_product(n, v_round(keys), width, (strided){b->q, ld, 1}, b->kt, keys_ld, b->s, keys_ld,
                  false);
    for (int64_t i = 0; i < n; i++) {
        float *s = b->s + i * keys_ld;
        const int64_t seen = causal ? first + i + 1 : t->k_len;
        carry_scores(ex, op, t, first + i, seen, s);
        const float log_sum = softmax_row(s, seen, keys, 1 / op->u.attention.divisor, &norm[i]);
        if (lse.data) lse.data[(t->q + first + i) * lse.ld + t->head] = log_sum;
        if (!drops) continue;
        attention_drop(ex, op, t, first + i, seen, b->factor);
#pragma omp simd
        for (int64_t j = 0; j < seen; j++) s[j] *= b->factor[j];
    }
    small_product(n, ld, keys, (strided){b->s, keys_ld, 1}, b->v, ld, b->o, ld, false);
    for (int64_t i = 0; i < n; i++)
        store_head(o, t->q + first + i, 1, t->head, width, b->o + i * ld, ld, norm[i]);
}

FTH_PART(attention) {
    const int32_t d = fth_arg(ex, op->in[ATT_Q])->width, heads = op->u.attention.heads;
    const rows k = rows_of(ex, op->in[ATT_K]), v = rows_of(ex, op->in[ATT_V]);
    const int32_t width = d / heads;
    const int64_t ld = v_round(width), most = longest(ex->capacity, op->u.attention.k_side);
    buffers b;
    cut(&b, thread_scratch(ex, team->thread, thread_floats(most, d, heads)), most, ld);
    task_walk walk = walk_tasks(ex, op, team);
    for (task t; next_task(&walk, &t);) {
        if (t.q_len == 0 || t.k_len == 0) continue;
        copy_head(b.k, ld, k, t.k, t.k_len, t.head, width, 1);
        copy_head(b.v, ld, v, t.k, t.k_len, t.head, width, 1);
        transpose(b.kt, v_round(t.k_len), b.k, ld, t.k_len, ld);
        for (int64_t i = 0; i < t.q_len; i += Q_BLOCK)
            query_block(ex, op, &t, &b, i, t.q_len - i < Q_BLOCK ? t.q_len - i : Q_BLOCK);
    }
}
