/* attention.c: attention by sentence and head (doc/mathematics.md#sub-layers), with carried scores
 * where a method has them (doc/mathematics.md#realformer): S = scale q k^T + PREV, P = softmax(S /
 * divisor + mask), o = D(P) v.
 *
 * Backward, by query row: dD(P) = do v^T, dP = D(that), dS = P (dP - sum P dP) / divisor + what
 * came from above; dq = scale dS k, dk = scale dS^T q, dv = D(P)^T do, dPREV = dS. Pairs that
 * causality hides have S = 0 and no gradient. */
#include "backend/ref/ref.h"

#include <math.h>

/* One head of one query row: where its keys and pairs are. */
typedef struct query {
    int32_t head, width; /* of the head */
    int64_t row;         /* of the query */
    int64_t key;         /* row of the first key of the sentence */
    int64_t keys, seen;  /* keys of the sentence; how many of them the query may see */
    int64_t pair;        /* row of the first pair (query, key) */
} query;

typedef void visit(fth_exec *ex, const fth_op *op, const query *q);

static void for_each_query(fth_exec *ex, const fth_op *op, int32_t width, visit *f) {
    const int32_t *q_off = ex->batch.side[op->u.attention.q_side].offsets;
    const int32_t *k_off = ex->batch.side[op->u.attention.k_side].offsets;
    const int32_t heads = op->u.attention.heads;
    int64_t pair = 0;
    for (int32_t s = 0; s < ex->batch.n_sent; s++) {
        const int64_t keys = k_off[s + 1] - k_off[s];
        for (int64_t row = q_off[s]; row < q_off[s + 1]; row++, pair += keys) {
            int64_t seen = op->u.attention.causal ? row - q_off[s] + 1 : keys;
            for (int32_t head = 0; head < heads; head++)
                f(ex, op, &(query){head, width / heads, row, k_off[s], keys, seen, pair});
        }
    }
}

/* The product of a head's part of row i of a and row j of b. */
static double head_dot(const query *q, const fth_tensor *a, int64_t i, const fth_tensor *b,
                       int64_t j) {
    const int32_t first = q->head * q->width;
    double sum = 0;
    for (int32_t c = first; c < first + q->width; c++)
        sum += fth_ref_get(a, i, c) * fth_ref_get(b, j, c);
    return sum;
}

/* Dropout's factor of the probability of key j (dropout.h numbers them). */
static double drop_factor(const fth_exec *ex, const fth_op *op, const query *q, int64_t j) {
    const int64_t row = ex->step.row_base[op->u.attention.q_side] + q->row;
    uint64_t e = ((uint64_t)(row * op->u.attention.heads + q->head) << 16) + (uint64_t)j;
    return fth_ref_drop(ex, &op->u.attention.drop, e);
}

/* Makes probabilities of n scores; returns the log of the sum of their exponentials. */
static double softmax(double *p, int64_t n) {
    double highest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++) highest = fmax(highest, p[j]);
    for (int64_t j = 0; j < n; j++) sum += p[j] = exp(p[j] - highest);
    for (int64_t j = 0; j < n; j++) p[j] /= sum;
    return n > 0 ? highest + log(sum) : -INFINITY;
}

static void attend(fth_exec *ex, const fth_op *op, const query *q) {
    const fth_tensor *query_rows = fth_arg(ex, op->in[ATT_Q]), *keys = fth_arg(ex, op->in[ATT_K]);
    const fth_tensor *values = fth_arg(ex, op->in[ATT_V]), *prev = fth_arg(ex, op->in[ATT_PREV]);
    const fth_tensor *o = fth_arg(ex, op->out[ATT_O]), *lse = fth_arg(ex, op->out[ATT_LSE]);
    const fth_tensor *scores = fth_arg(ex, op->out[ATT_SCORES]);
    double *p = ex->scratch; /* [keys] */
    for (int64_t j = 0; j < q->seen; j++) {
        double s =
            (double)op->u.attention.scale * head_dot(q, query_rows, q->row, keys, q->key + j);
        if (prev) s += fth_ref_get(prev, q->pair + j, q->head);
        if (scores) fth_ref_put(scores, q->pair + j, q->head, s);
        p[j] = s / (double)op->u.attention.divisor;
    }
    for (int64_t j = q->seen; scores && j < q->keys; j++)
        fth_ref_put(scores, q->pair + j, q->head, 0);
    const double log_sum = softmax(p, q->seen);
    if (lse) fth_ref_put(lse, q->row, q->head, log_sum);
    for (int64_t j = 0; j < q->seen; j++) p[j] *= drop_factor(ex, op, q, j);
    for (int32_t c = q->head * q->width; c < (q->head + 1) * q->width; c++) {
        double out = 0;
        for (int64_t j = 0; j < q->seen; j++) out += p[j] * fth_ref_get(values, q->key + j, c);
        fth_ref_put(o, q->row, c, out);
    }
}

fth_err fth_ref_attention(fth_exec *ex, const fth_op *op) {
    for_each_query(ex, op, fth_arg(ex, op->in[ATT_Q])->width, attend);
    return FTH_OK;
}

int64_t fth_ref_attention_scratch(const fth_device *dev, const fth_graph *g, const fth_op *op,
                                  const int64_t capacity[FTH_N_EXTENTS]) {
    (void)dev, (void)g;
    const bool src = op->u.attention.k_side == FTH_SRC;
    return capacity[src ? FTH_ROWS_SRC : FTH_ROWS_TGT] * (int64_t)sizeof(double);
}

/* Fills p [keys] with the probabilities and dp [keys] with their gradients, before dropout;
 * returns the sum of p dp. */
static double probabilities(fth_exec *ex, const fth_op *op, const query *q, double *p, double *dp) {
    const fth_tensor *query_rows = fth_arg(ex, op->in[ATT_BWD_Q]);
    const fth_tensor *keys = fth_arg(ex, op->in[ATT_BWD_K]);
    const fth_tensor *values = fth_arg(ex, op->in[ATT_BWD_V]);
    const fth_tensor *scores = fth_arg(ex, op->in[ATT_BWD_SCORES]);
    const fth_tensor *d_out = fth_arg(ex, op->in[ATT_BWD_DO]);
    double sum = 0;
    for (int64_t j = 0; j < q->seen; j++) {
        double s = scores ? fth_ref_get(scores, q->pair + j, q->head)
                          : (double)op->u.attention.scale *
                                head_dot(q, query_rows, q->row, keys, q->key + j);
        p[j] = s / (double)op->u.attention.divisor;
        dp[j] = head_dot(q, d_out, q->row, values, q->key + j) * drop_factor(ex, op, q, j);
    }
    softmax(p, q->seen);
    for (int64_t j = 0; j < q->seen; j++) sum += p[j] * dp[j];
    return sum;
}

static void attend_bwd(fth_exec *ex, const fth_op *op, const query *q) {
    const fth_tensor *query_rows = fth_arg(ex, op->in[ATT_BWD_Q]);
    const fth_tensor *keys = fth_arg(ex, op->in[ATT_BWD_K]);
    const fth_tensor *d_out = fth_arg(ex, op->in[ATT_BWD_DO]);
    const fth_tensor *dscores = fth_arg(ex, op->in[ATT_BWD_DSCORES]);
    const fth_tensor *dq = fth_arg(ex, op->out[ATT_BWD_DQ]), *dk = fth_arg(ex, op->out[ATT_BWD_DK]);
    const fth_tensor *dv = fth_arg(ex, op->out[ATT_BWD_DV]);
    const fth_tensor *dprev = fth_arg(ex, op->out[ATT_BWD_DPREV]);
    double *p = ex->scratch, *dp = p + q->keys; /* [keys] each */
    const double mean = probabilities(ex, op, q, p, dp);
    for (int64_t j = 0; j < q->keys; j++) {
        double ds = 0;
        if (j < q->seen) {
            ds = p[j] * (dp[j] - mean) / (double)op->u.attention.divisor;
            if (dscores) ds += fth_ref_get(dscores, q->pair + j, q->head);
        }
        if (dprev) fth_ref_put(dprev, q->pair + j, q->head, ds);
        if (j >= q->seen) continue;
        const double kept = p[j] * drop_factor(ex, op, q, j);
        const double scaled = (double)op->u.attention.scale * ds;
        for (int32_t c = q->head * q->width; c < (q->head + 1) * q->width; c++) {
            fth_ref_add_to(dq, q->row, c, scaled * fth_ref_get(keys, q->key + j, c));
            fth_ref_add_to(dk, q->key + j, c, scaled * fth_ref_get(query_rows, q->row, c));
            fth_ref_add_to(dv, q->key + j, c, kept * fth_ref_get(d_out, q->row, c));
        }
    }
}

fth_err fth_ref_attention_bwd(fth_exec *ex, const fth_op *op) {
    for (int out = ATT_BWD_DQ; out <= ATT_BWD_DV; out++) {
        const fth_tensor *t = fth_arg(ex, op->out[out]);
        for (int64_t row = 0; row < fth_rows_now(ex, t); row++)
            for (int32_t c = 0; c < t->width; c++) fth_ref_put(t, row, c, 0);
    }
    for_each_query(ex, op, fth_arg(ex, op->in[ATT_BWD_Q])->width, attend_bwd);
    return FTH_OK;
}

int64_t fth_ref_attention_bwd_scratch(const fth_device *dev, const fth_graph *g, const fth_op *op,
                                      const int64_t capacity[FTH_N_EXTENTS]) {
    return 2 * fth_ref_attention_scratch(dev, g, op, capacity);
}
