/* linear.cu: y = act(x W^T + b), dx = (dy W + addend) * act'(saved), dW += dy^T x (or =, where dW
 * is not kept), db += column sums of dy. 2 R n k operations each by cuBLASLt; bias and ReLU in the
 * product's epilogue, the slope in a pass over dx of its own (3 R k numbers), the sums where dy is
 * made (bias_sums.cu), else in a pass over dy (R n): cuBLASLt's own sums and slopes take longer.
 * Some products are made with what follows them instead (linear_join.cuh). */
#include "backend/cuda/activation.cuh"
#include "backend/cuda/product/column_sum.cuh"
#include "backend/cuda/product/gemm.cuh"
#include "backend/cuda/product/linear_join.cuh"

/* The bias as the epilogue wants it: of the output's type. */
static const void *bias_of(const fth_cuda_call *c, const fth_tensor *b) {
    if (!b) return nullptr;
    if (c->ex->device->real == FTH_F32) return b->data;
    return c->program->bias + c->program->bias_at[c->op - c->ex->graph->op];
}

fth_err fth_cuda_linear(const fth_cuda_call *c) {
    if (fth_cuda_is_joined(c)) return FTH_OK; /* made by the join */
    const fth_tensor *x = in_of(c, LINEAR_X), *w = in_of(c, LINEAR_W), *y = out_of(c, LINEAR_Y);
    const fth_tensor *pre = out_of(c, LINEAR_PRE);
    const fth_act act = c->op->u.linear.act;
    const fth_tensor *product = pre ? pre : y;
    fth_cuda_gemm g = {};
    g.type = g.out_type = x->dtype;
    g.b_turned = true;
    g.m = x->rows, g.n = w->rows, g.k = w->width;
    g.a = x->data, g.lda = x->ld;
    g.b = w->data, g.ldb = w->ld;
    g.d = product->data, g.ldd = product->ld;
    g.bias = bias_of(c, in_of(c, LINEAR_B));
    g.relu = act == FTH_ACT_RELU && !pre;
    FTH_TRY(fth_cuda_multiply(c, &g));
    if (act == FTH_ACT_NONE || g.relu) return FTH_OK;
    return fth_cuda_activate(c, act, product, y);
}

fth_err fth_cuda_linear_dx(const fth_cuda_call *c) {
    if (fth_cuda_is_joined(c)) return FTH_OK;
    const fth_op *dw = fth_cuda_bias_made_by(c);
    float *db = dw ? (float *)fth_arg(c->ex, dw->out[LINEAR_DW_DB])->data : nullptr;
    if (fth_cuda_can_slope(c)) return fth_cuda_linear_slope(c, db);
    const fth_tensor *dy = in_of(c, LINEAR_DX_DY), *w = in_of(c, LINEAR_DX_W);
    const fth_tensor *addend = in_of(c, LINEAR_DX_ADDEND), *saved = in_of(c, LINEAR_DX_SAVED);
    const fth_tensor *dx = out_of(c, LINEAR_DX_DX);
    fth_cuda_gemm g = {};
    g.type = g.out_type = dy->dtype;
    g.m = dy->rows, g.n = w->width, g.k = w->rows;
    g.a = dy->data, g.lda = dy->ld;
    g.b = w->data, g.ldb = w->ld;
    g.c = addend ? addend->data : nullptr, g.ldc = addend ? addend->ld : 0;
    g.d = dx->data, g.ldd = dx->ld;
    FTH_TRY(fth_cuda_multiply(c, &g));
    if (!saved) return FTH_OK;
    if (!db) return fth_cuda_through_activation(c, c->op->u.linear.act, dx, saved, dx);
    return fth_cuda_slope_sum(c, c->op->u.linear.act, dx, saved, db);
}

fth_err fth_cuda_linear_dw(const fth_cuda_call *c) {
    const fth_tensor *dy = in_of(c, LINEAR_DW_DY), *x = in_of(c, LINEAR_DW_X);
    const fth_tensor *dw = out_of(c, LINEAR_DW_DW), *db = out_of(c, LINEAR_DW_DB);
    fth_cuda_gemm g = {};
    g.type = dy->dtype, g.out_type = FTH_F32;
    g.a_turned = true;
    g.m = dy->width, g.n = x->width, g.k = dy->rows;
    g.a = dy->data, g.lda = dy->ld;
    g.b = x->data, g.ldb = x->ld;
    g.d = dw->data, g.ldd = dw->ld;
    if (fth_adds_to(c->ex, c->op->out[LINEAR_DW_DW])) g.c = g.d, g.ldc = g.ldd;
    FTH_TRY(fth_cuda_multiply(c, &g));
    return db && !fth_cuda_bias_made_by(c) ? fth_cuda_column_sum(c, dy, (float *)db->data) : FTH_OK;
}

int64_t fth_cuda_linear_dx_scratch(const fth_device *, const fth_graph *g, const fth_op *op,
                                   const int64_t capacity[FTH_N_EXTENTS]) {
    if (!op->in[LINEAR_DX_SAVED]) return 0;
    const fth_value *dx = &g->value[op->out[LINEAR_DX_DX]];
    const int64_t rows = dx->extent == FTH_ROWS_FIXED ? dx->rows : capacity[dx->extent];
    const int64_t alone = fth_cuda_column_sum_scratch(dx->width);
    const int64_t parts =
        ceil_div(rows, FTH_CUDA_JOINED_ROWS) * (int64_t)dx->width * (int64_t)sizeof(float);
    return alone > parts ? alone : parts;
}

int64_t fth_cuda_linear_dw_scratch(const fth_device *, const fth_graph *g, const fth_op *op,
                                   const int64_t[FTH_N_EXTENTS]) {
    return fth_cuda_column_sum_scratch(g->value[op->in[LINEAR_DW_DY]].width);
}
