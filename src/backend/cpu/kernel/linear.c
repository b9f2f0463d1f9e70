/* linear.c: the three products of a linear map: y = act(x W^T + b), dx = (dy W + addend) act'(saved),
 * dW += dy^T x with db. 2 R n k operations each; bound by the multiply-add units. */
#include "backend/cpu/kernel/gemm_panels.h"
#include "backend/cpu/kernel/linear_int8.h"

/* Bytes of scratch that each thread has for itself. */
static int64_t own_bytes(void) {
    const int64_t whole = FTH_NAME(gemm_own_bytes)(), panels = FTH_NAME(gemm_panels_bytes)();
    return panels > whole ? panels : whole;
}

FTH_SCRATCH(linear) {
    const int64_t bytes = dev->threads * own_bytes();
    if (op->kind != FTH_KIND_linear || !((const fth_cpu *)dev)->int8) return bytes;
    const fth_value *x = &g->value[op->in[LINEAR_X]];
    const int64_t n_rows = x->extent == FTH_ROWS_FIXED ? x->rows : capacity[x->extent];
    const int64_t int8 = FTH_NAME(linear_int8_bytes)(dev, n_rows, x->width);
    return int8 > bytes ? int8 : bytes;
}

FTH_PART(linear) {
    const fth_tensor *x = fth_arg(ex, op->in[LINEAR_X]), *w = fth_arg(ex, op->in[LINEAR_W]);
    const gemm g = {.m = fth_rows_now(ex, x),
                    .n = w->rows,
                    .k = w->width,
                    .a = rows_of(ex, op->in[LINEAR_X]),
                    .b = rows_of(ex, op->in[LINEAR_W]),
                    .b_by_column = true,
                    .bias = vector_of(ex, op->in[LINEAR_B]),
                    .act = op->u.linear.act,
                    .pre = rows_of(ex, op->out[LINEAR_PRE]),
                    .c = rows_of(ex, op->out[LINEAR_Y]),
                    .pairs = pairs_of(ex)};
    const fth_int8 *int8 = fth_packed_int8(ex, op->in[LINEAR_W]);
    const void *panels = fth_packed_panels(ex, op->in[LINEAR_W]);
    if (int8)
        FTH_NAME(linear_int8)(ex, &g, int8, team);
    else if (panels &&
             (g.m <= FTH_PANEL_ROWS || g.pairs)) /* pairs take longer to pack than to multiply */
        FTH_NAME(gemm_panels)(&g, panels, team, (char *)ex->scratch + team->thread * own_bytes());
    else
        gemm_in_scratch(ex, &g, team);
}

FTH_PART(linear_dx) {
    const fth_tensor *dy = fth_arg(ex, op->in[LINEAR_DX_DY]), *w = fth_arg(ex, op->in[LINEAR_DX_W]);
    const gemm g = {.m = fth_rows_now(ex, dy),
                    .n = w->width,
                    .k = w->rows,
                    .a = rows_of(ex, op->in[LINEAR_DX_DY]),
                    .b = rows_of(ex, op->in[LINEAR_DX_W]),
                    .addend = rows_of(ex, op->in[LINEAR_DX_ADDEND]),
                    .saved = rows_of(ex, op->in[LINEAR_DX_SAVED]),
                    .act = op->in[LINEAR_DX_SAVED] ? op->u.linear.act : FTH_ACT_NONE,
                    .c = rows_of(ex, op->out[LINEAR_DX_DX]),
                    .pairs = pairs_of(ex)};
    gemm_in_scratch(ex, &g, team);
}

/* db += column sums of dy; a thread owns columns. */
static void column_sums(const fth_exec *ex, const fth_op *op, const fth_team *team) {
    const fth_tensor *t = fth_arg(ex, op->in[LINEAR_DW_DY]);
    const rows dy = rows_of(ex, op->in[LINEAR_DW_DY]);
    float *db = vector_of(ex, op->out[LINEAR_DW_DB]);
    if (!db) return;
    enum { COLUMNS = 64 }; /* summed at a time, in registers */
    const fth_share mine = fth_team_share(team, t->width, 16);
    const int64_t n_rows = fth_rows_now(ex, t);
    for (int64_t j = mine.begin; j < mine.end; j += COLUMNS) {
        const int64_t n = mine.end - j < COLUMNS ? mine.end - j : COLUMNS;
        float sum[COLUMNS] = {0};
        if (n == COLUMNS) {
            for (int64_t row = 0; row < n_rows; row++)
#pragma omp simd
                for (int64_t i = 0; i < COLUMNS; i++)
                    sum[i] += from_real(dy.data[row * dy.ld + j + i]);
        } else {
            for (int64_t row = 0; row < n_rows; row++)
#pragma omp simd
                for (int64_t i = 0; i < n; i++) sum[i] += from_real(dy.data[row * dy.ld + j + i]);
        }
        for (int64_t i = 0; i < n; i++) db[j + i] += sum[i];
    }
}

FTH_PART(linear_dw) {
    const fth_tensor *dy = fth_arg(ex, op->in[LINEAR_DW_DY]), *x = fth_arg(ex, op->in[LINEAR_DW_X]);
    const gemm g = {.m = dy->width,
                    .n = x->width,
                    .k = fth_rows_now(ex, x),
                    .a = rows_of(ex, op->in[LINEAR_DW_DY]),
                    .b = rows_of(ex, op->in[LINEAR_DW_X]),
                    .c_full = full_of(ex, op->out[LINEAR_DW_DW]),
                    .accumulate = true,
                    .pairs = pairs_of(ex)};
    if (g.c_full.data) gemm_in_scratch(ex, &g, team);
    column_sums(ex, op, team);
}
