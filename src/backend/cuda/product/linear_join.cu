/* linear_join.cu: which products are made together with what follows them, on GPUs with the
 * products of sm_90a, in bf16: by the joins that read them, where rows have 256, 512 or 1024
 * columns and there are enough that blocks of 128 fill the GPU; and with the slope of ReLU. */
#include "backend/cuda/product/linear_join.cuh"

#include <stdlib.h>

/* Fewer rows leave more than half of the GPU idle. */
enum { LEAST_ROWS = 4225 };

static bool is_width(int64_t width) {
    return width == 256 || width == 512 || width == 1024;
}

/* Whether rows can be fetched by the copy engine. */
static bool is_mapped(const fth_tensor *t) {
    return t && is_bf16(t) && is_wide(t);
}

static bool is_bf16_or_absent(const fth_tensor *t) {
    return !t || is_mapped(t);
}

static fth_linear_join operands_of(const fth_exec *ex, const fth_op *product, bool keeps) {
    fth_linear_join l = {};
    l.keeps = keeps;
    if (product->kind == FTH_KIND_linear) {
        l.x = fth_arg(ex, product->in[LINEAR_X]), l.w = fth_arg(ex, product->in[LINEAR_W]);
        l.bias = fth_arg(ex, product->in[LINEAR_B]);
    } else {
        l.x = fth_arg(ex, product->in[LINEAR_DX_DY]), l.w = fth_arg(ex, product->in[LINEAR_DX_W]);
        l.addend = fth_arg(ex, product->in[LINEAR_DX_ADDEND]);
    }
    return l;
}

/* width: of a row; depth: what is summed over. */
static bool can_multiply(const fth_linear_join *l, int64_t width, int64_t depth) {
    return is_mapped(l->x) && is_mapped(l->w) && is_bf16_or_absent(l->addend) && is_width(width) &&
           depth % 64 == 0 && depth >= 256 && l->x->rows >= LEAST_ROWS;
}

static bool is_scalar(const fth_coef *c) {
    return c->kind != FTH_COEF_VECTOR;
}

static bool can_join(const fth_exec *ex, const fth_op *product, const fth_op *op) {
    const fth_linear_join l = operands_of(ex, product, false);
    if (op->kind == FTH_KIND_join_norm)
        return can_multiply(&l, l.w->rows, l.w->width) && is_scalar(&op->u.join.r) &&
               is_scalar(&op->u.join.a) && !op->in[JOIN_E] && op->out[JOIN_Z] &&
               is_mapped(fth_arg(ex, op->in[JOIN_X])) && is_mapped(fth_arg(ex, op->in[JOIN_F])) &&
               is_mapped(fth_arg(ex, op->out[JOIN_Z])) && is_mapped(fth_arg(ex, op->out[JOIN_Y]));
    const fth_tensor *dy = fth_arg(ex, op->in[JOIN_BWD_DY]);
    /* an addend in another place than dy's has to be there yet */
    const bool there = !l.addend || l.addend->data == dy->data || op == product + 1;
    return can_multiply(&l, l.w->width, l.w->rows) && there && fth_join_is_fast(op, dy->width) &&
           !op->in[JOIN_BWD_DZ] && !op->out[JOIN_BWD_DE] && is_mapped(dy) &&
           is_mapped(fth_arg(ex, op->in[JOIN_BWD_Z])) &&
           is_bf16_or_absent(fth_arg(ex, op->out[JOIN_BWD_DX])) &&
           is_bf16_or_absent(fth_arg(ex, op->out[JOIN_BWD_DF]));
}

/* How often values are read, each with its views: readers [n_values]. */
static void count_readers(const fth_graph *g, int32_t *readers) {
    for (int32_t i = 0; i < g->n_ops; i++)
        for (int k = 0; k < g->op[i].n_in; k++) {
            const fth_val v = g->op[i].in[k];
            readers[g->value[v].base ? g->value[v].base : v]++;
        }
}

/* Whether the bias's gradient that a join sums up is that of x, and not of the branch. */
static bool sums_x(const fth_graph *g, int32_t bias_maker, const fth_op *op) {
    return op->kind == FTH_KIND_join_norm_bwd && bias_maker >= 0 && op->out[JOIN_BWD_DF] &&
           g->op[bias_maker].in[LINEAR_DW_DY] != op->out[JOIN_BWD_DF];
}

fth_err fth_cuda_find_joined(const fth_exec *ex, const int32_t *bias_maker,
                             fth_cuda_joined **joined) {
    const fth_graph *g = ex->graph;
    fth_cuda_joined *found = (fth_cuda_joined *)malloc(sizeof *found * ((size_t)g->n_ops + 1));
    int32_t *readers = (int32_t *)calloc((size_t)g->n_values + 1, sizeof *readers);
    *joined = found; /* the program's, freed with it */
    if (!found || !readers) {
        free(readers);
        return fth_fail(FTH_NO_MEMORY, "no memory for a program");
    }
    count_readers(g, readers);
    for (int32_t j = 0; j < g->n_ops; j++) {
        found[j] = {-1, false};
        const int32_t i = fth_joined_product(g, j);
        if (i < 0 || !fth_cuda_has_wgmma() || !can_join(ex, &g->op[i], &g->op[j]) ||
            sums_x(g, bias_maker[j], &g->op[j]))
            continue;
        const fth_val v = g->op[i].out[0];
        found[i] = {j, false};
        found[j] = {i, readers[v] > 1 || g->value[v].keep};
    }
    free(readers);
    return FTH_OK;
}

static const fth_cuda_joined *joined_of(const fth_cuda_call *c) {
    return &c->program->joined[c->op - c->ex->graph->op];
}

bool fth_cuda_is_joined(const fth_cuda_call *c) {
    return joined_of(c)->other >= 0;
}

fth_linear_join fth_cuda_product_of(const fth_cuda_call *c) {
    const fth_cuda_joined *j = joined_of(c);
    return operands_of(c->ex, &c->ex->graph->op[j->other], j->keeps);
}

/* Blocks of 128 x 256 should fill the GPU. */
bool fth_cuda_can_slope(const fth_cuda_call *c) {
    const fth_linear_join l = operands_of(c->ex, c->op, false);
    const fth_tensor *saved = in_of(c, LINEAR_DX_SAVED), *dx = out_of(c, LINEAR_DX_DX);
    return saved && c->op->u.linear.act == FTH_ACT_RELU && fth_cuda_has_wgmma() && !l.addend &&
           is_mapped(l.x) && is_mapped(l.w) && is_mapped(saved) && is_mapped(dx) &&
           dx->width % 512 == 0 && l.w->rows % 64 == 0 && l.w->rows >= 256 &&
           dx->rows * dx->width >= (int64_t)c->gpu->processors * 128 * 256;
}

#ifdef FATHOM_HAS_SM90A
fth_err fth_cuda_linear_slope(const fth_cuda_call *c, float *db) {
    const fth_linear_join l = operands_of(c->ex, c->op, false);
    const fth_tensor *dx = out_of(c, LINEAR_DX_DX);
    float *parts = db ? fth_cuda_parts_place(c, false) : nullptr;
    FTH_TRY(fth_cuda_linear_slope_wgmma(c, &l, in_of(c, LINEAR_DX_SAVED), dx, parts));
    if (!db) return FTH_OK;
    const int64_t blocks = ceil_div(dx->rows, FTH_CUDA_JOINED_ROWS);
    return fth_cuda_add_parts(c, finish_bias(c, parts, db, blocks, dx->width), false);
}

fth_err fth_cuda_linear_join(const fth_cuda_call *c) {
    const fth_linear_join l = fth_cuda_product_of(c);
    return fth_cuda_linear_join_wgmma(c, &l);
}

fth_err fth_cuda_linear_join_bwd(const fth_cuda_call *c, const bwd_args<bf16> &join) {
    const fth_linear_join l = fth_cuda_product_of(c);
    return fth_cuda_linear_join_wgmma_bwd(c, &l, join);
}
#else
static fth_err not_compiled(void) {
    return fth_fail(FTH_FAILED, "a product with what follows it: not compiled for sm_90a");
}

fth_err fth_cuda_linear_slope(const fth_cuda_call *, float *) {
    return not_compiled();
}

fth_err fth_cuda_linear_join(const fth_cuda_call *) {
    return not_compiled();
}

fth_err fth_cuda_linear_join_bwd(const fth_cuda_call *, const bwd_args<bf16> &) {
    return not_compiled();
}
#endif
