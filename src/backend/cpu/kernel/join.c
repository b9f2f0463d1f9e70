/* join.c: join, norm, join_norm: z = r x + a D(f) + c e, y = LN(z). One pass per row, the row stays
 * in the first-level cache: reads 2n (3n with e), writes 2n + 2 per row; bound by memory, and by the
 * dropout draws where there are any. */
#include "backend/cpu/kernel/kernel.h"

/* One term of the sum: coefficient * (vector) * value. */
typedef struct term {
    rows value;          /* data NULL: no such term */
    float scale;         /* constant, step slot or learned scalar */
    const float *vector; /* [d] learned vector, or NULL */
} term;

static term term_of(const fth_exec *ex, fth_val value, const fth_coef *coef, fth_val param) {
    term t = {.value = rows_of(ex, value), .scale = (float)fth_coef_now(ex, coef)};
    if (coef->kind == FTH_COEF_SCALAR) t.scale *= scalar_of(ex, param, 1);
    if (coef->kind == FTH_COEF_VECTOR) t.vector = vector_of(ex, param);
    return t;
}

/* z += the term's row, times factor where there is one. */
static void add_term(float *restrict_ z, const term *t, int64_t row, const float *factor,
                     int32_t width) {
    const real *v = t->value.data + row * t->value.ld;
    const float scale = t->scale;
    if (!t->vector && !factor) {
#pragma omp simd
        for (int32_t i = 0; i < width; i++) z[i] += scale * from_real(v[i]);
    } else if (!t->vector) {
#pragma omp simd
        for (int32_t i = 0; i < width; i++) z[i] += scale * factor[i] * from_real(v[i]);
    } else {
        const float *vector = t->vector;
#pragma omp simd
        for (int32_t i = 0; i < width; i++)
            z[i] += scale * vector[i] * (factor ? factor[i] : 1.0f) * from_real(v[i]);
    }
}

/* z = the term's row. */
static void set_term(float *restrict_ z, const term *t, int64_t row, int32_t width) {
    const real *v = t->value.data + row * t->value.ld;
    const float scale = t->scale, *vector = t->vector;
    if (vector) {
#pragma omp simd
        for (int32_t i = 0; i < width; i++) z[i] = scale * vector[i] * from_real(v[i]);
    } else {
#pragma omp simd
        for (int32_t i = 0; i < width; i++) z[i] = scale * from_real(v[i]);
    }
}

/* What the kernels of this file work on. */
typedef struct join {
    term x, f, e;
    const fth_drop *drop; /* NULL: none */
    rows z, y;
    full_rows stats;
    const float *gain, *bias; /* [d]; NULL: no LN */
    float eps;
    int32_t width;
} join;

static join join_of(const fth_exec *ex, const fth_op *op) {
    join j = {.x = term_of(ex, op->in[JOIN_X], &op->u.join.r, op->in[JOIN_R]),
              .width = fth_arg(ex, op->in[JOIN_X])->width,
              .eps = (float)op->u.join.eps};
    if (op->kind == FTH_KIND_norm)
        j.x = (term){.value = rows_of(ex, op->in[JOIN_X]), .scale = 1};
    else {
        j.f = term_of(ex, op->in[JOIN_F], &op->u.join.a, op->in[JOIN_A]);
        j.e = term_of(ex, op->in[JOIN_E], &op->u.join.c, op->in[JOIN_C]);
        j.z = rows_of(ex, op->out[JOIN_Z]);
        if (j.f.value.data && op->u.join.drop.p > 0) j.drop = &op->u.join.drop;
    }
    if (op->kind != FTH_KIND_join) {
        j.y = rows_of(ex, op->out[JOIN_Y]);
        j.stats = full_of(ex, op->out[JOIN_STATS]);
        j.gain = vector_of(ex, op->in[JOIN_GAIN]);
        j.bias = vector_of(ex, op->in[JOIN_BIAS]);
    }
    return j;
}

static void normalise(const join *j, const float *restrict_ z, int64_t row) {
    const int32_t width = j->width;
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t i = 0; i < width; i++) sum += z[i];
    const float mean = sum / (float)width;
#pragma omp simd reduction(+ : squares)
    for (int32_t i = 0; i < width; i++) squares += (z[i] - mean) * (z[i] - mean);
    const float rstd = 1.0f / sqrtf(squares / (float)width + j->eps);
    if (j->stats.data) {
        j->stats.data[row * j->stats.ld] = mean;
        j->stats.data[row * j->stats.ld + 1] = rstd;
    }
    real *y = j->y.data + row * j->y.ld;
    const float *gain = j->gain, *bias = j->bias;
#pragma omp simd
    for (int32_t i = 0; i < width; i++) y[i] = to_real((z[i] - mean) * rstd * gain[i] + bias[i]);
}

FTH_SCRATCH(join) {
    (void)capacity;
    const int32_t width = g->value[op->in[JOIN_X]].width;
    return threads_scratch_bytes(dev, width + drop_rows_at_once(width) * width);
}

static void join_part(fth_exec *ex, const fth_op *op, const fth_team *team) {
    const fth_tensor *t = fth_arg(ex, op->in[JOIN_X]);
    const join j = join_of(ex, op);
    const int64_t at_once = drop_rows_at_once(j.width);
    float *z = thread_scratch(ex, team->thread, j.width + at_once * j.width); /* [d] */
    float *factor = z + j.width;                                              /* [at_once, d] */
    const fth_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t row = mine.begin; row < mine.end; row++) {
        const int64_t k = (row - mine.begin) % at_once, left = mine.end - row;
        if (j.drop && k == 0) FTH_NAME(drop_factors)
        (ex, j.drop, drop_element(ex, t, row), (left < at_once ? left : at_once) * j.width, factor);
        set_term(z, &j.x, row, j.width);
        if (j.f.value.data) add_term(z, &j.f, row, j.drop ? factor + k * j.width : NULL, j.width);
        if (j.e.value.data) add_term(z, &j.e, row, NULL, j.width);
        if (j.z.data) {
            real *out = j.z.data + row * j.z.ld;
#pragma omp simd
            for (int32_t i = 0; i < j.width; i++) out[i] = to_real(z[i]);
        }
        if (j.gain && j.y.data) normalise(&j, z, row);
    }
}

FTH_PART(join) {
    join_part(ex, op, team);
}

FTH_PART(norm) {
    join_part(ex, op, team);
}

FTH_PART(join_norm) {
    join_part(ex, op, team);
}
