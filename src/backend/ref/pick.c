/* pick.c: y = some rows of x: the first of every sentence, or those with a target; y = mean of x
 * over the rows of every sentence. Backward: dx = dy in those rows and 0 elsewhere; dx = dy /
 * rows. */
#include "backend/ref/ref.h"

/* Which row of the source row k of a pick is. */
static int64_t picked_row(const fth_exec *ex, const fth_op *op, int64_t k) {
    return op->u.pick.what == FTH_PICK_FIRST ? ex->batch.side[FTH_SRC].offsets[k]
                                             : ex->batch.picked[k];
}

fth_err fth_ref_pick(fth_exec *ex, const fth_op *op) {
    const fth_tensor *x = fth_arg(ex, op->in[PICK_X]), *y = fth_arg(ex, op->out[PICK_Y]);
    for (int64_t k = 0; k < fth_rows_now(ex, y); k++)
        for (int32_t c = 0; c < y->width; c++)
            fth_ref_put(y, k, c, fth_ref_get(x, picked_row(ex, op, k), c));
    return FTH_OK;
}

fth_err fth_ref_pick_bwd(fth_exec *ex, const fth_op *op) {
    const fth_tensor *dy = fth_arg(ex, op->in[PICK_BWD_DY]);
    const fth_tensor *dx = fth_arg(ex, op->out[PICK_BWD_DX]);
    for (int64_t row = 0; row < fth_rows_now(ex, dx); row++)
        for (int32_t c = 0; c < dx->width; c++) fth_ref_put(dx, row, c, 0);
    for (int64_t k = 0; k < fth_rows_now(ex, dy); k++)
        for (int32_t c = 0; c < dx->width; c++)
            fth_ref_put(dx, picked_row(ex, op, k), c, fth_ref_get(dy, k, c));
    return FTH_OK;
}

fth_err fth_ref_mean(fth_exec *ex, const fth_op *op) {
    const fth_tensor *x = fth_arg(ex, op->in[MEAN_X]), *y = fth_arg(ex, op->out[MEAN_Y]);
    const int32_t *offsets = ex->batch.side[FTH_SRC].offsets;
    for (int64_t s = 0; s < fth_rows_now(ex, y); s++)
        for (int32_t c = 0; c < y->width; c++) {
            double sum = 0;
            for (int64_t row = offsets[s]; row < offsets[s + 1]; row++)
                sum += fth_ref_get(x, row, c);
            fth_ref_put(y, s, c, sum / (double)(offsets[s + 1] - offsets[s]));
        }
    return FTH_OK;
}

fth_err fth_ref_mean_bwd(fth_exec *ex, const fth_op *op) {
    const fth_tensor *dy = fth_arg(ex, op->in[MEAN_BWD_DY]);
    const fth_tensor *dx = fth_arg(ex, op->out[MEAN_BWD_DX]);
    const int32_t *offsets = ex->batch.side[FTH_SRC].offsets;
    for (int64_t s = 0; s < fth_rows_now(ex, dy); s++)
        for (int64_t row = offsets[s]; row < offsets[s + 1]; row++)
            for (int32_t c = 0; c < dx->width; c++)
                fth_ref_put(dx, row, c,
                            fth_ref_get(dy, s, c) / (double)(offsets[s + 1] - offsets[s]));
    return FTH_OK;
}
