/* unfold.c: what a convolution over time reads, and the gate behind it. A row holds `per_row` steps
 * of its sentence, step after step. unfold: y[r, c * 5 + k] = channel c of step per_row * r + first
 * + k, 0 outside of the sentence; its gradient gathers. glu: y = a sigmoid(b), a and b the halves
 * of x; with two inputs their gates stand beside one another, and the second is 0 where the batch
 * hides it. */
#include "backend/ref/ref.h"

#include <math.h>

/* Row of the value that holds a step of the sentence of `row`, and which of its steps; -1: there is
 * none. */
static int64_t step_at(const fth_packed_side *side, int64_t row, int64_t step, int64_t per_row,
                       int64_t *within) {
    const int32_t *offsets = side->offsets + side->sentence[row];
    const int64_t at = step + per_row * side->pos[row];
    if (at < 0 || at >= per_row * (offsets[1] - offsets[0])) return -1;
    *within = at % per_row;
    return offsets[0] + at / per_row;
}

fth_err fth_ref_unfold(fth_exec *ex, const fth_op *op) {
    const fth_tensor *x = fth_arg(ex, op->in[UNFOLD_X]), *y = fth_arg(ex, op->out[UNFOLD_Y]);
    const int32_t per_row = op->u.unfold.per_row, channels = x->width / per_row;
    for (int64_t row = 0; row < fth_rows_now(ex, y); row++)
        for (int32_t k = 0; k < FTH_KERNEL; k++) {
            int64_t within = 0;
            const int64_t from =
                step_at(&ex->batch.side[FTH_SRC], row, op->u.unfold.first + k, per_row, &within);
            for (int32_t c = 0; c < channels; c++)
                fth_ref_put(y, row, c * FTH_KERNEL + k,
                            from < 0 ? 0 : fth_ref_get(x, from, (int32_t)within * channels + c));
        }
    return FTH_OK;
}

fth_err fth_ref_unfold_bwd(fth_exec *ex, const fth_op *op) {
    const fth_tensor *dy = fth_arg(ex, op->in[UNFOLD_BWD_DY]);
    const fth_tensor *dx = fth_arg(ex, op->out[UNFOLD_BWD_DX]);
    const fth_packed_side *side = &ex->batch.side[FTH_SRC];
    const int32_t per_row = op->u.unfold.per_row, channels = dx->width / per_row;
    for (int64_t row = 0; row < fth_rows_now(ex, dx); row++)
        for (int32_t c = 0; c < dx->width; c++) {
            double sum = 0;
            for (int32_t k = 0; k < FTH_KERNEL;
                 k++) { /* readers: rows r with this step in their k */
                const int32_t step = c / channels - op->u.unfold.first - k;
                int64_t within = 0;
                const int64_t reader = step_at(side, row, step, per_row, &within);
                if (reader < 0 || within) continue;
                sum += fth_ref_get(dy, reader, c % channels * FTH_KERNEL + k);
            }
            fth_ref_put(dx, row, c, sum);
        }
    return FTH_OK;
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* Is the second gate of the row hidden? */
static bool is_hidden(const fth_exec *ex, int64_t row, int part) {
    return part == 1 && ex->batch.input.masked && ex->batch.input.masked[row];
}

fth_err fth_ref_glu(fth_exec *ex, const fth_op *op) {
    const fth_tensor *y = fth_arg(ex, op->out[GLU_Y]);
    for (int part = 0; part < 2; part++) {
        const fth_tensor *x = fth_arg(ex, op->in[GLU_X + part]);
        const int32_t width = x ? x->width / 2 : 0;
        for (int64_t row = 0; x && row < fth_rows_now(ex, y); row++)
            for (int32_t c = 0; c < width; c++) {
                const double gated =
                    fth_ref_get(x, row, c) * sigmoid(fth_ref_get(x, row, width + c));
                fth_ref_put(y, row, part * width + c, is_hidden(ex, row, part) ? 0 : gated);
            }
    }
    return FTH_OK;
}

fth_err fth_ref_glu_bwd(fth_exec *ex, const fth_op *op) {
    const fth_tensor *dy = fth_arg(ex, op->in[GLU_BWD_DY]);
    for (int part = 0; part < 2; part++) {
        const fth_tensor *x = fth_arg(ex, op->in[GLU_BWD_X + part]);
        const fth_tensor *dx = fth_arg(ex, op->out[GLU_BWD_DX + part]);
        const int32_t width = x ? x->width / 2 : 0;
        for (int64_t row = 0; x && row < fth_rows_now(ex, dy); row++)
            for (int32_t c = 0; c < width; c++) {
                const double g =
                    is_hidden(ex, row, part) ? 0 : fth_ref_get(dy, row, part * width + c);
                const double gate = sigmoid(fth_ref_get(x, row, width + c));
                fth_ref_put(dx, row, c, g * gate);
                fth_ref_put(dx, row, width + c, g * fth_ref_get(x, row, c) * gate * (1 - gate));
            }
    }
    return FTH_OK;
}
