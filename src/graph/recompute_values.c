/* recompute_values.c: single values that are not kept for the backward but made again right before
 * it reads them, from values that are kept anyway or made again themselves:
 *   outputs of layer norms, from the norm's input,
 *   outputs of attention, from queries, keys and values,
 *   outputs of products (queries, keys and values; hidden layers), from the product's input.
 * The first two are a quarter of the activations for 3 to 4 % of the time of an update. Products
 * cost as much as recomputing whole layers does for the same memory (recompute_layers.c), but those
 * whose outputs the backward does not read are spared. */
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "graph/plan.h"

typedef struct survey {
    fth_graph *g;
    int32_t *reader;   /* [n_values] first backward operation that reads it, -1: none */
    int32_t *last;     /* [n_values] last operation that reads it or a view of it, -1: none */
    bool *kept;        /* [n_values] kept, or read by backward operations of several layers */
    bool *waited;      /* [n_values] more than gradients of weights read it in the backward */
    fth_val *copy;     /* [n_values] what the backward reads instead, 0: the value itself */
    int32_t *maker_of; /* [n_ops] forward operation to be run again before this one, -1 */
} survey;

static bool is_norm(const fth_op *op) {
    return !op->backward && (op->kind == FTH_KIND_norm || op->kind == FTH_KIND_join_norm);
}

static fth_val input_of(const fth_op *norm) {
    return norm->kind == FTH_KIND_norm ? norm->in[JOIN_X] : norm->out[JOIN_Z];
}

/* Who reads what in the backward. */
static void take_survey(survey *t) {
    const fth_graph *g = t->g;
    for (fth_val v = 0; v < g->n_values; v++) {
        t->reader[v] = t->last[v] = -1;
        t->kept[v] = g->value[v].keep;
        t->waited[v] = false;
    }
    for (fth_val v = 1; v < g->n_values; v++) /* a view that is kept keeps its base */
        if (g->value[v].keep && g->value[v].base) t->kept[g->value[v].base] = true;
    for (int32_t i = 0; i < g->n_ops; i++) {
        const fth_op *op = &g->op[i];
        for (int k = 0; k < op->n_in; k++) {
            const fth_val v = op->in[k], base = fth_owner(g, v);
            t->last[base] = i;
            if (!v || !op->backward) continue;
            const fth_op *first = t->reader[base] >= 0 ? &g->op[t->reader[base]] : op;
            if (first->layer != op->layer || first->stack != op->stack) t->kept[base] = true;
            if (!fth_is_deferrable(op)) t->waited[base] = true;
            if (t->reader[base] < 0) t->reader[base] = i;
        }
    }
}

/* Asks for operation i once more before the first backward reader of its output, if its inputs are
 * still there then without being kept longer. */
static bool ask(survey *t, int32_t i, const fth_val *in, int n_in, fth_val out) {
    const int32_t reader = t->reader[out];
    if (t->kept[out] || reader < 0 || t->maker_of[reader] >= 0) return false;
    for (int k = 0; k < n_in; k++)
        if (in[k] && t->g->value[in[k]].storage == FTH_IN_ARENA &&
            t->last[fth_owner(t->g, in[k])] <= reader)
            return false;
    t->maker_of[reader] = i;
    return true;
}

/* Norms whose output is read by products alone: those of gradients, and those that are made
 * again. */
static int32_t choose_norms(survey *t) {
    int32_t chosen = 0;
    for (int32_t i = 0; i < t->g->n_ops; i++) {
        const fth_op *op = &t->g->op[i];
        if (!is_norm(op) || !input_of(op)) continue;
        const fth_val y = op->out[JOIN_Y], z = input_of(op);
        const int32_t reader = t->reader[y];
        if (t->waited[y] && t->g->op[reader].kind != FTH_KIND_linear) continue;
        chosen += ask(t, i, &z, 1, y);
    }
    return chosen;
}

/* The lowest n attentions of those without carried scores. */
static int32_t choose_attention(survey *t, int32_t n) {
    int32_t chosen = 0;
    for (int32_t i = 0; i < t->g->n_ops && chosen < n; i++) {
        const fth_op *op = &t->g->op[i];
        if (op->backward || op->kind != FTH_KIND_attention) continue;
        if (!op->in[ATT_PREV] && !op->out[ATT_SCORES])
            chosen += ask(t, i, op->in, op->n_in, op->out[ATT_O]);
    }
    return chosen;
}

/* The lowest n products of those that can be made again. */
static int32_t choose_products(survey *t, int32_t n) {
    int32_t chosen = 0;
    for (int32_t i = 0; i < t->g->n_ops && chosen < n; i++) {
        const fth_op *op = &t->g->op[i];
        if (!op->backward && op->kind == FTH_KIND_linear)
            chosen += ask(t, i, op->in, op->n_in, op->out[LINEAR_Y]);
    }
    return chosen;
}

/* A forward operation once more, as one of the backward. */
static fth_err add_copy(survey *t, const fth_op *op, const fth_op *reader, fth_op *out) {
    fth_graph *g = t->g;
    const bool norm = is_norm(op);
    const int n_in = norm ? JOIN_N_IN : op->n_in, n_out = norm ? JOIN_N_OUT : op->n_out;
    fth_val *operands = fth_arena_alloc(&g->arena, sizeof *operands * (size_t)(n_in + n_out));
    if (!operands) return fth_fail(FTH_NO_MEMORY, "no memory for a graph");
    memset(operands, 0, sizeof *operands * (size_t)(n_in + n_out));
    *out = (fth_op){.kind = norm ? FTH_KIND_norm : op->kind,
                    .n_in = n_in,
                    .n_out = n_out,
                    .in = operands,
                    .out = operands + n_in,
                    .backward = true,
                    .stack = reader->stack,
                    .sub = reader->sub,
                    .layer = reader->layer};
    if (norm) {
        out->deferrable = !t->waited[op->out[JOIN_Y]];
        out->u.join.eps = op->u.join.eps;
        out->in[JOIN_X] = input_of(op);
        out->in[JOIN_GAIN] = op->in[JOIN_GAIN];
        out->in[JOIN_BIAS] = op->in[JOIN_BIAS];
        out->in[JOIN_GIVEN] = op->out[JOIN_STATS];
        out->out[JOIN_STATS] = fth_graph_like(g, op->out[JOIN_STATS]);
        out->out[JOIN_Y] = t->copy[op->out[JOIN_Y]] = fth_graph_like(g, op->out[JOIN_Y]);
        return g->err;
    }
    out->u = op->u;
    memcpy(out->in, op->in, sizeof *operands * (size_t)n_in);
    for (int k = 0; k < n_out; k++)
        if (op->out[k]) out->out[k] = t->copy[op->out[k]] = fth_graph_like(g, op->out[k]);
    return g->err;
}

/* An operand as the backward sees it. */
static fth_val renamed(survey *t, fth_val v) {
    const fth_val copy = t->copy[fth_owner(t->g, v)];
    if (!copy || !t->g->value[v].base) return copy ? copy : v;
    return fth_graph_columns(t->g, copy, t->g->value[v].column, t->g->value[v].width);
}

static fth_err rewrite(survey *t, int32_t chosen) {
    fth_graph *g = t->g;
    fth_op *ops = malloc(sizeof *ops * (size_t)(g->n_ops + chosen));
    if (!ops) return fth_fail(FTH_NO_MEMORY, "no memory for a graph");
    int32_t n = 0;
    fth_err err = FTH_OK;
    const fth_val n_values = g->n_values; /* t->copy covers the values of before */
    for (int32_t i = 0; i < g->n_ops && err == FTH_OK; i++) {
        fth_op *op = &g->op[i];
        if (t->maker_of[i] >= 0) err = add_copy(t, &g->op[t->maker_of[i]], op, &ops[n++]);
        for (int k = 0; op->backward && k < op->n_in; k++)
            if (op->in[k] < n_values) op->in[k] = renamed(t, op->in[k]);
        ops[n++] = *op;
    }
    if (err == FTH_OK) err = g->err;
    if (err != FTH_OK) {
        free(ops);
        return err;
    }
    free(g->op);
    g->op = ops;
    g->n_ops = n;
    g->cap_ops = g->n_ops;
    fth_graph_find_producers(g);
    return FTH_OK;
}

typedef enum pass_kind { NORMS, ATTENTION, PRODUCTS } pass_kind;

/* most: how many attentions or products. */
static fth_err pass(fth_graph *g, pass_kind what, int32_t most) {
    const size_t n_values = (size_t)g->n_values, n_ops = (size_t)g->n_ops;
    survey t = {.g = g,
                .reader = malloc(sizeof *t.reader * n_values),
                .last = malloc(sizeof *t.last * n_values),
                .kept = malloc(sizeof *t.kept * n_values),
                .waited = malloc(sizeof *t.waited * n_values),
                .copy = calloc(n_values, sizeof *t.copy),
                .maker_of = malloc(sizeof *t.maker_of * (n_ops + 1))};
    fth_err err = FTH_OK;
    if (!t.reader || !t.last || !t.kept || !t.waited || !t.copy || !t.maker_of)
        err = fth_fail(FTH_NO_MEMORY, "no memory for a graph");
    if (err == FTH_OK) {
        take_survey(&t);
        for (size_t i = 0; i < n_ops; i++) t.maker_of[i] = -1;
        const int32_t chosen = what == NORMS       ? choose_norms(&t)
                               : what == ATTENTION ? choose_attention(&t, most)
                                                   : choose_products(&t, most);
        if (chosen > 0) err = rewrite(&t, chosen);
    }
    free(t.reader);
    free(t.last);
    free(t.kept);
    free(t.waited);
    free(t.copy);
    free(t.maker_of);
    return err;
}

/* What is made again may read what the next pass makes again. */
fth_err fth_graph_recompute_values(fth_graph *g, fth_recompute_counts also) {
    if (also.attention > 0) FTH_TRY(pass(g, ATTENTION, also.attention));
    if (also.products > 0) FTH_TRY(pass(g, PRODUCTS, also.products));
    return pass(g, NORMS, 0);
}

fth_recompute_counts fth_graph_recomputable(const fth_graph *g) {
    fth_recompute_counts n = {0};
    for (int32_t i = 0; i < g->n_ops; i++) {
        const bool forward = !g->op[i].backward;
        n.attention += forward && g->op[i].kind == FTH_KIND_attention;
        n.products += forward && g->op[i].kind == FTH_KIND_linear;
    }
    return n;
}
