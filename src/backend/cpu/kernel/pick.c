/* pick.c: y = some rows of x: the first of every sentence, or those with a target; y = mean of x
 * over the rows of every sentence; and their gradients. One pass over the rows each, bound by
 * memory. */
#include "backend/cpu/kernel/kernel.h"

/* ---- pick ---- */

/* Which row of the source row k of a pick is. */
static int64_t picked_row(const fth_exec *ex, const fth_op *op, int64_t k) {
    return op->u.pick.what == FTH_PICK_FIRST ? ex->batch.side[FTH_SRC].offsets[k]
                                             : ex->batch.picked[k];
}

FTH_PART(pick) {
    const fth_tensor *t = fth_arg(ex, op->out[PICK_Y]);
    const rows x = rows_of(ex, op->in[PICK_X]), y = rows_of(ex, op->out[PICK_Y]);
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t k = mine.begin; k < mine.end; k++)
        memcpy(y.data + k * y.ld, x.data + picked_row(ex, op, k) * x.ld,
               sizeof(real) * (size_t)t->width);
}

/* A thread has rows of its own: it clears them and writes those among them that were picked. */
FTH_PART(pick_bwd) {
    const fth_tensor *t = fth_arg(ex, op->out[PICK_BWD_DX]);
    const rows dy = rows_of(ex, op->in[PICK_BWD_DY]), dx = rows_of(ex, op->out[PICK_BWD_DX]);
    const size_t bytes = sizeof(real) * (size_t)t->width;
    const int64_t n = fth_rows_now(ex, fth_arg(ex, op->in[PICK_BWD_DY]));
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t row = mine.begin; row < mine.end; row++) memset(dx.data + row * dx.ld, 0, bytes);
    for (int64_t k = 0; k < n; k++) {
        const int64_t row = picked_row(ex, op, k);
        if (row >= mine.begin && row < mine.end)
            memcpy(dx.data + row * dx.ld, dy.data + k * dy.ld, bytes);
    }
}

/* ---- mean ---- */

FTH_SCRATCH(mean) {
    (void)capacity;
    return threads_scratch_bytes(dev, g->value[op->in[MEAN_X]].width);
}

FTH_PART(mean) {
    const fth_tensor *t = fth_arg(ex, op->out[MEAN_Y]);
    const rows x = rows_of(ex, op->in[MEAN_X]), y = rows_of(ex, op->out[MEAN_Y]);
    const int32_t *offsets = ex->batch.side[FTH_SRC].offsets, width = t->width;
    float *sum = thread_scratch(ex, team->thread, width); /* [d] */
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t s = mine.begin; s < mine.end; s++) {
        memset(sum, 0, sizeof *sum * (size_t)width);
        for (int64_t row = offsets[s]; row < offsets[s + 1]; row++) {
            const real *in = x.data + row * x.ld;
#pragma omp simd
            for (int32_t i = 0; i < width; i++) sum[i] += from_real(in[i]);
        }
        const float part = 1.0f / (float)(offsets[s + 1] - offsets[s]);
        real *out = y.data + s * y.ld;
#pragma omp simd
        for (int32_t i = 0; i < width; i++) out[i] = to_real(sum[i] * part);
    }
}

FTH_PART(mean_bwd) {
    const fth_tensor *t = fth_arg(ex, op->out[MEAN_BWD_DX]);
    const rows dy = rows_of(ex, op->in[MEAN_BWD_DY]), dx = rows_of(ex, op->out[MEAN_BWD_DX]);
    const int32_t *offsets = ex->batch.side[FTH_SRC].offsets, width = t->width;
    const fth_cpu_share mine = fth_team_share(team, ex->batch.n_sent, 1);
    for (int64_t s = mine.begin; s < mine.end; s++) {
        const float part = 1.0f / (float)(offsets[s + 1] - offsets[s]);
        const real *in = dy.data + s * dy.ld;
        for (int64_t row = offsets[s]; row < offsets[s + 1]; row++) {
            real *out = dx.data + row * dx.ld;
#pragma omp simd
            for (int32_t i = 0; i < width; i++) out[i] = to_real(from_real(in[i]) * part);
        }
    }
}

/* ---- square ---- */

/* Loss (x - value)^2 over the sentences with its gradient: a number for each, so one thread's
 * work. */
FTH_PART(square) {
    const fth_tensor *t = fth_arg(ex, op->in[SQUARE_X]);
    const rows x = rows_of(ex, op->in[SQUARE_X]), dx = rows_of(ex, op->out[SQUARE_DX]);
    float *loss = vector_of(ex, op->out[SQUARE_LOSS]);
    if (team->thread != 0 || !loss) return;
    const double scale = ex->step.loss_scale;
    double sum = 0;
    for (int64_t row = 0; row < fth_rows_now(ex, t); row++) {
        const double off = (double)from_real(x.data[row * x.ld]) - (double)ex->batch.values[row];
        sum += off * off;
        if (dx.data) dx.data[row * dx.ld] = to_real((float)(2 * off * scale));
    }
    loss[0] = loss[1] = (float)sum;
}
