/* mix.c: y = sum_k w_k x_k with learned scalars w_k (doc/mathematics.md#dlcl-pre-and-dlcl-post);
 * dx_k = addend_k + w_k dy, dw_k += <dy, x_k>. */
#include "backend/ref/ref.h"

fth_err fth_ref_mix(fth_exec *ex, const fth_op *op) {
    const fth_tensor *w = fth_arg(ex, op->in[MIX_W]), *y = fth_arg(ex, op->out[MIX_Y]);
    const int32_t n = op->n_in - MIX_X0;
    for (int64_t row = 0; row < fth_rows_now(ex, y); row++)
        for (int32_t c = 0; c < y->width; c++) {
            double sum = 0;
            for (int32_t k = 0; k < n; k++)
                sum += fth_ref_get(w, 0, k) * fth_ref_get(fth_arg(ex, op->in[MIX_X0 + k]), row, c);
            fth_ref_put(y, row, c, sum);
        }
    return FTH_OK;
}

fth_err fth_ref_mix_bwd(fth_exec *ex, const fth_op *op) {
    const fth_tensor *dy = fth_arg(ex, op->in[MIX_BWD_DY]), *w = fth_arg(ex, op->in[MIX_BWD_W]);
    const fth_tensor *dw = fth_arg(ex, op->out[MIX_BWD_DW]);
    const int32_t n = (op->n_in - MIX_BWD_X0) / 2;
    for (int32_t k = 0; k < n; k++) {
        const fth_tensor *x = fth_arg(ex, op->in[MIX_BWD_X0 + k]);
        const fth_tensor *addend = fth_arg(ex, op->in[MIX_BWD_X0 + n + k]);
        const fth_tensor *dx = fth_arg(ex, op->out[MIX_BWD_DX0 + k]);
        double product = 0;
        for (int64_t row = 0; row < fth_rows_now(ex, dy); row++)
            for (int32_t c = 0; c < dy->width; c++) {
                const double g = fth_ref_get(dy, row, c);
                if (dw) product += g * fth_ref_get(x, row, c);
                if (!dx) continue;
                double sum = addend ? fth_ref_get(addend, row, c) : 0;
                fth_ref_put(dx, row, c, sum + fth_ref_get(w, 0, k) * g);
            }
        if (dw) fth_ref_add_to(dw, 0, k, product);
    }
    return FTH_OK;
}
