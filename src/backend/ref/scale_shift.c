/* scale_shift.c: y = k s (x - c) with learned scalars s and c (doc/mathematics.md#rfixup) and a
 * constant k; an absent s is 1, an absent c is 0. dx = k s dy, ds += k <dy, x - c>, dc -= k s * sum
 * of dy. */
#include "backend/ref/ref.h"

fth_err fth_ref_scale_shift(fth_exec *ex, const fth_op *op) {
    const fth_tensor *x = fth_arg(ex, op->in[SHIFT_X]), *y = fth_arg(ex, op->out[SHIFT_Y]);
    const double s =
        (double)op->u.scale_shift.factor * fth_ref_scalar(fth_arg(ex, op->in[SHIFT_S]), 1);
    const double shift = fth_ref_scalar(fth_arg(ex, op->in[SHIFT_C]), 0);
    for (int64_t row = 0; row < fth_rows_now(ex, y); row++)
        for (int32_t c = 0; c < y->width; c++)
            fth_ref_put(y, row, c, s * (fth_ref_get(x, row, c) - shift));
    return FTH_OK;
}

fth_err fth_ref_scale_shift_bwd(fth_exec *ex, const fth_op *op) {
    const fth_tensor *dy = fth_arg(ex, op->in[SHIFT_BWD_DY]);
    const fth_tensor *x = fth_arg(ex, op->in[SHIFT_BWD_X]);
    const fth_tensor *dx = fth_arg(ex, op->out[SHIFT_BWD_DX]);
    const fth_tensor *ds = fth_arg(ex, op->out[SHIFT_BWD_DS]);
    const fth_tensor *dc = fth_arg(ex, op->out[SHIFT_BWD_DC]);
    const double k = (double)op->u.scale_shift.factor;
    const double s = k * fth_ref_scalar(fth_arg(ex, op->in[SHIFT_BWD_S]), 1);
    const double shift = fth_ref_scalar(fth_arg(ex, op->in[SHIFT_BWD_C]), 0);
    double sum = 0, product = 0;
    for (int64_t row = 0; row < fth_rows_now(ex, dy); row++)
        for (int32_t c = 0; c < dy->width; c++) {
            const double g = fth_ref_get(dy, row, c);
            sum += g;
            if (ds) product += g * (fth_ref_get(x, row, c) - shift);
            if (dx) fth_ref_put(dx, row, c, s * g);
        }
    if (ds) fth_ref_add_to(ds, 0, 0, k * product);
    if (dc) fth_ref_add_to(dc, 0, 0, -s * sum);
    return FTH_OK;
}
