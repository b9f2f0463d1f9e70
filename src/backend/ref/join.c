/* join.c: z = r x + a D(f) + c e, the sum that every residual method is made of
 * (doc/mathematics.md#one-form-for-all). dx = r dz, df = a D(dz), de = c dz; a learned coefficient
 * gets the product of its term and dz. */
#include "backend/ref/ref.h"

double fth_ref_coefficient(const fth_exec *ex, const fth_coef *coef, const fth_tensor *param,
                           int32_t c) {
    double value = fth_coef_now(ex, coef);
    if (coef->kind == FTH_COEF_SCALAR) value *= fth_ref_get(param, 0, 0);
    if (coef->kind == FTH_COEF_VECTOR) value *= fth_ref_get(param, 0, c);
    return value;
}

/* Adds g to the gradient of a learned coefficient at column c. */
static void add_to_coefficient(const fth_exec *ex, const fth_coef *coef, const fth_tensor *dparam,
                               int32_t c, double g) {
    fth_ref_add_to(dparam, 0, coef->kind == FTH_COEF_VECTOR ? c : 0, g * fth_coef_now(ex, coef));
}

/* The bit of column c, which is set in order of the columns: the first one clears the byte. */
static void put_bit(const fth_tensor *bits, int64_t row, int32_t c, bool on) {
    uint8_t *byte = (uint8_t *)bits->data + row * bits->ld + c / 8;
    *byte = (uint8_t)((c % 8 ? *byte : 0) | on << c % 8);
}

/* What the forward has multiplied element (row, c) of the branch with; shape: rows and width of
 * it. */
static double kept_at(const fth_exec *ex, const fth_op *op, const fth_tensor *shape, int64_t row,
                      int32_t c) {
    const fth_tensor *bits = fth_arg(ex, op->in[JOIN_BWD_KEPT]);
    if (!bits) return fth_ref_drop_at(ex, &op->u.join.drop, shape, row, c);
    const uint8_t byte = ((const uint8_t *)bits->data)[row * bits->ld + c / 8];
    return byte >> c % 8 & 1 ? (double)fth_drop_scale(op->u.join.drop.p) : 0;
}

void fth_ref_join_row(fth_exec *ex, const fth_op *op, int64_t row) {
    const fth_tensor *x = fth_arg(ex, op->in[JOIN_X]), *f = fth_arg(ex, op->in[JOIN_F]);
    const fth_tensor *e = fth_arg(ex, op->in[JOIN_E]), *z = fth_arg(ex, op->out[JOIN_Z]);
    const fth_tensor *r = fth_arg(ex, op->in[JOIN_R]), *a = fth_arg(ex, op->in[JOIN_A]);
    const fth_tensor *c = fth_arg(ex, op->in[JOIN_C]), *bits = fth_arg(ex, op->out[JOIN_KEPT]);
    for (int32_t i = 0; i < z->width; i++) {
        double sum = fth_ref_coefficient(ex, &op->u.join.r, r, i) * fth_ref_get(x, row, i);
        if (f) {
            double kept = fth_ref_drop_at(ex, &op->u.join.drop, f, row, i);
            if (bits) put_bit(bits, row, i, kept > 0);
            sum += fth_ref_coefficient(ex, &op->u.join.a, a, i) * kept * fth_ref_get(f, row, i);
        }
        if (e) sum += fth_ref_coefficient(ex, &op->u.join.c, c, i) * fth_ref_get(e, row, i);
        fth_ref_put(z, row, i, sum);
    }
}

void fth_ref_join_row_bwd(fth_exec *ex, const fth_op *op, int64_t row, const double *dz) {
    const fth_tensor *x = fth_arg(ex, op->in[JOIN_BWD_X]), *f = fth_arg(ex, op->in[JOIN_BWD_F]);
    const fth_tensor *e = fth_arg(ex, op->in[JOIN_BWD_E]), *r = fth_arg(ex, op->in[JOIN_BWD_R]);
    const fth_tensor *a = fth_arg(ex, op->in[JOIN_BWD_A]), *c = fth_arg(ex, op->in[JOIN_BWD_C]);
    const fth_tensor *dx = fth_arg(ex, op->out[JOIN_BWD_DX]);
    const fth_tensor *df = fth_arg(ex, op->out[JOIN_BWD_DF]);
    const fth_tensor *de = fth_arg(ex, op->out[JOIN_BWD_DE]);
    const fth_tensor *dr = fth_arg(ex, op->out[JOIN_BWD_DR]);
    const fth_tensor *da = fth_arg(ex, op->out[JOIN_BWD_DA]);
    const fth_tensor *dc = fth_arg(ex, op->out[JOIN_BWD_DC]);
    const fth_tensor *shape = fth_arg(ex, op->in[op->in[JOIN_BWD_DY] ? JOIN_BWD_DY : JOIN_BWD_DZ]);
    for (int32_t i = 0; i < shape->width; i++) {
        const double kept = kept_at(ex, op, shape, row, i);
        if (dr) add_to_coefficient(ex, &op->u.join.r, dr, i, dz[i] * fth_ref_get(x, row, i));
        if (da) add_to_coefficient(ex, &op->u.join.a, da, i, dz[i] * kept * fth_ref_get(f, row, i));
        if (dc) add_to_coefficient(ex, &op->u.join.c, dc, i, dz[i] * fth_ref_get(e, row, i));
        if (dx) fth_ref_put(dx, row, i, fth_ref_coefficient(ex, &op->u.join.r, r, i) * dz[i]);
        if (df)
            fth_ref_put(df, row, i, fth_ref_coefficient(ex, &op->u.join.a, a, i) * kept * dz[i]);
        if (de) fth_ref_put(de, row, i, fth_ref_coefficient(ex, &op->u.join.c, c, i) * dz[i]);
    }
}

fth_err fth_ref_join(fth_exec *ex, const fth_op *op) {
    const int64_t rows = fth_rows_now(ex, fth_arg(ex, op->out[JOIN_Z]));
    for (int64_t row = 0; row < rows; row++) fth_ref_join_row(ex, op, row);
    return FTH_OK;
}

fth_err fth_ref_join_bwd(fth_exec *ex, const fth_op *op) {
    const fth_tensor *t = fth_arg(ex, op->in[JOIN_BWD_DZ]);
    double *dz = ex->scratch; /* [d] */
    for (int64_t row = 0; row < fth_rows_now(ex, t); row++) {
        for (int32_t c = 0; c < t->width; c++) dz[c] = fth_ref_get(t, row, c);
        fth_ref_join_row_bwd(ex, op, row, dz);
    }
    return FTH_OK;
}

int64_t fth_ref_join_bwd_scratch(const fth_device *dev, const fth_graph *g, const fth_op *op,
                                 const int64_t capacity[FTH_N_EXTENTS]) {
    (void)dev, (void)capacity;
    return g->value[op->in[JOIN_BWD_DZ]].width * (int64_t)sizeof(double);
}
