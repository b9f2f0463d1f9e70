/* flops.c: two operations for each multiply-add of the products and of attention; nothing else
 * counts. */
#include "graph/flops.h"

#include "graph/batch_store.h"
#include "graph/op.h"

static double rows_of(const fth_graph *g, const int64_t rows[FTH_N_EXTENTS], fth_val v) {
    const fth_value *value = &g->value[v];
    return (double)(value->extent == FTH_ROWS_FIXED ? value->rows : rows[value->extent]);
}

static double pairs_of(const int64_t rows[FTH_N_EXTENTS], fth_side q, fth_side k) {
    if (q != k) return (double)rows[FTH_ROWS_CROSS_PAIRS];
    return (double)rows[q == FTH_SRC ? FTH_ROWS_SRC_PAIRS : FTH_ROWS_TGT_PAIRS];
}

double fth_op_flops(const fth_graph *g, const fth_op *op, const int64_t rows[FTH_N_EXTENTS]) {
    const fth_value *w;
    switch (op->kind) {
    case FTH_KIND_linear:
    case FTH_KIND_linear_dx:
        w = &g->value[op->in[LINEAR_W]]; /* the same place in both */
        return 2 * rows_of(g, rows, op->in[0]) * (double)w->rows * w->width;
    case FTH_KIND_linear_dw:
        w = &g->value[op->out[LINEAR_DW_DW]];
        return 2 * rows_of(g, rows, op->in[0]) * (double)w->rows * w->width;
    case FTH_KIND_xent:
        w = &g->value[op->in[XENT_W]];
        return (op->out[XENT_DX] ? 6 : 2) * rows_of(g, rows, op->in[0]) * (double)w->rows *
               w->width;
    case FTH_KIND_attention:
    case FTH_KIND_attention_bwd: /* two products forward; backward one again and four */
        return (op->kind == FTH_KIND_attention ? 4 : 10) * g->value[op->in[ATT_Q]].width *
               pairs_of(rows, op->u.attention.q_side, op->u.attention.k_side);
    default: return 0;
    }
}

double fth_graph_flops(const fth_graph *g, const fth_batch *batch) {
    double sum = 0;
    bool backward = false;
    int64_t rows[FTH_N_EXTENTS];
    fth_batch_rows(batch, rows);
    for (int32_t i = 0; i < g->n_ops; i++) {
        backward |= g->op[i].backward;
        if (backward && !g->op[i].backward) continue; /* a forward operation run again */
        sum += fth_op_flops(g, &g->op[i], rows);
    }
    return sum;
}
