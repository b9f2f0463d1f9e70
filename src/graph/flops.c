/* flops.c: two operations for each multiply-add of the products and of attention; nothing else
 * counts. */
#include "graph/flops.h"

#include "graph/op.h"

static double rows_of(const fth_graph *g, const fth_batch *batch, fth_val v) {
    const fth_value *value = &g->value[v];
    switch (value->extent) {
    case FTH_ROWS_SRC: return batch->side[FTH_SRC].rows;
    case FTH_ROWS_TGT: return batch->side[FTH_TGT].rows;
    case FTH_ROWS_SENTENCES: return batch->n_sent;
    case FTH_ROWS_PICKED: return batch->n_picked;
    case FTH_ROWS_INPUT: return batch->input.rows;
    default: return (double)value->rows;
    }
}

/* Pairs of a query and a key, summed over sentences. */
static double pairs_of(const fth_batch *batch, fth_side q, fth_side k) {
    double pairs = 0;
    for (int32_t s = 0; s < batch->n_sent; s++) {
        const int32_t *qo = batch->side[q].offsets, *ko = batch->side[k].offsets;
        pairs += (double)(qo[s + 1] - qo[s]) * (ko[s + 1] - ko[s]);
    }
    return pairs;
}

static double flops_of(const fth_graph *g, const fth_batch *batch, const fth_op *op) {
    const fth_value *w;
    switch (op->kind) {
    case FTH_KIND_linear:
    case FTH_KIND_linear_dx:
        w = &g->value[op->in[LINEAR_W]]; /* the same place in both */
        return 2 * rows_of(g, batch, op->in[0]) * (double)w->rows * w->width;
    case FTH_KIND_linear_dw:
        w = &g->value[op->out[LINEAR_DW_DW]];
        return 2 * rows_of(g, batch, op->in[0]) * (double)w->rows * w->width;
    case FTH_KIND_xent:
        w = &g->value[op->in[XENT_W]];
        return (op->out[XENT_DX] ? 6 : 2) * rows_of(g, batch, op->in[0]) * (double)w->rows *
               w->width;
    case FTH_KIND_attention:
    case FTH_KIND_attention_bwd: /* two products forward; backward one again and four */
        return (op->kind == FTH_KIND_attention ? 4 : 10) * g->value[op->in[ATT_Q]].width *
               pairs_of(batch, op->u.attention.q_side, op->u.attention.k_side);
    default: return 0;
    }
}

double fth_graph_flops(const fth_graph *g, const fth_batch *batch) {
    double sum = 0;
    bool backward = false;
    for (int32_t i = 0; i < g->n_ops; i++) {
        backward |= g->op[i].backward;
        if (backward && !g->op[i].backward) continue; /* a forward operation run again */
        sum += flops_of(g, batch, &g->op[i]);
    }
    return sum;
}
