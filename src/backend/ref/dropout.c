/* dropout.c: y = D(x); linear, so it is its own backward. */
#include "backend/ref/ref.h"

fth_err fth_ref_dropout(fth_exec *ex, const fth_op *op) {
    const fth_tensor *x = fth_arg(ex, op->in[DROP_X]), *y = fth_arg(ex, op->out[DROP_Y]);
    for (int64_t row = 0; row < fth_rows_now(ex, y); row++)
        for (int32_t c = 0; c < y->width; c++) {
            double factor = fth_ref_drop_at(ex, &op->u.dropout.drop, y, row, c);
            fth_ref_put(y, row, c, factor * fth_ref_get(x, row, c));
        }
    return FTH_OK;
}
