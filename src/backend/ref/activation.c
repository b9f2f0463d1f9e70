/* activation.c: y = act(x); dx = dy * act'(saved) (doc/mathematics.md#sub-layers; GELU in its erf
 * form). */
#include "backend/ref/ref.h"

#include <math.h>

/* Phi, the distribution function of the normal distribution. */
static double normal_cdf(double x) {
    return 0.5 * erfc(-x * M_SQRT1_2);
}

double fth_ref_act(fth_act act, double x) {
    switch (act) {
    case FTH_ACT_RELU: return x < 0 ? 0 : x; /* a NaN stays one */
    case FTH_ACT_GELU: return x * normal_cdf(x);
    case FTH_ACT_TANH: return tanh(x);
    default: return x;
    }
}

double fth_ref_act_slope(fth_act act, double saved) {
    switch (act) {
    case FTH_ACT_RELU: return saved > 0 ? 1 : 0;
    case FTH_ACT_GELU:
        return normal_cdf(saved) + saved * exp(-0.5 * saved * saved) / sqrt(2 * M_PI);
    case FTH_ACT_TANH: return 1 - saved * saved;
    default: return 1;
    }
}

fth_err fth_ref_activation(fth_exec *ex, const fth_op *op) {
    const fth_tensor *x = fth_arg(ex, op->in[ACT_X]), *y = fth_arg(ex, op->out[ACT_Y]);
    for (int64_t row = 0; row < fth_rows_now(ex, y); row++)
        for (int32_t c = 0; c < y->width; c++)
            fth_ref_put(y, row, c, fth_ref_act(op->u.linear.act, fth_ref_get(x, row, c)));
    return FTH_OK;
}

fth_err fth_ref_activation_bwd(fth_exec *ex, const fth_op *op) {
    const fth_tensor *dy = fth_arg(ex, op->in[ACT_BWD_DY]);
    const fth_tensor *saved = fth_arg(ex, op->in[ACT_BWD_SAVED]);
    const fth_tensor *dx = fth_arg(ex, op->out[ACT_BWD_DX]);
    for (int64_t row = 0; row < fth_rows_now(ex, dx); row++)
        for (int32_t c = 0; c < dx->width; c++) {
            double slope = fth_ref_act_slope(op->u.linear.act, fth_ref_get(saved, row, c));
            fth_ref_put(dx, row, c, fth_ref_get(dy, row, c) * slope);
        }
    return FTH_OK;
}
