/* head_scale.c: y = gamma_j x in block j of the columns (doc/mathematics.md#normformer); dx =
 * gamma_j dy, dgamma_j += <dy, x> over block j. */
#include "backend/ref/ref.h"

fth_err fth_ref_head_scale(fth_exec *ex, const fth_op *op) {
    const fth_tensor *x = fth_arg(ex, op->in[HEADS_X]), *gamma = fth_arg(ex, op->in[HEADS_GAMMA]);
    const fth_tensor *y = fth_arg(ex, op->out[HEADS_Y]);
    const int32_t block = y->width / op->u.head_scale.heads;
    for (int64_t row = 0; row < fth_rows_now(ex, y); row++)
        for (int32_t c = 0; c < y->width; c++)
            fth_ref_put(y, row, c, fth_ref_get(gamma, 0, c / block) * fth_ref_get(x, row, c));
    return FTH_OK;
}

fth_err fth_ref_head_scale_bwd(fth_exec *ex, const fth_op *op) {
    const fth_tensor *dy = fth_arg(ex, op->in[HEADS_BWD_DY]);
    const fth_tensor *x = fth_arg(ex, op->in[HEADS_BWD_X]);
    const fth_tensor *gamma = fth_arg(ex, op->in[HEADS_BWD_GAMMA]);
    const fth_tensor *dx = fth_arg(ex, op->out[HEADS_BWD_DX]);
    const fth_tensor *dgamma = fth_arg(ex, op->out[HEADS_BWD_DGAMMA]);
    const int32_t block = dy->width / op->u.head_scale.heads;
    for (int64_t row = 0; row < fth_rows_now(ex, dy); row++)
        for (int32_t c = 0; c < dy->width; c++) {
            const double g = fth_ref_get(dy, row, c);
            if (dx) fth_ref_put(dx, row, c, fth_ref_get(gamma, 0, c / block) * g);
            if (dgamma) fth_ref_add_to(dgamma, 0, c / block, g * fth_ref_get(x, row, c));
        }
    return FTH_OK;
}
