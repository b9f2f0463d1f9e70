/* thrift.c: outputs of layer norms are not kept for the gradients of the weights that read them: the
 * norm is taken once more from its input, which is kept for its own backward anyway. A sixth of the
 * activations goes, for 3 to 4 % of the time of an update on a GPU. */
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "graph/plan.h"

typedef struct thrift {
    fth_graph *g;
    int32_t *reader; /* [n_values] first backward operation that reads it, -1: none */
    int32_t *last;   /* [n_values] last operation that reads it, -1: none */
    bool *kept;      /* [n_values] something other than gradients of one layer's weights reads it */
    fth_val *again;  /* [n_values] what those gradients read instead, 0: the value itself */
    int32_t *maker_of; /* [n_ops] forward norm to be taken again before this operation, -1 */
} thrift;

static bool is_norm(const fth_op *op) {
    return !op->backward && (op->kind == FTH_KIND_norm || op->kind == FTH_KIND_join_norm);
}

static fth_val input_of(const fth_op *norm) {
    return norm->kind == FTH_KIND_norm ? norm->in[JOIN_X] : norm->out[JOIN_Z];
}

/* Who reads what in the backward. */
static void survey(thrift *t) {
    const fth_graph *g = t->g;
    for (fth_val v = 0; v < g->n_values; v++) {
        t->reader[v] = t->last[v] = -1;
        t->kept[v] = g->value[v].keep;
    }
    for (fth_val v = 1; v < g->n_values; v++) /* a view that is kept keeps its base */
        if (g->value[v].keep && g->value[v].base) t->kept[g->value[v].base] = true;
    for (int32_t i = 0; i < g->n_ops; i++) {
        const fth_op *op = &g->op[i];
        for (int k = 0; k < op->n_in; k++) {
            const fth_val v = op->in[k];
            t->last[v] = i;
            if (!v || !op->backward) continue;
            const fth_val base = g->value[v].base ? g->value[v].base : v;
            const fth_op *first = t->reader[base] >= 0 ? &g->op[t->reader[base]] : op;
            if (base != v || !fth_runs_aside(op) || first->layer != op->layer ||
                first->stack != op->stack)
                t->kept[base] = true;
            if (t->reader[base] < 0) t->reader[base] = i;
        }
    }
}

static int32_t choose(thrift *t) {
    int32_t chosen = 0;
    for (int32_t i = 0; i < t->g->n_ops; i++) t->maker_of[i] = -1;
    for (int32_t i = 0; i < t->g->n_ops; i++) {
        const fth_op *op = &t->g->op[i];
        if (!is_norm(op)) continue;
        const fth_val y = op->out[JOIN_Y];
        const int32_t reader = t->reader[y];
        if (t->kept[y] || reader < 0 || t->maker_of[reader] >= 0) continue;
        if (!input_of(op) || t->last[input_of(op)] <= reader)
            continue; /* it would be kept longer */
        t->maker_of[reader] = i;
        chosen++;
    }
    return chosen;
}

/* The norm once more, as an operation of the backward. */
static fth_err take_again(thrift *t, const fth_op *norm, const fth_op *reader, fth_op *out) {
    fth_graph *g = t->g;
    fth_val *operands =
        fth_arena_alloc(&g->arena, sizeof *operands * (size_t)(JOIN_N_IN + JOIN_N_OUT));
    if (!operands) return fth_fail(FTH_NO_MEMORY, "no memory for a graph");
    memset(operands, 0, sizeof *operands * (size_t)(JOIN_N_IN + JOIN_N_OUT));
    *out = (fth_op){.kind = FTH_KIND_norm,
                    .n_in = JOIN_N_IN,
                    .n_out = JOIN_N_OUT,
                    .in = operands,
                    .out = operands + JOIN_N_IN,
                    .backward = true,
                    .stack = reader->stack,
                    .sub = reader->sub,
                    .layer = reader->layer};
    out->u.join.eps = norm->u.join.eps;
    out->in[JOIN_X] = input_of(norm);
    out->in[JOIN_GAIN] = norm->in[JOIN_GAIN];
    out->in[JOIN_BIAS] = norm->in[JOIN_BIAS];
    const fth_val y = norm->out[JOIN_Y];
    out->out[JOIN_STATS] = fth_graph_like(g, norm->out[JOIN_STATS]);
    out->out[JOIN_Y] = t->again[y] = fth_graph_like(g, y);
    return g->err;
}

static fth_err rewrite(thrift *t, int32_t chosen) {
    fth_graph *g = t->g;
    fth_op *ops = malloc(sizeof *ops * (size_t)(g->n_ops + chosen));
    if (!ops) return fth_fail(FTH_NO_MEMORY, "no memory for a graph");
    int32_t n = 0;
    fth_err err = FTH_OK;
    const fth_val n_values = g->n_values; /* t->again covers the values of before */
    for (int32_t i = 0; i < g->n_ops && err == FTH_OK; i++) {
        fth_op *op = &g->op[i];
        if (t->maker_of[i] >= 0) err = take_again(t, &g->op[t->maker_of[i]], op, &ops[n++]);
        for (int k = 0; op->backward && k < op->n_in; k++)
            if (op->in[k] < n_values && t->again[op->in[k]]) op->in[k] = t->again[op->in[k]];
        ops[n++] = *op;
    }
    if (err != FTH_OK) {
        free(ops);
        return err;
    }
    free(g->op);
    g->op = ops;
    g->n_ops = n;
    g->cap_ops = g->n_ops;
    return FTH_OK;
}

fth_err fth_graph_thrift(fth_graph *g) {
    const size_t n_values = (size_t)g->n_values, n_ops = (size_t)g->n_ops;
    thrift t = {.g = g,
                .reader = malloc(sizeof *t.reader * n_values),
                .last = malloc(sizeof *t.last * n_values),
                .kept = malloc(sizeof *t.kept * n_values),
                .again = calloc(n_values, sizeof *t.again),
                .maker_of = malloc(sizeof *t.maker_of * (n_ops + 1))};
    fth_err err = FTH_OK;
    if (!t.reader || !t.last || !t.kept || !t.again || !t.maker_of)
        err = fth_fail(FTH_NO_MEMORY, "no memory for a graph");
    if (err == FTH_OK) {
        survey(&t);
        const int32_t chosen = choose(&t);
        if (chosen > 0) err = rewrite(&t, chosen);
    }
    free(t.reader);
    free(t.last);
    free(t.kept);
    free(t.again);
    free(t.maker_of);
    return err;
}
