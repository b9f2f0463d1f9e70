/* join_norm.c: z = r x + a D(f) + c e and y = LN(z) in one operation: a join, then a norm. */
#include "backend/ref/ref.h"

fth_err fth_ref_join_norm(fth_exec *ex, const fth_op *op) {
    const fth_tensor *z = fth_arg(ex, op->out[JOIN_Z]);
    for (int64_t row = 0; row < fth_rows_now(ex, z); row++) {
        fth_ref_join_row(ex, op, row);
        fth_ref_norm_row(ex, op, z, row);
    }
    return FTH_OK;
}

fth_err fth_ref_join_norm_bwd(fth_exec *ex, const fth_op *op) {
    double *dz = ex->scratch; /* [d] */
    const int64_t rows = fth_rows_now(ex, fth_arg(ex, op->in[JOIN_BWD_DY]));
    for (int64_t row = 0; row < rows; row++) {
        fth_ref_norm_row_bwd(ex, op, row, dz);
        fth_ref_join_row_bwd(ex, op, row, dz);
    }
    return FTH_OK;
}
