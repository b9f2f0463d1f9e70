/* update.c: Adam's update of one matrix, by the functions for flat arenas. */
#include <math.h>

#include "backend/ref/ref.h"

fth_err fth_ref_update(fth_exec *ex, const fth_op *op) {
    const fth_tensor *grad = fth_arg(ex, op->in[UPDATE_GRAD]);
    const fth_tensor *loss = fth_arg(ex, op->in[UPDATE_LOSS]);
    const fth_tensor *weights = fth_arg(ex, op->out[UPDATE_WEIGHTS]);
    const fth_tensor *sums = fth_arg(ex, op->out[UPDATE_SUMS]);
    const int64_t n = grad->rows * grad->width;
    const fth_arenas a = {.n = n,
                          .master = fth_arg(ex, op->out[UPDATE_MASTER])->data,
                          .weights = weights->data,
                          .grad = grad->data,
                          .grads = n,
                          .m = fth_arg(ex, op->out[UPDATE_M])->data,
                          .v = fth_arg(ex, op->out[UPDATE_V])->data};
    const fth_adam_range range = {
        .end = n, .lr_scale = ex->step.rate[op->u.update.rate] * op->u.update.share};
    fth_adam adam = ex->step.adam;
    adam.grad_scale = 1;
    adam.range = &range;
    adam.n_ranges = 1;
    double found[FTH_RANGE_SUMS];
    FTH_TRY(fth_ref_sum_squares(ex->device, grad->data, n, &found[FTH_RANGE_GRAD]));
    const bool moves =
        adam.update > 0 && isfinite(fth_ref_get(loss, 0, 0)) && isfinite(found[FTH_RANGE_GRAD]);
    if (moves) FTH_TRY(fth_ref_adam(ex->device, &a, &adam));
    if (moves) FTH_TRY(fth_ref_refresh_weights(ex->device, &a));
    if (!moves) adam.lr = 0;
    if (op->u.update.watched) FTH_TRY(fth_ref_range_sums(ex->device, &a, &adam, found));
    for (int k = 0; k < FTH_RANGE_SUMS; k++)
        fth_ref_put(sums, 0, k, k && !op->u.update.watched ? 0 : sqrt(found[k]));
    return FTH_OK;
}
