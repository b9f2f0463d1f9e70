/* join.c: join, norm, join_norm: z = r x + a D(f) + c e, y = LN(z). One pass per row, the row stays
 * in the first-level cache: reads 2n (3n with e), writes 2n + 2 per row; bound by memory, and by the
 * dropout draws where there are any. */
#include "backend/cpu/kernel/kernel.h"

#include "backend/cpu/kernel/vec.h"

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

/* z = r x + a D(f) of whole vectors, the sum of most methods, in one pass. factor: [d] or NULL. */
static void plain_sum(const join *j, int64_t row, const float *restrict_ factor,
                      float *restrict_ z) {
    const real *restrict_ x = j->x.value.data + row * j->x.value.ld;
    const real *restrict_ f = j->f.value.data + row * j->f.value.ld;
    const vf r = v_set(j->x.scale), a = v_set(j->f.scale);
    if (factor) {
        for (int32_t i = 0; i < j->width; i += VW) {
            const vf kept = v_mul(v_mul(a, v_load(factor + i)), v_load_real(f + i));
            v_store(z + i, v_fma(r, v_load_real(x + i), kept));
        }
    } else {
        for (int32_t i = 0; i < j->width; i += VW)
            v_store(z + i, v_fma(r, v_load_real(x + i), v_mul(a, v_load_real(f + i))));
    }
}

/* z of one row. */
static void sum_row(const join *j, int64_t row, const float *factor, float *z) {
    const bool plain = j->f.value.data && !j->e.value.data && !j->x.vector && !j->f.vector;
    if (plain && j->width % VW == 0) {
        plain_sum(j, row, factor, z);
    } else {
        set_term(z, &j->x, row, j->width);
        if (j->f.value.data) add_term(z, &j->f, row, factor, j->width);
        if (j->e.value.data) add_term(z, &j->e, row, NULL, j->width);
    }
    if (!j->z.data) return;
    real *out = j->z.data + row * j->z.ld;
    int32_t i = 0;
    for (; i + VW <= j->width; i += VW) {
        v_store_real(out + i, v_load(z + i));
        v_store(z + i, v_load_real(out + i)); /* what is kept of z is what the norm sees */
    }
    for (; i < j->width; i++) z[i] = from_real(out[i] = to_real(z[i]));
}

/* The sum of z, or of (z - mean)^2. */
static float sum_of(const float *restrict_ z, int32_t width) {
    vf sum = v_zero();
    int32_t i = 0;
    for (; i + VW <= width; i += VW) sum = v_add(sum, v_load(z + i));
    float rest = 0;
    for (; i < width; i++) rest += z[i];
    return v_sum(sum) + rest;
}

static float squares_of(const float *restrict_ z, float mean, int32_t width) {
    vf sum = v_zero();
    int32_t i = 0;
    for (; i + VW <= width; i += VW) {
        const vf x = v_add(v_load(z + i), v_set(-mean));
        sum = v_fma(x, x, sum);
    }
    float rest = 0;
    for (; i < width; i++) rest += (z[i] - mean) * (z[i] - mean);
    return v_sum(sum) + rest;
}

static void normalise(const join *j, const float *restrict_ z, int64_t row) {
    const int32_t width = j->width;
    const float mean = sum_of(z, width) / (float)width;
    const float rstd = 1.0f / sqrtf(squares_of(z, mean, width) / (float)width + j->eps);
    if (j->stats.data) {
        j->stats.data[row * j->stats.ld] = mean;
        j->stats.data[row * j->stats.ld + 1] = rstd;
    }
    real *restrict_ y = j->y.data + row * j->y.ld;
    const float *restrict_ gain = j->gain, *restrict_ bias = j->bias;
    int32_t i = 0;
    for (; i + VW <= width; i += VW) {
        const vf xhat = v_mul(v_add(v_load(z + i), v_set(-mean)), v_set(rstd));
        v_store_real(y + i, v_fma(xhat, v_load(gain + i), v_load(bias + i)));
    }
    for (; i < width; i++) y[i] = to_real((z[i] - mean) * rstd * gain[i] + bias[i]);
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
        sum_row(&j, row, j.drop ? factor + k * j.width : NULL, z);
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
