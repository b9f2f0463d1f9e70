/* attention.cu: chooses between the kernels of attention. */
#include "backend/cuda/attention/attention.cuh"

int fth_cuda_attention_number(const fth_op *op) {
    const fth_side q = op->u.attention.q_side, k = op->u.attention.k_side;
    return (q != k ? 2 : q == FTH_SRC ? 0 : 1) + (op->u.attention.causal ? 3 : 0);
}

attention_shape fth_cuda_attention_shape(const fth_cuda_call *c, const fth_tensor *q,
                                         const fth_tensor *k) {
    const fth_side q_side = c->op->u.attention.q_side, k_side = c->op->u.attention.k_side;
    const fth_drop *drop = &c->op->u.attention.drop;
    const fth_cuda_side *from = &c->batch->side[q_side], *to = &c->batch->side[k_side];
    attention_shape s = {};
    s.q_sentence = from->sentence, s.k_sentence = to->sentence;
    s.q_offsets = from->offsets, s.k_offsets = to->offsets;
    const int number = fth_cuda_attention_number(c->op);
    s.pairs = c->batch->pairs[number % 3];
    s.tiles = c->batch->tiles[number];
    s.q_rows = rows_of(q), s.k_rows = rows_of(k);
    s.heads = c->op->u.attention.heads;
    s.head = q->width / s.heads;
    s.causal = c->op->u.attention.causal;
    s.scale = c->op->u.attention.scale / c->op->u.attention.divisor;
    s.carried = c->op->u.attention.scale;
    s.inverse = 1.0f / c->op->u.attention.divisor;
    s.threshold = drop->p > 0 ? fth_drop_threshold(drop->p) : 0;
    s.site = drop->site;
    s.kept = drop->p > 0 ? fth_drop_scale(drop->p) : 1.0f;
    s.side = q_side;
    s.step = c->step;
    /* Keys of an encoder's output that another program made have a fixed number of rows: the
     * batch's source rows are what counts. */
    s.k_rows.extent = k_side == FTH_SRC ? FTH_ROWS_SRC : FTH_ROWS_TGT;
    return s;
}

bool fth_cuda_attention_is_fast(const attention_shape *s, const fth_tensor *const *tensors, int n) {
    if (s->head % 8 != 0 || s->head > 128) return false;
    for (int i = 0; i < n; i++)
        if (tensors[i] && (!is_bf16(tensors[i]) || !is_wide(tensors[i]))) return false;
    return true;
}

attention_args fth_cuda_attention_args(const fth_cuda_call *c, const attention_shape *s) {
    const fth_tensor *q = in_of(c, ATT_Q), *k = in_of(c, ATT_K), *v = in_of(c, ATT_V);
    const fth_tensor *o = out_of(c, ATT_O), *lse = out_of(c, ATT_LSE);
    attention_args a = {};
    a.s = *s;
    a.q = (const bf16 *)q->data, a.ld_q = q->ld;
    a.k = (const bf16 *)k->data, a.ld_k = k->ld;
    a.v = (const bf16 *)v->data, a.ld_v = v->ld;
    a.o = (bf16 *)o->data, a.ld_o = o->ld;
    if (lse) a.lse = (float *)lse->data, a.ld_lse = lse->ld;
    return a;
}

attention_bwd_args fth_cuda_attention_bwd_args(const fth_cuda_call *c, const attention_shape *s) {
    const fth_tensor *q = in_of(c, ATT_BWD_Q), *k = in_of(c, ATT_BWD_K), *v = in_of(c, ATT_BWD_V);
    const fth_tensor *o = in_of(c, ATT_BWD_O), *d_o = in_of(c, ATT_BWD_DO);
    const fth_tensor *lse = in_of(c, ATT_BWD_LSE), *dq = out_of(c, ATT_BWD_DQ);
    const fth_tensor *dk = out_of(c, ATT_BWD_DK), *dv = out_of(c, ATT_BWD_DV);
    attention_bwd_args a = {};
    a.s = *s;
    a.q = (const bf16 *)q->data, a.ld_q = q->ld;
    a.k = (const bf16 *)k->data, a.ld_k = k->ld;
    a.v = (const bf16 *)v->data, a.ld_v = v->ld;
    a.d_o = (const bf16 *)d_o->data, a.ld_do = d_o->ld;
    a.o = (const bf16 *)o->data, a.ld_o = o->ld;
    a.lse = (const float *)lse->data, a.ld_lse = lse->ld;
    a.dq = (bf16 *)dq->data, a.ld_dq = dq->ld;
    a.dk = (bf16 *)dk->data, a.ld_dk = dk->ld;
    a.dv = (bf16 *)dv->data, a.ld_dv = dv->ld;
    return a;
}

#ifdef FATHOM_HAS_SM90A
static bool has_wgmma(const attention_shape *s) {
    return fth_cuda_has_wgmma() && s->head == 64 && s->threshold == 0 && s->scale > 0 &&
           s->tiles.queries &&
           s->q_rows.extent == (s->side == FTH_SRC ? FTH_ROWS_SRC : FTH_ROWS_TGT);
}
#endif

static fth_err fast(const fth_cuda_call *c, const attention_shape *s) {
#ifdef FATHOM_HAS_SM90A
    if (has_wgmma(s)) return fth_cuda_attention_wgmma(c, s);
#endif
    return fth_cuda_attention_fast(c, s);
}

static fth_err fast_bwd(const fth_cuda_call *c, const attention_shape *s) {
#ifdef FATHOM_HAS_SM90A
    if (has_wgmma(s)) return fth_cuda_attention_wgmma_bwd(c, s);
#endif
    return fth_cuda_attention_fast_bwd(c, s);
}

fth_err fth_cuda_attention(const fth_cuda_call *c) {
    const fth_tensor *all[] = {in_of(c, ATT_Q), in_of(c, ATT_K), in_of(c, ATT_V), out_of(c, ATT_O)};
    const attention_shape s = fth_cuda_attention_shape(c, all[0], all[1]);
    const bool carries = c->op->in[ATT_PREV] || c->op->out[ATT_SCORES];
    if (!carries && fth_cuda_attention_is_fast(&s, all, 4)) return fast(c, &s);
    return fth_cuda_attention_plain(c, &s);
}

/* The operands of a backward, and whether the kernels for bf16 can do it. */
static bool is_fast_bwd(const fth_cuda_call *c, attention_shape *s) {
    const fth_tensor *all[8];
    for (int k = 0; k < 4; k++) all[k] = in_of(c, ATT_BWD_Q + k);
    all[4] = in_of(c, ATT_BWD_DO);
    for (int k = 0; k < 3; k++) all[5 + k] = out_of(c, ATT_BWD_DQ + k);
    *s = fth_cuda_attention_shape(c, all[0], all[1]);
    const bool carries =
        c->op->in[ATT_BWD_SCORES] || c->op->in[ATT_BWD_DSCORES] || c->op->out[ATT_BWD_DPREV];
    return !carries && fth_cuda_attention_is_fast(s, all, 8);
}

fth_err fth_cuda_attention_bwd(const fth_cuda_call *c) {
    attention_shape s;
    return is_fast_bwd(c, &s) ? fast_bwd(c, &s) : fth_cuda_attention_plain_bwd(c, &s);
}

#ifdef FATHOM_HAS_SM90A
bool fth_cuda_attention_sums(const fth_exec *ex, const fth_cuda_program *p, const fth_op *op) {
    fth_cuda_call call = {};
    call.ex = ex, call.op = op, call.batch = &p->batch;
    attention_shape s;
    /* where gradients of weights run on the side stream, these sums cost nothing there */
    return !fth_cuda_has_side_stream(p) && is_fast_bwd(&call, &s) && has_wgmma(&s);
}

int64_t fth_cuda_attention_sums_elements(const fth_device *dev, int64_t q_rows, int64_t k_rows,
                                         int heads) {
    return fth_cuda_attention_wgmma_sums((const fth_cuda *)dev, q_rows, k_rows, heads);
}
#else
bool fth_cuda_attention_sums(const fth_exec *, const fth_cuda_program *, const fth_op *) {
    return false;
}

int64_t fth_cuda_attention_sums_elements(const fth_device *, int64_t, int64_t, int) {
    return 0;
}
#endif

static int64_t capacity_of(const fth_graph *g, fth_val v, const int64_t capacity[FTH_N_EXTENTS]) {
    const fth_value *x = &g->value[v];
    return x->extent == FTH_ROWS_FIXED ? x->rows : capacity[x->extent];
}

/* Two numbers by query and head: the product of o and its gradient, and maybe the log-sum; and
 * parts of sums of columns. */
int64_t fth_cuda_attention_bwd_scratch(const fth_device *dev, const fth_graph *g, const fth_op *op,
                                       const int64_t capacity[FTH_N_EXTENTS]) {
    const int64_t rows = capacity_of(g, op->in[ATT_BWD_Q], capacity);
    const int64_t bytes = rows * op->u.attention.heads * (int64_t)sizeof(float2);
    const int64_t sums = fth_cuda_attention_sums_elements(
        dev, rows, capacity_of(g, op->in[ATT_BWD_K], capacity), op->u.attention.heads);
    return bytes + sums * (int64_t)sizeof(float);
}
