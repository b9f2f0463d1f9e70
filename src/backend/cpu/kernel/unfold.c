/* unfold.c: what a convolution over time reads, its gradient, and the gate behind it: one pass over
 * the rows each, bound by memory. */
#include "backend/cpu/kernel/kernel.h"

#include <math.h>

/* The steps of the sentence of a row, counted from the row's first one: [first, end). */
static fth_cpu_share steps_of(const fth_exec *ex, int64_t row, int64_t per_row) {
    const fth_packed_side *side = &ex->batch.side[FTH_SRC];
    const int64_t left = side->offsets[side->sentence[row] + 1] - row;
    return (fth_cpu_share){-per_row * side->pos[row], per_row * left};
}

/* Steps lie end to end where the leading dimension is the width: then a step has its number
 * alone. */
static const real *step_of(rows x, int64_t row, int64_t step, int64_t per_row, int64_t channels) {
    const int64_t at = row * per_row + step;
    return x.data + at / per_row * x.ld + at % per_row * channels;
}

FTH_PART(unfold) {
    const fth_tensor *t = fth_arg(ex, op->out[UNFOLD_Y]);
    const rows x = rows_of(ex, op->in[UNFOLD_X]), y = rows_of(ex, op->out[UNFOLD_Y]);
    const int64_t per_row = op->u.unfold.per_row, first = op->u.unfold.first;
    const int64_t channels = t->width / FTH_KERNEL;
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t row = mine.begin; row < mine.end; row++) {
        const fth_cpu_share steps = steps_of(ex, row, per_row);
        real *out = y.data + row * y.ld;
        for (int64_t k = 0; k < FTH_KERNEL; k++) {
            const int64_t step = first + k;
            const bool there = step >= steps.begin && step < steps.end;
            const real *in = there ? step_of(x, row, step, per_row, channels) : NULL;
            for (int64_t c = 0; c < channels; c++)
                out[c * FTH_KERNEL + k] = there ? in[c] : to_real(0);
        }
    }
}

FTH_PART(unfold_bwd) {
    const fth_tensor *t = fth_arg(ex, op->out[UNFOLD_BWD_DX]);
    const rows dy = rows_of(ex, op->in[UNFOLD_BWD_DY]), dx = rows_of(ex, op->out[UNFOLD_BWD_DX]);
    const int64_t per_row = op->u.unfold.per_row, first = op->u.unfold.first;
    const int64_t channels = t->width / per_row;
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t row = mine.begin; row < mine.end; row++) {
        const fth_cpu_share steps = steps_of(ex, row, per_row);
        for (int64_t s = 0; s < per_row; s++) {
            const real *reader[FTH_KERNEL]; /* rows that read this step, at their place k */
            int64_t n = 0;
            for (int64_t k = 0; k < FTH_KERNEL; k++) {
                const int64_t begin = s - first - k; /* the first step of the reader's row */
                if (begin % per_row || begin < steps.begin || begin >= steps.end) continue;
                reader[n++] = dy.data + (row + begin / per_row) * dy.ld + k;
            }
            real *out = dx.data + row * dx.ld + s * channels;
            for (int64_t c = 0; c < channels; c++) {
                float sum = 0;
                for (int64_t i = 0; i < n; i++) sum += from_real(reader[i][c * FTH_KERNEL]);
                out[c] = to_real(sum);
            }
        }
    }
}

static float sigmoid(float x) {
    return 1 / (1 + expf(-x));
}

/* Is the second gate of the row hidden? */
static bool is_hidden(const fth_exec *ex, int64_t row, int part) {
    return part == 1 && ex->batch.input.masked && ex->batch.input.masked[row];
}

FTH_PART(glu) {
    const fth_tensor *t = fth_arg(ex, op->out[GLU_Y]);
    const rows y = rows_of(ex, op->out[GLU_Y]);
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int part = 0; part < 2 && op->in[GLU_X + part]; part++) {
        const rows x = rows_of(ex, op->in[GLU_X + part]);
        const int32_t width = fth_arg(ex, op->in[GLU_X + part])->width / 2;
        for (int64_t row = mine.begin; row < mine.end; row++) {
            const real *in = x.data + row * x.ld, *gate = in + width;
            real *out = y.data + row * y.ld + part * width;
            const float shown = is_hidden(ex, row, part) ? 0 : 1;
            for (int32_t i = 0; i < width; i++)
                out[i] = to_real(shown * from_real(in[i]) * sigmoid(from_real(gate[i])));
        }
    }
}

FTH_PART(glu_bwd) {
    const fth_tensor *t = fth_arg(ex, op->in[GLU_BWD_DY]);
    const rows dy = rows_of(ex, op->in[GLU_BWD_DY]);
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int part = 0; part < 2 && op->in[GLU_BWD_X + part]; part++) {
        const rows x = rows_of(ex, op->in[GLU_BWD_X + part]);
        const rows dx = rows_of(ex, op->out[GLU_BWD_DX + part]);
        const int32_t width = fth_arg(ex, op->in[GLU_BWD_X + part])->width / 2;
        for (int64_t row = mine.begin; row < mine.end; row++) {
            const real *g = dy.data + row * dy.ld + part * width;
            const real *in = x.data + row * x.ld, *gate = in + width;
            real *out = dx.data + row * dx.ld;
            const float shown = is_hidden(ex, row, part) ? 0 : 1;
            for (int32_t i = 0; i < width; i++) {
                const float open = sigmoid(from_real(gate[i])), grad = shown * from_real(g[i]);
                out[i] = to_real(grad * open);
                out[width + i] = to_real(grad * from_real(in[i]) * open * (1 - open));
            }
        }
    }
}
