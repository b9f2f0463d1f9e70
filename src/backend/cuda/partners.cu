/* partners.cu: which operation makes the gradient of a bias. It is the sum over rows of dy, the
 * gradient of the linear operation's output. Where a join's backward or an activation's slope makes
 * dy, it has every row in its registers anyway and sums up on the way; otherwise linear_dw reads dy
 * once more. */
#include <stdlib.h>

#include "backend/cuda/join_bwd.cuh"

/* Whether the operation can sum up dy, which it makes. */
static bool can_sum(const fth_graph *g, const fth_op *op, fth_val dy) {
    if (op->kind == FTH_KIND_linear_dx) return op->in[LINEAR_DX_SAVED] != 0;
    return fth_is_join_bwd(op) && fth_join_is_fast(op, g->value[dy].width);
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

fth_err fth_cuda_find_partners(const fth_graph *g, int32_t **partner) {
    int64_t *offsets = (int64_t *)malloc(sizeof *offsets * ((size_t)g->n_ops + 1));
    int32_t *found = (int32_t *)malloc(sizeof *found * ((size_t)g->n_ops + 1));
    *partner = found; /* the program's, freed with it */
    if (!offsets || !found) {
        free(offsets);
        return fth_fail(FTH_NO_MEMORY, "no memory for a program");
    }
    const int32_t n = list_biases(g, offsets);
    for (int32_t i = 0; i < g->n_ops; i++) found[i] = -1;
    for (int32_t i = 0; i < g->n_ops; i++) {
        const fth_op *op = &g->op[i];
        if (op->kind != FTH_KIND_linear_dw || !op->out[LINEAR_DW_DB]) continue;
        const fth_val dy = op->in[LINEAR_DW_DY];
        const int32_t maker = g->value[dy].producer;
        if (maker < 0 || found[maker] >= 0 || !can_sum(g, &g->op[maker], dy)) continue;
        if (is_shared(offsets, n, g->value[op->out[LINEAR_DW_DB]].offset)) continue;
        found[maker] = i;
        found[i] = maker;
    }
    free(offsets);
    return FTH_OK;
}

const fth_op *fth_cuda_partner(const fth_cuda_call *c) {
    const fth_op *all = c->ex->graph->op;
    const int32_t other = c->program->partner[c->op - all];
    return other < 0 ? nullptr : &all[other];
}
