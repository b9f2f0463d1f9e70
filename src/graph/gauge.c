/* gauge.c: appends the operations with their two columns of the board. */
#include "graph/gauge.h"

#include "graph/op.h"

fth_val fth_gauge_board(fth_graph *g, int32_t columns) {
    return fth_graph_value(g, (fth_value){.storage = FTH_IN_STATE,
                                          .class = FTH_FULL,
                                          .extent = FTH_ROWS_FIXED,
                                          .rows = 1,
                                          .width = columns,
                                          .producer = -1});
}

static fth_op *watch_op(fth_graph *g, const fth_gauge_at *at, fth_kind kind, int n_in, fth_val x) {
    if (g->err != FTH_OK || !x) return NULL;
    fth_val sums = fth_graph_columns(g, at->board, at->column, 2);
    fth_op *op = fth_graph_op(g, kind, n_in, GAUGE_N_OUT);
    if (!op) return NULL;
    op->backward = at->backward;
    op->deferrable = true;
    op->stack = at->stack;
    op->sub = at->sub;
    op->layer = at->layer;
    op->in[0] = x;
    fth_graph_output(g, op, GAUGE_SUMS, sums);
    return op;
}

static fth_op *watch_one(fth_graph *g, const fth_gauge_at *at, fth_gauge_what what, fth_val x) {
    fth_op *op = watch_op(g, at, FTH_KIND_gauge, GAUGE_N_IN, x);
    if (op) op->u.gauge.what = what;
    return op;
}

void fth_gauge_norm(fth_graph *g, const fth_gauge_at *at, fth_val x) {
    watch_one(g, at, FTH_GAUGE_NORM, x);
}

void fth_gauge_nonzero(fth_graph *g, const fth_gauge_at *at, fth_val x) {
    watch_one(g, at, FTH_GAUGE_NONZERO, x);
}

void fth_gauge_cosine(fth_graph *g, const fth_gauge_at *at, fth_val x, fth_val f) {
    fth_op *op = f ? watch_one(g, at, FTH_GAUGE_COSINE, x) : NULL;
    if (op) op->in[GAUGE_F] = f;
}

void fth_gauge_ratio(fth_graph *g, const fth_gauge_at *at, fth_val x, fth_val f, fth_val y) {
    fth_op *op = f && y ? watch_one(g, at, FTH_GAUGE_RATIO, x) : NULL;
    if (!op) return;
    op->in[GAUGE_F] = f;
    op->u.gauge.r = op->u.gauge.a = (fth_coef){.kind = FTH_COEF_CONST, .value = 1};
    int32_t maker = g->value[y].producer;
    const fth_op *sum = maker >= 0 ? &g->op[maker] : NULL;
    bool is_join = sum && (sum->kind == FTH_KIND_join || sum->kind == FTH_KIND_join_norm);
    if (!is_join || sum->in[JOIN_X] != x) return;
    op->in[GAUGE_F] = sum->in[JOIN_F]; /* the branch as it is added: a norm may stand behind it */
    op->u.gauge.r = sum->u.join.r;
    op->u.gauge.a = sum->u.join.a;
    op->in[GAUGE_R] = sum->in[JOIN_R];
    op->in[GAUGE_A] = sum->in[JOIN_A];
}

void fth_gauge_positions(fth_graph *g, const fth_gauge_at *at, fth_val x, fth_side side) {
    fth_op *op = watch_op(g, at, FTH_KIND_gauge_positions, GAUGE_POSITIONS_N_IN, x);
    if (op) op->u.gauge.side = side;
}

void fth_gauge_entropy(fth_graph *g, const fth_gauge_at *at, fth_val lse) {
    int32_t maker = lse ? g->value[lse].producer : -1;
    if (g->err != FTH_OK || maker < 0) return;
    const fth_op attention = g->op[maker];
    fth_op *op = watch_op(g, at, FTH_KIND_gauge_entropy, GAUGE_ENTROPY_N_IN, attention.in[ATT_Q]);
    if (!op) return;
    op->u = attention.u;
    op->in[GAUGE_ENTROPY_K] = attention.in[ATT_K];
    op->in[GAUGE_ENTROPY_PREV] = attention.in[ATT_PREV];
    op->in[GAUGE_ENTROPY_LSE] = lse;
}

void fth_gauge_in_line(fth_graph *g) {
    for (int32_t i = 0; i < g->n_ops; i++) {
        fth_op *op = &g->op[i];
        if (op->kind == FTH_KIND_gauge || op->kind == FTH_KIND_gauge_positions ||
            op->kind == FTH_KIND_gauge_entropy)
            op->deferrable = false;
    }
}
