/* attention_bwd.c: dq, dk, dv of attention. Per block of query rows the probabilities are made again
 * from the stored log-sum; five products instead of the forward's two. A thread owns a sentence and
 * head, so its sums over queries never meet another's. */
#include "backend/cpu/kernel/attention.h"

/* A thread's buffers for sentences up to a number of keys. */
typedef struct buffers {
    float *q, *dout, *dq;   /* [Q_BLOCK, width]; q, dout, k, v where rows have to be copied */
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

/* Where the query rows at hand are, and the rows of the sentence that they meet. */
typedef struct block {
    int64_t first, n; /* query rows */
    int64_t keys, ld; /* keys that any of them sees; floats from row to row of p and ds */
    view k;           /* [keys, width] */
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

/* p: scores in, D(P) out; ds: gradients of D(P) in, of the scores out; all of n, whole vectors,
 * scores that are not seen are -inf. factor: dropout's, or NULL. The sum of P dP is taken from these
 * very numbers rather than from dO O, so that it cancels where it must, whatever the precision of O. */
static void softmax_bwd_row(float *restrict_ p, float *restrict_ ds, const float *restrict_ factor,
                            int64_t n, float by, float log_sum, float divisor) {
    vf sum = v_zero();
    for (int64_t j = 0; j < n; j += VW) {
        const vf e = v_exp(v_fma(v_load(p + j), v_set(by), v_set(-log_sum)));
        vf g = v_load(ds + j);
        if (factor) g = v_mul(g, v_load(factor + j));
        v_store(p + j, e);
        v_store(ds + j, g);
        sum = v_fma(e, g, sum);
    }
    const vf common = v_set(v_sum(sum)), less = v_set(1 / divisor);
    for (int64_t j = 0; j < n; j += VW) {
        const vf e = v_load(p + j);
        v_store(ds + j, v_mul(v_mul(e, less), v_add(v_load(ds + j), -common)));
        if (factor) v_store(p + j, v_mul(e, v_load(factor + j)));
    }
}

/* One row: p gets D(P), ds the gradient of the scores; both are 0 for keys it does not see. */
static void score_row(const fth_exec *ex, const fth_op *op, const task *t, const block *w,
                      const buffers *b, int64_t i) {
    const int64_t row = t->q + w->first + i, whole = v_round(w->keys);
    const int64_t seen = op->u.attention.causal ? w->first + i + 1 : t->k_len;
    const full_rows lse = full_of(ex, op->in[ATT_BWD_LSE]);
    const fth_tensor *scores = fth_arg(ex, op->in[ATT_BWD_SCORES]);
    const bool drops = op->u.attention.drop.p > 0;
    const float scale = scores ? 1 : op->u.attention.scale, divisor = op->u.attention.divisor;
    float *p = b->p + i * w->ld, *ds = b->ds + i * w->ld;
    if (scores) {
        const int64_t pair = t->pair + (w->first + i) * t->k_len;
        for (int64_t j = 0; j < seen; j++) p[j] = element(scores, pair + j, t->head);
    }
    for (int64_t j = seen; j < whole; j++) p[j] = -INFINITY;
    if (drops) attention_drop(ex, op, t, w->first + i, seen, whole, b->factor);
    softmax_bwd_row(p, ds, drops ? b->factor : NULL, whole, scale / divisor,
                    lse.data[row * lse.ld + t->head], divisor);
    carry_gradients(ex, op, t, w->first + i, seen, ds);
}

static void query_block(const fth_exec *ex, const fth_op *op, const task *t, const buffers *b,
                        const block *w) {
    const rows dq = rows_of(ex, op->out[ATT_BWD_DQ]);
    const int32_t width = fth_arg(ex, op->in[ATT_BWD_Q])->width / op->u.attention.heads;
    const int64_t ld = v_round(width), columns = v_round(w->keys), row = t->q + w->first;
    const view q = head_view(rows_of(ex, op->in[ATT_BWD_Q]), row, w->n, t->head, width, b->q);
    const view g = head_view(rows_of(ex, op->in[ATT_BWD_DO]), row, w->n, t->head, width, b->dout);
    if (!op->in[ATT_BWD_SCORES])
        small_product(w->n, columns,
                      &(small){.k = width, .a = q, .b = {b->kt, w->ld}, .c = b->p, .ldc = w->ld});
    small_product(w->n, columns,
                  &(small){.k = width, .a = g, .b = {b->vt, w->ld}, .c = b->ds, .ldc = w->ld});
    for (int64_t i = 0; i < w->n; i++) score_row(ex, op, t, w, b, i);
    small_product(w->n, ld,
                  &(small){.k = w->keys, .a = {b->ds, w->ld}, .b = w->k, .c = b->dq, .ldc = ld});
    /* the sums of dk and dv begin where the first block of queries has written */
    small s = {.k = w->n, .by_column = true, .ldc = ld, .add = w->first > 0};
    s.a = (view){b->ds, w->ld}, s.b = q, s.c = b->dk;
    small_product(w->keys, ld, &s);
    s.a = (view){b->p, w->ld}, s.b = g, s.c = b->dv;
    small_product(w->keys, ld, &s);
    if (dq.data) store_head(dq, row, w->n, t->head, width, b->dq, op->u.attention.scale);
}

FTH_PART(attention_bwd) {
    const int32_t d = fth_arg(ex, op->in[ATT_BWD_Q])->width, heads = op->u.attention.heads;
    const rows k = rows_of(ex, op->in[ATT_BWD_K]), v = rows_of(ex, op->in[ATT_BWD_V]);
    const rows dk = rows_of(ex, op->out[ATT_BWD_DK]), dv = rows_of(ex, op->out[ATT_BWD_DV]);
    const int32_t width = d / heads;
    const int64_t ld = v_round(width), most = longest(ex->capacity, op->u.attention.k_side);
    const bool causal = op->u.attention.causal;
    buffers b;
    cut(&b, thread_scratch(ex, team->thread, thread_floats(most, d, heads)), most, ld);
    task_walk walk = walk_tasks(ex, op, team);
    for (task t; next_task(&walk, &t);) {
        block w = {.ld = v_round(t.k_len)};
        w.k = head_view(k, t.k, t.k_len, t.head, width, b.k);
        transpose(b.kt, w.ld, w.k, t.k_len, ld);
        transpose(b.vt, w.ld, head_view(v, t.k, t.k_len, t.head, width, b.v), t.k_len, ld);
        if (causal || t.q_len == 0) { /* not every block of queries writes every key */
            memset(b.dk, 0, sizeof(float) * (size_t)(t.k_len * ld));
            memset(b.dv, 0, sizeof(float) * (size_t)(t.k_len * ld));
        }
        for (w.first = 0; w.first < t.q_len; w.first += Q_BLOCK) {
            w.n = t.q_len - w.first < Q_BLOCK ? t.q_len - w.first : Q_BLOCK;
            w.keys = causal ? w.first + w.n : t.k_len;
            query_block(ex, op, &t, &b, &w);
        }
        if (dk.data) store_head(dk, t.k, t.k_len, t.head, width, b.dk, op->u.attention.scale);
        if (dv.data) store_head(dv, t.k, t.k_len, t.head, width, b.dv, 1);
    }
}
