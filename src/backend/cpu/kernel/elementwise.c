/* elementwise.c: activation, dropout, add, scale_shift, head_scale: one pass over the rows each;
 * bound by memory, they are rare beside the fused kinds. */
#include "backend/cpu/kernel/kernel.h"

#include "backend/cpu/kernel/math.h"

/* ---- activation ---- */

FTH_PART(activation) {
    const fth_tensor *t = fth_arg(ex, op->in[ACT_X]);
    const rows x = rows_of(ex, op->in[ACT_X]), y = rows_of(ex, op->out[ACT_Y]);
    const fth_act act = op->u.linear.act;
    const int32_t width = t->width;
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t row = mine.begin; row < mine.end; row++) {
        const real *in = x.data + row * x.ld;
        real *out = y.data + row * y.ld;
        if (act == FTH_ACT_GELU) {
#pragma omp simd
            for (int32_t i = 0; i < width; i++) out[i] = to_real(gelu(from_real(in[i])));
        } else if (act == FTH_ACT_RELU) {
#pragma omp simd
            for (int32_t i = 0; i < width; i++) out[i] = to_real(relu(from_real(in[i])));
        } else if (act == FTH_ACT_TANH) { /* few rows */
            for (int32_t i = 0; i < width; i++) out[i] = to_real(tanhf(from_real(in[i])));
        } else {
            memmove(out, in, sizeof *out * (size_t)width);
        }
    }
}

FTH_PART(activation_bwd) {
    const fth_tensor *t = fth_arg(ex, op->in[ACT_BWD_DY]);
    const rows dy = rows_of(ex, op->in[ACT_BWD_DY]), saved = rows_of(ex, op->in[ACT_BWD_SAVED]);
    const rows dx = rows_of(ex, op->out[ACT_BWD_DX]);
    const fth_act act = op->u.linear.act;
    const int32_t width = t->width;
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t row = mine.begin; row < mine.end; row++) {
        const real *in = dy.data + row * dy.ld, *kept = saved.data + row * saved.ld;
        real *out = dx.data + row * dx.ld;
        if (act == FTH_ACT_GELU) {
#pragma omp simd
            for (int32_t i = 0; i < width; i++)
                out[i] = to_real(from_real(in[i]) * gelu_slope(from_real(kept[i])));
        } else if (act == FTH_ACT_RELU) {
#pragma omp simd
            for (int32_t i = 0; i < width; i++)
                out[i] = to_real(from_real(kept[i]) > 0 ? from_real(in[i]) : 0.0f);
        } else if (act == FTH_ACT_TANH) {
#pragma omp simd
            for (int32_t i = 0; i < width; i++)
                out[i] = to_real(from_real(in[i]) * (1 - from_real(kept[i]) * from_real(kept[i])));
        } else {
            memmove(out, in, sizeof *out * (size_t)width);
        }
    }
}

/* ---- dropout ---- */

FTH_SCRATCH(dropout) {
    (void)capacity;
    return threads_scratch_bytes(dev, g->value[op->in[DROP_X]].width);
}

FTH_PART(dropout) {
    const fth_tensor *t = fth_arg(ex, op->in[DROP_X]);
    const rows x = rows_of(ex, op->in[DROP_X]), y = rows_of(ex, op->out[DROP_Y]);
    const fth_drop *drop = &op->u.dropout.drop;
    const int32_t width = t->width;
    float *factor = thread_scratch(ex, team->thread, width); /* [width] */
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t row = mine.begin; row < mine.end; row++) {
        const real *in = x.data + row * x.ld;
        real *out = y.data + row * y.ld;
        if (!(drop->p > 0)) {
            memmove(out, in, sizeof *out * (size_t)width);
            continue;
        }
        FTH_NAME(drop_factors)(ex, drop, drop_element(ex, t, row), width, factor);
#pragma omp simd
        for (int32_t i = 0; i < width; i++) out[i] = to_real(from_real(in[i]) * factor[i]);
    }
}

/* ---- add ---- */

FTH_PART(add) {
    const fth_tensor *t = fth_arg(ex, op->in[ADD_A]);
    const rows a = rows_of(ex, op->in[ADD_A]), b = rows_of(ex, op->in[ADD_B]);
    const rows y = rows_of(ex, op->out[ADD_Y]);
    const int32_t width = t->width;
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t row = mine.begin; row < mine.end; row++) {
        const real *p = a.data + row * a.ld, *q = b.data + row * b.ld;
        real *out = y.data + row * y.ld;
#pragma omp simd
        for (int32_t i = 0; i < width; i++) out[i] = to_real(from_real(p[i]) + from_real(q[i]));
    }
}

/* ---- reductions to few numbers ---- */

/* The most sums that one of these operations makes. */
static int64_t n_sums(const fth_op *op) {
    if (op->kind == FTH_KIND_head_scale_bwd) return op->u.head_scale.heads;
    if (op->kind == FTH_KIND_mix_bwd) return (op->n_in - 2) / 2;
    return 2;
}

FTH_SCRATCH(reduction) {
    (void)g, (void)capacity;
    return threads_scratch_bytes(dev, 2 * n_sums(op));
}

/* Thread number t's sums, doubles in its piece of scratch. */
static double *sums_of(const fth_exec *ex, const fth_op *op, int thread) {
    return (double *)(void *)thread_scratch(ex, thread, 2 * n_sums(op));
}

/* The sum that all threads have made, in the order of their numbers. */
static float total(const fth_exec *ex, const fth_op *op, const fth_team *team, int64_t i) {
    double sum = 0;
    for (int t = 0; t < team->n_threads; t++) sum += sums_of(ex, op, t)[i];
    return (float)sum;
}

static void add_to(const fth_tensor *t, int64_t column, float x) {
    set_element(t, 0, column, element(t, 0, column) + x);
}

static float dot(const real *a, const real *b, int32_t n) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t i = 0; i < n; i++) sum += from_real(a[i]) * from_real(b[i]);
    return sum;
}

/* ---- scale_shift ---- */

FTH_PART(scale_shift) {
    const fth_tensor *t = fth_arg(ex, op->in[SHIFT_X]);
    const rows x = rows_of(ex, op->in[SHIFT_X]), y = rows_of(ex, op->out[SHIFT_Y]);
    const float s = op->u.scale_shift.factor * scalar_of(ex, op->in[SHIFT_S], 1);
    const float c = scalar_of(ex, op->in[SHIFT_C], 0);
    const int32_t width = t->width;
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t row = mine.begin; row < mine.end; row++) {
        const real *in = x.data + row * x.ld;
        real *out = y.data + row * y.ld;
#pragma omp simd
        for (int32_t i = 0; i < width; i++) out[i] = to_real(s * (from_real(in[i]) - c));
    }
}

FTH_PART(scale_shift_bwd) {
    const fth_tensor *t = fth_arg(ex, op->in[SHIFT_BWD_DY]);
    const fth_tensor *ds = fth_arg(ex, op->out[SHIFT_BWD_DS]);
    const fth_tensor *dc = fth_arg(ex, op->out[SHIFT_BWD_DC]);
    const rows dy = rows_of(ex, op->in[SHIFT_BWD_DY]), x = rows_of(ex, op->in[SHIFT_BWD_X]);
    const rows dx = rows_of(ex, op->out[SHIFT_BWD_DX]);
    const float k = op->u.scale_shift.factor, s = k * scalar_of(ex, op->in[SHIFT_BWD_S], 1);
    const float c = scalar_of(ex, op->in[SHIFT_BWD_C], 0);
    const int32_t width = t->width;
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    double sum_s = 0, sum_c = 0;
    for (int64_t row = mine.begin; row < mine.end; row++) {
        const real *g = dy.data + row * dy.ld, *in = ds ? x.data + row * x.ld : g;
        float row_s = 0, row_c = 0;
#pragma omp simd reduction(+ : row_s, row_c)
        for (int32_t i = 0; i < width; i++) {
            row_s += from_real(g[i]) * (from_real(in[i]) - c);
            row_c += from_real(g[i]);
        }
        sum_s += (double)row_s;
        sum_c += (double)row_c;
        if (!dx.data) continue;
        real *out = dx.data + row * dx.ld;
#pragma omp simd
        for (int32_t i = 0; i < width; i++) out[i] = to_real(s * from_real(g[i]));
    }
    sums_of(ex, op, team->thread)[0] = sum_s;
    sums_of(ex, op, team->thread)[1] = sum_c;
    fth_team_wait(team);
    if (team->thread == 0 && ds) add_to(ds, 0, k * total(ex, op, team, 0));
    if (team->thread == 0 && dc) add_to(dc, 0, -s * total(ex, op, team, 1));
}

/* ---- head_scale ---- */

FTH_PART(head_scale) {
    const fth_tensor *t = fth_arg(ex, op->in[HEADS_X]);
    const fth_tensor *gamma = fth_arg(ex, op->in[HEADS_GAMMA]);
    const rows x = rows_of(ex, op->in[HEADS_X]), y = rows_of(ex, op->out[HEADS_Y]);
    const int32_t heads = op->u.head_scale.heads, width = t->width / heads;
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t row = mine.begin; row < mine.end; row++)
        for (int32_t h = 0; h < heads; h++) {
            const real *in = x.data + row * x.ld + h * width;
            real *out = y.data + row * y.ld + h * width;
            const float scale = element(gamma, 0, h);
#pragma omp simd
            for (int32_t i = 0; i < width; i++) out[i] = to_real(scale * from_real(in[i]));
        }
}

FTH_PART(head_scale_bwd) {
    const fth_tensor *t = fth_arg(ex, op->in[HEADS_BWD_DY]);
    const fth_tensor *gamma = fth_arg(ex, op->in[HEADS_BWD_GAMMA]);
    const fth_tensor *dgamma = fth_arg(ex, op->out[HEADS_BWD_DGAMMA]);
    const rows dy = rows_of(ex, op->in[HEADS_BWD_DY]), x = rows_of(ex, op->in[HEADS_BWD_X]);
    const rows dx = rows_of(ex, op->out[HEADS_BWD_DX]);
    const int32_t heads = op->u.head_scale.heads, width = t->width / heads;
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    double *sums = sums_of(ex, op, team->thread); /* [heads] */
    for (int32_t h = 0; h < heads; h++) sums[h] = 0;
    for (int64_t row = mine.begin; row < mine.end; row++)
        for (int32_t h = 0; h < heads; h++) {
            const real *g = dy.data + row * dy.ld + h * width;
            if (dgamma) sums[h] += (double)dot(g, x.data + row * x.ld + h * width, width);
            if (!dx.data) continue;
            real *out = dx.data + row * dx.ld + h * width;
            const float scale = element(gamma, 0, h);
#pragma omp simd
            for (int32_t i = 0; i < width; i++) out[i] = to_real(scale * from_real(g[i]));
        }
    fth_team_wait(team);
    for (int32_t h = 0; h < heads && team->thread == 0 && dgamma; h++)
        add_to(dgamma, h, total(ex, op, team, h));
}

/* ---- mix ---- */

FTH_PART(mix) {
    const fth_tensor *t = fth_arg(ex, op->out[MIX_Y]), *w = fth_arg(ex, op->in[MIX_W]);
    const rows y = rows_of(ex, op->out[MIX_Y]);
    const int32_t width = t->width, n = op->n_in - MIX_X0;
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    enum { BLOCK = 256 }; /* columns summed at a time, in registers and first-level cache */
    for (int64_t row = mine.begin; row < mine.end; row++)
        for (int32_t first = 0; first < width; first += BLOCK) {
            const int32_t count = width - first < BLOCK ? width - first : BLOCK;
            float sum[BLOCK] = {0};
            for (int32_t k = 0; k < n; k++) {
                const rows x = rows_of(ex, op->in[MIX_X0 + k]);
                const real *in = x.data + row * x.ld + first;
                const float weight = element(w, 0, k);
#pragma omp simd
                for (int32_t i = 0; i < count; i++) sum[i] += weight * from_real(in[i]);
            }
            real *out = y.data + row * y.ld + first;
#pragma omp simd
            for (int32_t i = 0; i < count; i++) out[i] = to_real(sum[i]);
        }
}

FTH_PART(mix_bwd) {
    const fth_tensor *t = fth_arg(ex, op->in[MIX_BWD_DY]), *w = fth_arg(ex, op->in[MIX_BWD_W]);
    const fth_tensor *dw = fth_arg(ex, op->out[MIX_BWD_DW]);
    const rows dy = rows_of(ex, op->in[MIX_BWD_DY]);
    const int32_t width = t->width, n = (op->n_in - 2) / 2;
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    double *sums = sums_of(ex, op, team->thread); /* [n] */
    for (int32_t k = 0; k < n; k++) {
        const rows x = rows_of(ex, op->in[MIX_BWD_X0 + k]);
        const rows addend = rows_of(ex, op->in[MIX_BWD_X0 + n + k]);
        const rows dx = rows_of(ex, op->out[MIX_BWD_DX0 + k]);
        const float weight = element(w, 0, k);
        sums[k] = 0;
        for (int64_t row = mine.begin; row < mine.end; row++) {
            const real *g = dy.data + row * dy.ld;
            sums[k] += (double)dot(g, x.data + row * x.ld, width);
            if (!dx.data) continue;
            const real *more = addend.data ? addend.data + row * addend.ld : NULL;
            real *out = dx.data + row * dx.ld;
#pragma omp simd
            for (int32_t i = 0; i < width; i++)
                out[i] = to_real(weight * from_real(g[i]) + (more ? from_real(more[i]) : 0.0f));
        }
    }
    fth_team_wait(team);
    for (int32_t k = 0; k < n && team->thread == 0 && dw; k++)
        add_to(dw, k, total(ex, op, team, k));
}
