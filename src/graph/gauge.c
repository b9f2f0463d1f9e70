#include "graph/gauge.h"

#include "graph/op.h"

fth_val fth_watch_board(fth_graph *g, int32_t columns) {
    return fth_graph_value(g, (fth_value){.storage = FTH_IN_STATE,
                                          .class = FTH_FULL,
                                          .extent = FTH_ROWS_FIXED,
                                          .rows = 1,
                                          .width = columns,
                                          .producer = -1});
}

static fth_op *watch_op(fth_graph *g, const fth_watch_at *at, fth_kind kind, int n_in, fth_val x) {
    if (g->err != FTH_OK || !x) return NULL;
    fth_val sums = fth_graph_columns(g, at->board, at->column, 2);
    fth_op *op = fth_graph_op(g, kind, n_in, WATCH_N_OUT);
    if (!op) return NULL;
    op->backward = at->backward;
    op->aside = true;
    op->stack = at->stack;
    op->sub = at->sub;
    op->layer = at->layer;
    op->in[0] = x;
    fth_graph_output(g, op, WATCH_SUMS, sums);
    return op;
}

static fth_op *watch_one(fth_graph *g, const fth_watch_at *at, fth_watch_what what, fth_val x) {
    fth_op *op = watch_op(g, at, FTH_KIND_watch, WATCH_N_IN, x);
    if (op) op->u.watch.what = what;
    return op;
}

void fth_watch_norm(fth_graph *g, const fth_watch_at *at, fth_val x) {
    watch_one(g, at, FTH_WATCH_NORM, x);
}

void fth_watch_nonzero(fth_graph *g, const fth_watch_at *at, fth_val x) {
    watch_one(g, at, FTH_WATCH_NONZERO, x);
}

void fth_watch_cosine(fth_graph *g, const fth_watch_at *at, fth_val x, fth_val f) {
    fth_op *op = f ? watch_one(g, at, FTH_WATCH_COSINE, x) : NULL;
    if (op) op->in[WATCH_F] = f;
}

void fth_watch_ratio(fth_graph *g, const fth_watch_at *at, fth_val x, fth_val f, fth_val y) {
    fth_op *op = f && y ? watch_one(g, at, FTH_WATCH_RATIO, x) : NULL;
    if (!op) return;
    op->in[WATCH_F] = f;
    op->u.watch.r = op->u.watch.a = (fth_coef){.kind = FTH_COEF_CONST, .value = 1};
    int32_t maker = g->value[y].producer;
    const fth_op *sum = maker >= 0 ? &g->op[maker] : NULL;
    bool is_join = sum && (sum->kind == FTH_KIND_join || sum->kind == FTH_KIND_join_norm);
    if (!is_join || sum->in[JOIN_X] != x) return;
    op->in[WATCH_F] = sum->in[JOIN_F]; /* the branch as it is added: a norm may stand behind it */
    op->u.watch.r = sum->u.join.r;
    op->u.watch.a = sum->u.join.a;
    op->in[WATCH_R] = sum->in[JOIN_R];
    op->in[WATCH_A] = sum->in[JOIN_A];
}

void fth_watch_positions(fth_graph *g, const fth_watch_at *at, fth_val x, fth_side side) {
    fth_op *op = watch_op(g, at, FTH_KIND_watch_positions, WATCH_POSITIONS_N_IN, x);
    if (op) op->u.watch.side = side;
}

void fth_watch_entropy(fth_graph *g, const fth_watch_at *at, fth_val lse) {
    int32_t maker = lse ? g->value[lse].producer : -1;
    if (g->err != FTH_OK || maker < 0) return;
    const fth_op attention = g->op[maker];
    fth_op *op = watch_op(g, at, FTH_KIND_watch_entropy, WATCH_ENTROPY_N_IN, attention.in[ATT_Q]);
    if (!op) return;
    op->u = attention.u;
    op->in[WATCH_ENTROPY_K] = attention.in[ATT_K];
    op->in[WATCH_ENTROPY_PREV] = attention.in[ATT_PREV];
    op->in[WATCH_ENTROPY_LSE] = lse;
}

void fth_watch_in_line(fth_graph *g) {
    for (int32_t i = 0; i < g->n_ops; i++) {
        fth_op *op = &g->op[i];
        if (op->kind == FTH_KIND_watch || op->kind == FTH_KIND_watch_positions ||
            op->kind == FTH_KIND_watch_entropy)
            op->aside = false;
    }
}
