/* bias_sums.cu: which operation makes the gradient of a bias. It is the sum over rows of dy, the
 * gradient of the linear operation's output. Where a join's backward, an activation's slope or
 * attention's backward makes dy, it has every row in its registers anyway and sums up on the way;
 * otherwise linear_dw reads dy once more. */
#include <stdlib.h>

#include "backend/cuda/attention/attention.cuh"
#include "backend/cuda/join/join_bwd.cuh"

/* Whether an attention's backward makes all of dy: queries, keys and values of one linear
 * operation. */
static bool makes_all(const fth_graph *g, const fth_op *op, fth_val dy) {
    int32_t width = 0;
    for (int k = 0; k < 3; k++) {
        const fth_val v = op->out[ATT_BWD_DQ + k];
        if (!v || g->value[v].base != dy) return false;
        width += g->value[v].width;
    }
    return width == g->value[dy].width;
}

/* Whether the operation can sum up dy, which it makes. */
static bool can_sum(const fth_exec *ex, const fth_cuda_program *p, const fth_op *op, fth_val dy) {
    const fth_graph *g = ex->graph;
    if (op->kind == FTH_KIND_linear_dx) return op->in[LINEAR_DX_SAVED] != 0;
    if (op->kind == FTH_KIND_attention_bwd)
        return makes_all(g, op, dy) && fth_cuda_attention_sums(ex, p, op);
    return fth_is_join_bwd(op) && fth_join_is_fast(op, g->value[dy].width);
}

/* Who makes the value, or the first of its columns; -1: nobody. */
static int32_t maker_of(const fth_graph *g, const int32_t *first_columns, fth_val v) {
    return g->value[v].producer >= 0 ? g->value[v].producer : first_columns[v];
}

static int by_offset(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* A bias of several linear operations: one writer at a time, so nobody sums for them. */
static bool is_shared(const int64_t *offsets, int32_t n, int64_t offset) {
    const int64_t *at =
        (const int64_t *)bsearch(&offset, offsets, (size_t)n, sizeof *at, by_offset);
    return (at > offsets && at[-1] == offset) || (at + 1 < offsets + n && at[1] == offset);
}

/* Offsets of the gradients of all biases, sorted; returns how many. */
static int32_t list_biases(const fth_graph *g, int64_t *offsets) {
    int32_t n = 0;
    for (int32_t i = 0; i < g->n_ops; i++) {
        const fth_op *op = &g->op[i];
        if (op->kind == FTH_KIND_linear_dw && op->out[LINEAR_DW_DB])
            offsets[n++] = g->value[op->out[LINEAR_DW_DB]].offset;
    }
    qsort(offsets, (size_t)n, sizeof *offsets, by_offset);
    return n;
}

/* [n_values] the operation that makes a value's first columns as a value of their own; -1: there is
 * none. */
static void find_first_columns(const fth_graph *g, int32_t *maker) {
    for (fth_val v = 0; v < g->n_values; v++) maker[v] = -1;
    for (int32_t i = 0; i < g->n_ops; i++)
        for (int k = 0; k < g->op[i].n_out; k++) {
            const fth_value *x = &g->value[g->op[i].out[k]];
            if (x->base && x->column == 0) maker[x->base] = i;
        }
}

fth_err fth_cuda_find_bias_makers(const fth_exec *ex, fth_cuda_program *p) {
    const fth_graph *g = ex->graph;
    int64_t *offsets = (int64_t *)malloc(sizeof *offsets * ((size_t)g->n_ops + 1));
    int32_t *found = (int32_t *)malloc(sizeof *found * ((size_t)g->n_ops + 1));
    int32_t *first_columns = (int32_t *)malloc(sizeof *first_columns * (size_t)g->n_values);
    p->bias_maker = found; /* the program's, freed with it */
    if (!offsets || !found || !first_columns) {
        free(offsets);
        free(first_columns);
        return fth_fail(FTH_NO_MEMORY, "no memory for a program");
    }
    const int32_t n = list_biases(g, offsets);
    find_first_columns(g, first_columns);
    for (int32_t i = 0; i < g->n_ops; i++) found[i] = -1;
    for (int32_t i = 0; i < g->n_ops; i++) {
        const fth_op *op = &g->op[i];
        if (op->kind != FTH_KIND_linear_dw || !op->out[LINEAR_DW_DB]) continue;
        const fth_val dy = op->in[LINEAR_DW_DY];
        const int32_t maker = maker_of(g, first_columns, dy);
        if (maker < 0 || found[maker] >= 0 || !can_sum(ex, p, &g->op[maker], dy)) continue;
        if (is_shared(offsets, n, g->value[op->out[LINEAR_DW_DB]].offset)) continue;
        found[maker] = i;
        found[i] = maker;
    }
    free(offsets);
    free(first_columns);
    return FTH_OK;
}

const fth_op *fth_cuda_bias_made_by(const fth_cuda_call *c) {
    const fth_op *all = c->ex->graph->op;
    const int32_t other = c->program->bias_maker[c->op - all];
    return other < 0 ? nullptr : &all[other];
}
