/* attention_bwd.c: dq, dk, dv of attention. Per block of query rows the probabilities are made again
 * from the stored log-sum; five products instead of the forward's two. A thread owns a sentence and
 * head, so its sums over queries never meet another's. */
#include "backend/cpu/kernel/attention.h"

/* A thread's buffers for sentences up to a number of keys. */
typedef struct buffers {
    float *q, *dout, *dq;   /* [Q_BLOCK, width] */
    float *k, *v, *dk, *dv; /* [keys, width] */
    float *kt, *vt;         /* [width, keys] */
    float *p, *ds;          /* [Q_BLOCK, keys]: D(P); dP, then the gradient of the scores */
    float *factor;          /* [keys] */
} buffers;

/* Cuts the buffers out of base; returns how many floats they take. */
static int64_t cut(buffers *b, float *base, int64_t keys, int64_t width) {
    float **const by_query[] = {&b->q, &b->dout, &b->dq};
    float **const by_key[] = {&b->k, &b->v, &b->dk, &b->dv, &b->kt, &b->vt};
    float **const by_pair[] = {&b->p, &b->ds};
    int64_t used = 0;
#define CUT(list, floats)                                                                          \
    for (size_t i = 0; i < sizeof list / sizeof *list; i++, used += whole_lines(floats))           \
    *list[i] = base ? base + used : NULL
    CUT(by_query, Q_BLOCK * width);
    CUT(by_key, keys * width);
    CUT(by_pair, Q_BLOCK * keys);
#undef CUT
    b->factor = base ? base + used : NULL;
    return used + whole_lines(keys);
}

static int64_t thread_floats(int64_t keys, int32_t width, int32_t heads) {
    buffers b;
    return cut(&b, NULL, keys, v_round(width / heads));
}

FTH_SCRATCH(attention_bwd) {
    const int64_t keys = longest(capacity, op->u.attention.k_side);
    const int32_t width = g->value[op->in[ATT_BWD_Q]].width;
    return threads_scratch_bytes(dev, thread_floats(keys, width, op->u.attention.heads));
}

/* Where the query rows at hand are. */
typedef struct block {
    int64_t first, n;      /* rows of the sentence */
    int64_t keys, keys_ld; /* keys that any of them sees; floats from row to row of p and ds */
} block;

/* Carried scores: the gradient of the layer above is added, the sum goes to the layer below; keys
 * that causality hides have none. */
static void carry_gradients(const fth_exec *ex, const fth_op *op, const task *t, int64_t query,
                            int64_t seen, float *ds) {
    const fth_tensor *above = fth_arg(ex, op->in[ATT_BWD_DSCORES]);
    const fth_tensor *below = fth_arg(ex, op->out[ATT_BWD_DPREV]);
    const int64_t pair = t->pair + query * t->k_len;
    for (int64_t j = 0; above && j < seen; j++) ds[j] += element(above, pair + j, t->head);
    if (!below || !below->data) return;
    for (int64_t j = 0; j < t->k_len; j++)
        set_element(below, pair + j, t->head, j < seen ? ds[j] : 0.0f);
}

/* p: scores in, probabilities out; ds: gradients of D(P) in, of the scores out. factor: dropout's, or
 * NULL. The sum of P dP is taken from these very numbers rather than from dO O, so that it cancels
 * where it must, whatever the precision of O. */
static void softmax_bwd_row(float *restrict_ p, float *restrict_ ds, const float *restrict_ factor,
                            int64_t n, float log_sum, float by) {
    float common = 0;
    if (factor) {
#pragma omp simd
        for (int64_t j = 0; j < n; j++) ds[j] *= factor[j];
    }
#pragma omp simd reduction(+ : common)
    for (int64_t j = 0; j < n; j++) {
        const float e = fast_exp(p[j] * by - log_sum);
        p[j] = e;
        common += e * ds[j];
    }
#pragma omp simd
    for (int64_t j = 0; j < n; j++) ds[j] = p[j] * (ds[j] - common) * by;
    if (factor) {
#pragma omp simd
        for (int64_t j = 0; j < n; j++) p[j] *= factor[j];
    }
}

/* One row: p gets D(P), ds the gradient of the scores; both are 0 for keys it does not see. */
static void score_row(const fth_exec *ex, const fth_op *op, const task *t, const block *w,
                      const buffers *b, int64_t i) {
    const int64_t row = t->q + w->first + i;
    const int64_t seen = op->u.attention.causal ? w->first + i + 1 : t->k_len;
    const full_rows lse = full_of(ex, op->in[ATT_BWD_LSE]);
    const fth_tensor *scores = fth_arg(ex, op->in[ATT_BWD_SCORES]);
    const bool drops = op->u.attention.drop.p > 0;
    float *p = b->p + i * w->keys_ld, *ds = b->ds + i * w->keys_ld;
    if (scores) {
        const int64_t pair = t->pair + (w->first + i) * t->k_len;
        for (int64_t j = 0; j < seen; j++) p[j] = element(scores, pair + j, t->head);
    }
    if (drops) attention_drop(ex, op, t, w->first + i, seen, b->factor);
    softmax_bwd_row(p, ds, drops ? b->factor : NULL, seen, lse.data[row * lse.ld + t->head],
                    1 / op->u.attention.divisor);
    for (int64_t j = seen; j < w->keys; j++) p[j] = ds[j] = 0;
    carry_gradients(ex, op, t, w->first + i, seen, ds);
}

static void query_block(const fth_exec *ex, const fth_op *op, const task *t, const buffers *b,
                        const block *w) {
    const rows q = rows_of(ex, op->in[ATT_BWD_Q]), dout = rows_of(ex, op->in[ATT_BWD_DO]);
    const rows dq = rows_of(ex, op->out[ATT_BWD_DQ]);
    const int32_t width = fth_arg(ex, op->in[ATT_BWD_Q])->width / op->u.attention.heads;
    const int64_t ld = v_round(width), pairs = w->keys_ld, columns = v_round(w->keys);
    const float scale = op->u.attention.scale;
    copy_head(b->q, ld, q, t->q + w->first, w->n, t->head, width, scale);
    copy_head(b->dout, ld, dout, t->q + w->first, w->n, t->head, width, 1);
    if (!op->in[ATT_BWD_SCORES])
        small_product(w->n, columns, width, (strided){b->q, ld, 1}, b->kt, pairs, b->p, pairs,
                      false);
    small_product(w->n, columns, width, (strided){b->dout, ld, 1}, b->vt, pairs, b->ds, pairs,
                  false);
    for (int64_t i = 0; i < w->n; i++) score_row(ex, op, t, w, b, i);
    small_product(w->n, ld, w->keys, (strided){b->ds, pairs, 1}, b->k, ld, b->dq, ld, false);
    small_product(w->keys, ld, w->n, (strided){b->ds, 1, pairs}, b->q, ld, b->dk, ld, true);
    small_product(w->keys, ld, w->n, (strided){b->p, 1, pairs}, b->dout, ld, b->dv, ld, true);
    if (dq.data) store_head(dq, t->q + w->first, w->n, t->head, width, b->dq, ld, scale);
}

FTH_PART(attention_bwd) {
    const int32_t d = fth_arg(ex, op->in[ATT_BWD_Q])->width, heads = op->u.attention.heads;
    const rows k = rows_of(ex, op->in[ATT_BWD_K]), v = rows_of(ex, op->in[ATT_BWD_V]);
    const rows dk = rows_of(ex, op->out[ATT_BWD_DK]), dv = rows_of(ex, op->out[ATT_BWD_DV]);
    const int32_t width = d / heads;
    const int64_t ld = v_round(width), most = longest(ex->capacity, op->u.attention.k_side);
    buffers b;
    cut(&b, thread_scratch(ex, team->thread, thread_floats(most, d, heads)), most, ld);
    task_walk walk = walk_tasks(ex, op, team);
    for (task t; next_task(&walk, &t);) {
        const int64_t keys_ld = v_round(t.k_len);
        copy_head(b.k, ld, k, t.k, t.k_len, t.head, width, 1);
        copy_head(b.v, ld, v, t.k, t.k_len, t.head, width, 1);
        transpose(b.kt, keys_ld, b.k, ld, t.k_len, ld);
        transpose(b.vt, keys_ld, b.v, ld, t.k_len, ld);
        memset(b.dk, 0, sizeof(float) * (size_t)(t.k_len * ld));
        memset(b.dv, 0, sizeof(float) * (size_t)(t.k_len * ld));
        for (int64_t i = 0; i < t.q_len; i += Q_BLOCK) {
            const int64_t n = t.q_len - i < Q_BLOCK ? t.q_len - i : Q_BLOCK;
            const int64_t keys = op->u.attention.causal ? i + n : t.k_len;
            query_block(ex, op, &t, &b, &(block){i, n, keys, keys_ld});
        }
        if (dk.data) store_head(dk, t.k, t.k_len, t.head, width, b.dk, ld, 1);
        if (dv.data) store_head(dv, t.k, t.k_len, t.head, width, b.dv, ld, 1);
    }
}
