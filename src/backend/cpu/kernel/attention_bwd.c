/* attention_bwd.c: dq, dk, dv of attention. Per block of query rows the probabilities are made
 * again from scores; five products instead of the forward's two. A thread owns a sentence and head,
 * so its sums over queries never meet another's. */
#include "backend/cpu/kernel/attention.h"

/* A thread's buffers for sentences up to a number of keys. */
typedef struct buffers {
    float *q, *dout, *dq; /* [Q_BLOCK, width]; q, dout, k, v where rows are copied or made pairs */
    float *qt, *dout_t;   /* [width, Q_BLOCK] */
    float *k, *v, *dk, *dv; /* [keys, width] */
    float *p, *ds;          /* [keys, Q_BLOCK]: D(P); dP, then the gradient of the scores */
    float *drawn, *factor; /* dropout's factors: [Q_BLOCK, keys], also for pairs; [keys, Q_BLOCK] */
} buffers;

/* Cuts the buffers out of base; returns how many floats they take. */
static int64_t cut(buffers *b, float *base, int64_t keys, int64_t width) {
    float **const by_query[] = {&b->q, &b->dout, &b->dq, &b->qt, &b->dout_t};
    float **const by_key[] = {&b->k, &b->v, &b->dk, &b->dv};
    float **const by_pair[] = {&b->p, &b->ds, &b->drawn, &b->factor};
    int64_t used = 0;
#define CUT(list, floats)                                                                          \
    for (size_t i = 0; i < sizeof list / sizeof *list; i++, used += whole_lines(floats))           \
    *list[i] = base ? base + used : NULL
    CUT(by_query, Q_BLOCK * width);
    CUT(by_key, keys * width);
    CUT(by_pair, Q_BLOCK * keys);
#undef CUT
    return used;
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

/* Carried scores of one query: the gradient of the layer above is added, the sum goes to the layer
 * below; keys that causality hides have none. ds: Q_BLOCK floats from key to key. */
static void carry_gradients(const fth_exec *ex, const fth_op *op, const task *t, int64_t query,
                            float *ds) {
    const fth_tensor *above = fth_arg(ex, op->in[ATT_BWD_DSCORES]);
    const fth_tensor *below = fth_arg(ex, op->out[ATT_BWD_DPREV]);
    const int64_t pair = t->pair + query * t->k_len;
    const int64_t seen = op->u.attention.causal ? query + 1 : t->k_len;
    for (int64_t j = 0; above && j < seen; j++)
        ds[j * Q_BLOCK] += element(above, pair + j, t->head);
    if (!below || !below->data) return;
    for (int64_t j = 0; j < t->k_len; j++)
        set_element(below, pair + j, t->head, j < seen ? ds[j * Q_BLOCK] : 0.0f);
}

/* p: scores in, D(P) out; ds: gradients of D(P) in, of the scores out; a query for each lane,
 * scores that are not seen are -inf. factor: dropout's, or NULL. The sum of P dP is taken from
 * these very numbers rather than from dO O, and P from their own sum rather than from a stored
 * log-sum, which floats do not hold well where scores are large: so that it cancels where it
 * must. */
static void softmax_bwd_columns(float *restrict_ p, float *restrict_ ds,
                                const float *restrict_ factor, const block *w, float by,
                                float divisor) {
    for (int64_t c = 0; c < w->n; c += VW) {
        const int64_t end = w->keys * Q_BLOCK + c;
        const vf most = largest_of_column(p + c, w->keys);
        vf sum = v_zero(), whole = v_zero();
        for (int64_t j = c; j < end; j += Q_BLOCK) {
            const vf e = exp_below(v_load(p + j), most, by);
            vf g = v_load(ds + j);
            if (factor) g = v_mul(g, v_load(factor + j));
            v_store(p + j, e);
            v_store(ds + j, g);
            sum = v_fma(e, g, sum);
            whole = v_add(whole, e);
        }
        const vf share = v_set(1) / whole, less = v_set(1 / divisor), mean = v_mul(sum, share);
        for (int64_t j = c; j < end; j += Q_BLOCK) {
            const vf e = v_mul(v_load(p + j), share);
            v_store(ds + j, v_mul(v_mul(e, less), v_add(v_load(ds + j), -mean)));
            v_store(p + j, factor ? v_mul(e, v_load(factor + j)) : e);
        }
    }
}

/* p gets D(P), ds the gradient of the scores; both are 0 for keys that a query does not see. */
static void score_block(const fth_exec *ex, const fth_op *op, const task *t, const block *w,
                        const buffers *b) {
    const fth_tensor *scores = fth_arg(ex, op->in[ATT_BWD_SCORES]);
    const bool drops = op->u.attention.drop.p > 0, causal = op->u.attention.causal;
    const float scale = scores ? 1 : op->u.attention.scale, divisor = op->u.attention.divisor;
    if (scores)
        memset(b->p, 0, sizeof(float) * (size_t)(w->keys * Q_BLOCK)); /* lanes without a query */
    for (int64_t i = 0; scores && i < w->n; i++) {
        const int64_t pair = t->pair + (w->first + i) * t->k_len;
        const int64_t seen = causal ? w->first + i + 1 : t->k_len;
        for (int64_t j = 0; j < seen; j++)
            b->p[j * Q_BLOCK + i] = element(scores, pair + j, t->head);
    }
    if (causal) hide_later_keys(w, b->p);
    if (drops) drop_columns(ex, op, t, w, b->drawn, b->factor);
    softmax_bwd_columns(b->p, b->ds, drops ? b->factor : NULL, w, scale / divisor, divisor);
    if (op->in[ATT_BWD_DSCORES] || op->out[ATT_BWD_DPREV])
        for (int64_t i = 0; i < w->n; i++) carry_gradients(ex, op, t, w->first + i, b->ds + i);
}

/* Keys and values of a sentence: rows as factors of sums over the width and over keys. */
typedef struct sentence {
    const fth_cpu_pairs_path *unit; /* what multiplies them */
    view k, v, k_across;
} sentence;

/* A block of query rows with the keys and values of its sentence. */
static void query_block(const fth_exec *ex, const fth_op *op, const task *t, const buffers *b,
                        const block *w, const sentence *x) {
    const rows dq = rows_of(ex, op->out[ATT_BWD_DQ]);
    const fth_cpu_pairs_path *unit = x->unit;
    const int32_t width = fth_arg(ex, op->in[ATT_BWD_Q])->width / op->u.attention.heads;
    const int64_t ld = v_round(width), row = t->q + w->first;
    const head_rows q_rows =
        rows_of_head(rows_of(ex, op->in[ATT_BWD_Q]), row, w->n, t->head, width);
    const head_rows g_rows =
        rows_of_head(rows_of(ex, op->in[ATT_BWD_DO]), row, w->n, t->head, width);
    const view q = along_rows(unit, &q_rows, b->q), g = along_rows(unit, &g_rows, b->dout);
    if (!op->in[ATT_BWD_SCORES]) score_columns(unit, w, x->k, q, width, b->qt, b->p);
    score_columns(unit, w, x->v, g, width, b->dout_t, b->ds);
    score_block(ex, op, t, w, b);
    /* the sums of dk and dv begin where the first block of queries has written */
    small s = {.k = steps_of(unit, w->n), .ldc = ld, .add = w->first > 0, .unit = unit};
    s.a = sum_queries(unit, w, b->ds, b->drawn);
    s.b = across_rows(unit, &q_rows, q, b->q);
    s.c = b->dk;
    small_product(w->keys, ld, &s);
    s.a = sum_queries(unit, w, b->p, b->p);
    s.b = across_rows(unit, &g_rows, g, b->dout);
    s.c = b->dv;
    small_product(w->keys, ld, &s);
    s = (small){.k = steps_of(unit, w->keys),
                .by_column = !fth_cpu_pairs_on_tiles(unit),
                .ldc = ld,
                .unit = unit};
    s.a = sum_keys(unit, w, b->ds, b->drawn), s.b = x->k_across, s.c = b->dq;
    small_product(w->n, ld, &s);
    if (dq.data) store_head(dq, row, w->n, t->head, width, b->dq, op->u.attention.scale, NULL);
}

FTH_PART(attention_bwd) {
    const int32_t d = fth_arg(ex, op->in[ATT_BWD_Q])->width, heads = op->u.attention.heads;
    const rows k = rows_of(ex, op->in[ATT_BWD_K]), v = rows_of(ex, op->in[ATT_BWD_V]);
    const rows dk = rows_of(ex, op->out[ATT_BWD_DK]), dv = rows_of(ex, op->out[ATT_BWD_DV]);
    const rows dq = rows_of(ex, op->out[ATT_BWD_DQ]);
    const rows factors[] = {rows_of(ex, op->in[ATT_BWD_Q]), rows_of(ex, op->in[ATT_BWD_DO]), k, v};
    const int32_t width = d / heads;
    const int64_t ld = v_round(width), most = longest(ex->capacity, op->u.attention.k_side);
    const bool causal = op->u.attention.causal;
    buffers b;
    cut(&b, thread_scratch(ex, team->thread, thread_floats(most, d, heads)), most, ld);
    const fth_cpu_pairs_path *unit = head_unit(ex, width, factors, 4);
    if (fth_cpu_pairs_on_tiles(unit)) unit->tiles.begin();
    task_walk walk = walk_tasks(ex, op, team);
    for (task t; next_task(&walk, &t);) {
        if (t.k_len == 0) {
            if (dq.data) clear_head(dq, t.q, t.q_len, t.head, width);
            continue;
        }
        sentence x = {.unit = unit};
        const head_rows k_rows = rows_of_head(k, t.k, t.k_len, t.head, width);
        const head_rows v_rows = rows_of_head(v, t.k, t.k_len, t.head, width);
        x.k = whole_rows(unit, &k_rows, b.k);
        x.v = whole_rows(unit, &v_rows, b.v);
        x.k_across = across_rows(unit, &k_rows, x.k, b.k);
        if (causal || t.q_len == 0) { /* not every block of queries writes every key */
            memset(b.dk, 0, sizeof(float) * (size_t)(t.k_len * ld));
            memset(b.dv, 0, sizeof(float) * (size_t)(t.k_len * ld));
        }
        for (block w = {0}; w.first < t.q_len; w.first += w.n) {
            w.n = block_size(w.first, t.q_len, causal);
            w.keys = causal ? w.first + w.n : t.k_len;
            query_block(ex, op, &t, &b, &w, &x);
        }
        if (dk.data) store_head(dk, t.k, t.k_len, t.head, width, b.dk, op->u.attention.scale, NULL);
        if (dv.data) store_head(dv, t.k, t.k_len, t.head, width, b.dv, 1, NULL);
    }
    if (fth_cpu_pairs_on_tiles(unit)) unit->tiles.end();
}
