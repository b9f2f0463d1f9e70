/* linear.c: y = act(x W^T + b); dx = (dy W + addend) * act'(saved), where act is that of the
 * operation that made x; dW += dy^T x, or = where dW is not kept, db += column sums of dy. */
#include "backend/ref/ref.h"

fth_err fth_ref_linear(fth_exec *ex, const fth_op *op) {
    const fth_tensor *x = fth_arg(ex, op->in[LINEAR_X]), *w = fth_arg(ex, op->in[LINEAR_W]);
    const fth_tensor *b = fth_arg(ex, op->in[LINEAR_B]);
    const fth_tensor *y = fth_arg(ex, op->out[LINEAR_Y]), *pre = fth_arg(ex, op->out[LINEAR_PRE]);
    for (int64_t row = 0; row < fth_rows_now(ex, y); row++)
        for (int32_t n = 0; n < y->width; n++) {
            double sum = b ? fth_ref_get(b, 0, n) : 0;
            for (int32_t k = 0; k < x->width; k++)
                sum += fth_ref_get(x, row, k) * fth_ref_get(w, n, k);
            if (pre) fth_ref_put(pre, row, n, sum);
            fth_ref_put(y, row, n, fth_ref_act(op->u.linear.act, sum));
        }
    return FTH_OK;
}

fth_err fth_ref_linear_dx(fth_exec *ex, const fth_op *op) {
    const fth_tensor *dy = fth_arg(ex, op->in[LINEAR_DX_DY]);
    const fth_tensor *w = fth_arg(ex, op->in[LINEAR_DX_W]);
    const fth_tensor *addend = fth_arg(ex, op->in[LINEAR_DX_ADDEND]);
    const fth_tensor *saved = fth_arg(ex, op->in[LINEAR_DX_SAVED]);
    const fth_tensor *dx = fth_arg(ex, op->out[LINEAR_DX_DX]);
    for (int64_t row = 0; row < fth_rows_now(ex, dx); row++)
        for (int32_t k = 0; k < dx->width; k++) {
            double sum = addend ? fth_ref_get(addend, row, k) : 0;
            for (int32_t n = 0; n < dy->width; n++)
                sum += fth_ref_get(dy, row, n) * fth_ref_get(w, n, k);
            if (saved) sum *= fth_ref_act_slope(op->u.linear.act, fth_ref_get(saved, row, k));
            fth_ref_put(dx, row, k, sum);
        }
    return FTH_OK;
}

fth_err fth_ref_linear_dw(fth_exec *ex, const fth_op *op) {
    const fth_tensor *dy = fth_arg(ex, op->in[LINEAR_DW_DY]);
    const fth_tensor *x = fth_arg(ex, op->in[LINEAR_DW_X]);
    const fth_tensor *dw = fth_arg(ex, op->out[LINEAR_DW_DW]);
    const fth_tensor *db = fth_arg(ex, op->out[LINEAR_DW_DB]);
    const int64_t rows = fth_rows_now(ex, dy);
    const bool adds = fth_adds_to(ex, op->out[LINEAR_DW_DW]);
    for (int32_t n = 0; n < dy->width; n++) {
        for (int32_t k = 0; k < x->width; k++) {
            double sum = 0;
            for (int64_t row = 0; row < rows; row++)
                sum += fth_ref_get(dy, row, n) * fth_ref_get(x, row, k);
            if (adds)
                fth_ref_add_to(dw, n, k, sum);
            else
                fth_ref_put(dw, n, k, sum);
        }
        double sum = 0;
        for (int64_t row = 0; row < rows; row++) sum += fth_ref_get(dy, row, n);
        if (db) fth_ref_add_to(db, 0, n, sum);
    }
    return FTH_OK;
}
