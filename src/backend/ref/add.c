/* add.c: y = a + b; y may share its place with a. */
#include "backend/ref/ref.h"

fth_err fth_ref_add(fth_exec *ex, const fth_op *op) {
    const fth_tensor *a = fth_arg(ex, op->in[ADD_A]), *b = fth_arg(ex, op->in[ADD_B]);
    const fth_tensor *y = fth_arg(ex, op->out[ADD_Y]);
    for (int64_t row = 0; row < fth_rows_now(ex, y); row++)
        for (int32_t c = 0; c < y->width; c++)
            fth_ref_put(y, row, c, fth_ref_get(a, row, c) + fth_ref_get(b, row, c));
    return FTH_OK;
}
