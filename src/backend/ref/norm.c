/* norm.c: layer normalisation (doc/mathematics.md#layer-norm): y = g xhat + b, xhat = (x - mean) /
 * s. Backward with u = g dy: dx = (u - mean(u) - xhat mean(u xhat)) / s, dg += dy xhat, db += dy.
 */
#include "backend/ref/ref.h"

#include <math.h>

void fth_ref_norm_row(fth_exec *ex, const fth_op *op, const fth_tensor *x, int64_t row) {
    const fth_tensor *gain = fth_arg(ex, op->in[JOIN_GAIN]), *bias = fth_arg(ex, op->in[JOIN_BIAS]);
    const fth_tensor *y = fth_arg(ex, op->out[JOIN_Y]), *stats = fth_arg(ex, op->out[JOIN_STATS]);
    double mean = 0, var = 0;
    for (int32_t c = 0; c < x->width; c++) mean += fth_ref_get(x, row, c);
    mean /= x->width;
    for (int32_t c = 0; c < x->width; c++) var += pow(fth_ref_get(x, row, c) - mean, 2);
    const double rstd = 1 / sqrt(var / x->width + op->u.join.eps);
    for (int32_t c = 0; c < x->width; c++) {
        double xhat = (fth_ref_get(x, row, c) - mean) * rstd;
        fth_ref_put(y, row, c, fth_ref_get(gain, 0, c) * xhat + fth_ref_get(bias, 0, c));
    }
    if (!stats) return;
    fth_ref_put(stats, row, 0, mean);
    fth_ref_put(stats, row, 1, rstd);
}

void fth_ref_norm_row_bwd(fth_exec *ex, const fth_op *op, int64_t row, double *dz) {
    const fth_tensor *dy = fth_arg(ex, op->in[JOIN_BWD_DY]);
    const fth_tensor *addend = fth_arg(ex, op->in[JOIN_BWD_DZ]);
    const fth_tensor *z = fth_arg(ex, op->in[JOIN_BWD_Z]);
    const fth_tensor *stats = fth_arg(ex, op->in[JOIN_BWD_STATS]);
    const fth_tensor *gain = fth_arg(ex, op->in[JOIN_BWD_GAIN]);
    const fth_tensor *dgain = fth_arg(ex, op->out[JOIN_BWD_DGAIN]);
    const fth_tensor *dbias = fth_arg(ex, op->out[JOIN_BWD_DBIAS]);
    const double mean = fth_ref_get(stats, row, 0), rstd = fth_ref_get(stats, row, 1);
    double mean_u = 0, mean_ux = 0;
    for (int32_t c = 0; c < z->width; c++) {
        const double g = fth_ref_get(dy, row, c), xhat = (fth_ref_get(z, row, c) - mean) * rstd;
        const double u = fth_ref_get(gain, 0, c) * g;
        mean_u += u / z->width;
        mean_ux += u * xhat / z->width;
        if (dgain) fth_ref_add_to(dgain, 0, c, g * xhat);
        if (dbias) fth_ref_add_to(dbias, 0, c, g);
    }
    for (int32_t c = 0; c < z->width; c++) {
        const double xhat = (fth_ref_get(z, row, c) - mean) * rstd;
        const double u = fth_ref_get(gain, 0, c) * fth_ref_get(dy, row, c);
        dz[c] = (u - mean_u - xhat * mean_ux) * rstd;
        if (addend) dz[c] += fth_ref_get(addend, row, c);
    }
}

fth_err fth_ref_norm(fth_exec *ex, const fth_op *op) {
    const fth_tensor *x = fth_arg(ex, op->in[JOIN_X]);
    for (int64_t row = 0; row < fth_rows_now(ex, x); row++) fth_ref_norm_row(ex, op, x, row);
    return FTH_OK;
}

fth_err fth_ref_norm_bwd(fth_exec *ex, const fth_op *op) {
    const fth_tensor *dx = fth_arg(ex, op->out[JOIN_BWD_DX]);
    double *dz = ex->scratch; /* [d] */
    const int64_t rows = fth_rows_now(ex, fth_arg(ex, op->in[JOIN_BWD_DY]));
    for (int64_t row = 0; row < rows; row++) {
        fth_ref_norm_row_bwd(ex, op, row, dz);
        for (int32_t c = 0; dx && c < dx->width; c++) fth_ref_put(dx, row, c, dz[c]);
    }
    return FTH_OK;
}

int64_t fth_ref_norm_bwd_scratch(const fth_device *dev, const fth_graph *g, const fth_op *op,
                                 const int64_t capacity[FTH_N_EXTENTS]) {
    (void)dev, (void)capacity;
    return g->value[op->in[JOIN_BWD_DY]].width * (int64_t)sizeof(double);
}
