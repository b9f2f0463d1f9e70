/* square.c: loss = (x - value)^2, summed over the sentences; dx = 2 (x - value) loss_scale. */
#include "backend/ref/ref.h"

fth_err fth_ref_square(fth_exec *ex, const fth_op *op) {
    const fth_tensor *x = fth_arg(ex, op->in[SQUARE_X]);
    const fth_tensor *loss = fth_arg(ex, op->out[SQUARE_LOSS]);
    const fth_tensor *dx = fth_arg(ex, op->out[SQUARE_DX]);
    double sum = 0;
    for (int64_t row = 0; row < fth_rows_now(ex, x); row++) {
        const double off = fth_ref_get(x, row, 0) - (double)ex->batch.values[row];
        sum += off * off;
        if (dx) fth_ref_put(dx, row, 0, 2 * off * ex->step.loss_scale);
    }
    for (int k = 0; k < 2; k++) fth_ref_put(loss, 0, k, sum);
    return FTH_OK;
}
