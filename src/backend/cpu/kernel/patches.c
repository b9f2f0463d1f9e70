/* patches.c: the rows of numbers that the batch brings, and rows of the source from rows of
 * patches: y = D(row + P[position]), where the row is a patch's, the class token in a sentence's
 * first row, or the mask token where the patch is hidden; and their gradients. Bound by memory. */
#include "backend/cpu/kernel/kernel.h"

FTH_PART(numbers) {
    const fth_tensor *t = fth_arg(ex, op->out[NUMBERS_X]);
    const rows x = rows_of(ex, op->out[NUMBERS_X]);
    const int32_t width = t->width;
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t row = mine.begin; row < mine.end; row++) {
        const float *in = ex->batch.input.data + row * width;
        real *out = x.data + row * x.ld;
#pragma omp simd
        for (int32_t i = 0; i < width; i++) out[i] = to_real(in[i]);
    }
}

/* What stands in a row of the source. */
typedef struct shown {
    int64_t patch;    /* row of numbers, -1: the class token's row */
    int64_t position; /* in its sentence */
    bool hidden;      /* the mask token stands in place of the patch */
} shown;

static shown shown_in(const fth_exec *ex, const fth_op *op, int64_t row, bool masks) {
    const fth_packed_side *side = &ex->batch.side[op->u.patches.side];
    const int32_t *masked = ex->batch.input.masked;
    shown s = {.patch = -1, .position = side->pos[row]};
    if (op->u.patches.cls && s.position == 0) return s;
    /* every sentence before has put a class token into the rows that its patches have not */
    s.patch = row - (op->u.patches.cls ? side->sentence[row] + 1 : 0);
    s.hidden = masks && masked && masked[s.patch];
    return s;
}

FTH_SCRATCH(patches) {
    (void)capacity;
    return threads_scratch_bytes(dev, 2 * g->value[op->out[PATCHES_Y]].width);
}

FTH_PART(patches) {
    const fth_tensor *t = fth_arg(ex, op->out[PATCHES_Y]), *pos = fth_arg(ex, op->in[PATCHES_POS]);
    const rows x = rows_of(ex, op->in[PATCHES_X]), y = rows_of(ex, op->out[PATCHES_Y]);
    const float *cls = vector_of(ex, op->in[PATCHES_CLS]);
    const float *mask = vector_of(ex, op->in[PATCHES_MASK]);
    const fth_drop *drop = &op->u.patches.drop;
    const int32_t width = t->width;
    float *factor = thread_scratch(ex, team->thread, 2 * width), *sum = factor + width; /* [d] */
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int32_t i = 0; i < width; i++) factor[i] = 1;
    for (int64_t row = mine.begin; row < mine.end; row++) {
        const shown s = shown_in(ex, op, row, mask != NULL);
        for (int32_t i = 0; i < width; i++)
            sum[i] = s.patch < 0 ? cls[i]
                     : s.hidden  ? mask[i]
                                 : from_real(x.data[s.patch * x.ld + i]);
        for (int32_t i = 0; i < width; i++) sum[i] += element(pos, s.position, i);
        if (drop->p > 0) FTH_NAME(drop_factors)(ex, drop, drop_element(ex, t, row), width, factor);
        real *out = y.data + row * y.ld;
#pragma omp simd
        for (int32_t i = 0; i < width; i++) out[i] = to_real(factor[i] * sum[i]);
    }
}

FTH_SCRATCH(patches_bwd) {
    (void)capacity;
    return threads_scratch_bytes(dev, g->value[op->in[PATCHES_BWD_DY]].width);
}

/* Adds D(dy), columns [first, end) of a row, to out. */
static void add_row(const fth_exec *ex, const fth_op *op, int64_t row, fth_cpu_share columns,
                    float *restrict_ factor, float *restrict_ out) {
    const fth_tensor *t = fth_arg(ex, op->in[PATCHES_BWD_DY]);
    const fth_drop *drop = &op->u.patches.drop;
    const int64_t n = columns.end - columns.begin;
    const real *dy = (const real *)t->data + row * t->ld + columns.begin;
    for (int64_t i = 0; i < n && !(drop->p > 0); i++) factor[i] = 1;
    if (drop->p > 0) FTH_NAME(drop_factors)
    (ex, drop, drop_element(ex, t, row) + (uint64_t)columns.begin, n, factor);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) out[i] += factor[i] * from_real(dy[i]);
}

/* Sums over rows: here a thread owns columns. */
static void add_to_parameters(const fth_exec *ex, const fth_op *op, const fth_team *team,
                              float *factor) {
    const fth_tensor *t = fth_arg(ex, op->in[PATCHES_BWD_DY]);
    const full_rows dpos = full_of(ex, op->out[PATCHES_BWD_DPOS]);
    float *dcls = vector_of(ex, op->out[PATCHES_BWD_DCLS]);
    float *dmask = vector_of(ex, op->out[PATCHES_BWD_DMASK]);
    const fth_cpu_share columns = fth_team_share(team, t->width, 16);
    if (columns.begin == columns.end) return;
    for (int64_t row = 0; row < fth_rows_now(ex, t); row++) {
        const shown s = shown_in(ex, op, row, dmask != NULL);
        float *token = s.patch < 0 ? dcls : s.hidden ? dmask : NULL;
        if (token) add_row(ex, op, row, columns, factor, token + columns.begin);
        if (dpos.data)
            add_row(ex, op, row, columns, factor, dpos.data + s.position * dpos.ld + columns.begin);
    }
}

FTH_PART(patches_bwd) {
    const fth_tensor *t = fth_arg(ex, op->in[PATCHES_BWD_DY]);
    const rows dy = rows_of(ex, op->in[PATCHES_BWD_DY]), dx = rows_of(ex, op->out[PATCHES_BWD_DX]);
    const fth_drop *drop = &op->u.patches.drop;
    const bool masks = op->out[PATCHES_BWD_DMASK] != 0;
    const int32_t width = t->width;
    float *factor = thread_scratch(ex, team->thread, width); /* [d] */
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int32_t i = 0; i < width; i++) factor[i] = 1;
    for (int64_t row = mine.begin; row < mine.end && dx.data; row++) {
        const shown s = shown_in(ex, op, row, masks);
        if (s.patch < 0) continue;
        const real *in = dy.data + row * dy.ld;
        real *out = dx.data + s.patch * dx.ld;
        if (s.hidden) {
            memset(out, 0, sizeof *out * (size_t)width);
            continue;
        }
        if (drop->p > 0) FTH_NAME(drop_factors)(ex, drop, drop_element(ex, t, row), width, factor);
#pragma omp simd
        for (int32_t i = 0; i < width; i++) out[i] = to_real(factor[i] * from_real(in[i]));
    }
    add_to_parameters(ex, op, team, factor);
}
