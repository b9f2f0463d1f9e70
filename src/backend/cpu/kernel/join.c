/* join.c: join, norm, join_norm: z = r x + a D(f) + c e, y = LN(z). One pass per row, the row stays
 * in the first-level cache: reads 2n (3n with e), writes 2n + 2 per row; bound by memory, and by
 * the dropout draws where there are any. */
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
    const fth_drop *drop;   /* NULL: none */
    const fth_tensor *kept; /* where its bits go for the backward; NULL: not wanted */
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
        if (j.drop) j.kept = fth_arg(ex, op->out[JOIN_KEPT]);
        if (j.kept && !j.kept->data) j.kept = NULL; /* nobody reads it */
    }
    if (op->kind != FTH_KIND_join) {
        j.y = rows_of(ex, op->out[JOIN_Y]);
        j.stats = full_of(ex, op->out[JOIN_STATS]);
        j.gain = vector_of(ex, op->in[JOIN_GAIN]);
        j.bias = vector_of(ex, op->in[JOIN_BIAS]);
    }
    return j;
}

/* Does z consist of r x + a D(f) alone, in whole vectors, as in most methods? */
static bool is_plain(const join *j) {
    return j->f.value.data && !j->e.value.data && !j->x.vector && !j->f.vector &&
           j->width % VW == 0;
}

/* ---- rows ---- Four at a time, so that their sums and what follows from them take as long as one
 * row's. `width` is j->width; thin rows get it as a constant, and then z never leaves the
 * registers. */

/* z in one pass. factor: [d] or NULL; what is kept of z is what the norm sees. */
inline_ void plain_sum(const int32_t width, const join *j, int64_t row, const float *factor,
                       float *restrict_ z) {
    const real *x = j->x.value.data + row * j->x.value.ld;
    const real *f = j->f.value.data + row * j->f.value.ld;
    real *out = j->z.data ? j->z.data + row * j->z.ld : NULL;
    const vf r = v_set(j->x.scale), a = v_set(j->f.scale);
#pragma GCC unroll 4
    for (int32_t i = 0; i < width; i += VW) {
        const vf by = factor ? v_mul(a, v_load(factor + i)) : a;
        const vf sum = v_fma(r, v_load_real(x + i), v_mul(by, v_load_real(f + i)));
        v_store(z + i, out ? v_keep_real(out + i, sum) : sum);
    }
}

/* The same, whatever z consists of. */
static void any_sum(const join *j, int64_t row, const float *factor, float *restrict_ z) {
    set_term(z, &j->x, row, j->width);
    if (j->f.value.data) add_term(z, &j->f, row, factor, j->width);
    if (j->e.value.data) add_term(z, &j->e, row, NULL, j->width);
    if (!j->z.data) return;
    real *out = j->z.data + row * j->z.ld;
    int32_t i = 0;
    for (; i + VW <= j->width; i += VW) v_store(z + i, v_keep_real(out + i, v_load(z + i)));
    for (; i < j->width; i++) z[i] = from_real(out[i] = to_real(z[i]));
}

/* The means of z [4, d], or of (z - mean)^2. */
inline_ v4 means_of(const int32_t width, const float *restrict_ z) {
    vf sum[4];
    v4 rest = {0};
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
        int32_t i = 0;
        sum[r] = v_zero();
#pragma GCC unroll 4
        for (; i + VW <= width; i += VW) sum[r] = v_add(sum[r], v_load(z + r * width + i));
        for (; i < width; i++) rest[r] += z[r * width + i];
    }
    return (v_four_sums(sum) + rest) / (float)width;
}

inline_ v4 variances_of(const int32_t width, const float *restrict_ z, v4 mean) {
    vf sum[4];
    v4 rest = {0};
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
        int32_t i = 0;
        sum[r] = v_zero();
#pragma GCC unroll 4
        for (; i + VW <= width; i += VW) {
            const vf x = v_add(v_load(z + r * width + i), v_set(-mean[r]));
            sum[r] = v_fma(x, x, sum[r]);
        }
        for (; i < width; i++) {
            const float x = z[r * width + i] - mean[r];
            rest[r] += x * x;
        }
    }
    return (v_four_sums(sum) + rest) / (float)width;
}

inline_ void put_row(const int32_t width, const join *j, const float *restrict_ z, int64_t row,
                     float mean, float rstd) {
    const float *gain = j->gain, *bias = j->bias;
    real *y = j->y.data + row * j->y.ld;
    if (j->stats.data) {
        j->stats.data[row * j->stats.ld] = mean;
        j->stats.data[row * j->stats.ld + 1] = rstd;
    }
    int32_t i = 0;
#pragma GCC unroll 4
    for (; i + VW <= width; i += VW) {
        const vf xhat = v_mul(v_add(v_load(z + i), v_set(-mean)), v_set(rstd));
        v_store_real(y + i, v_fma(xhat, v_load(gain + i), v_load(bias + i)));
    }
    for (; i < width; i++) y[i] = to_real((z[i] - mean) * rstd * gain[i] + bias[i]);
}

/* Norms of rows [first, first + n), n <= 4. */
inline_ void normalise(const int32_t width, const join *j, const float *restrict_ z, int64_t first,
                       const int n) {
    const v4 mean = means_of(width, z);
    const v4 rstd = 1.0f / v4_sqrt(variances_of(width, z, mean) + j->eps);
#pragma GCC unroll 4
    for (int r = 0; r < n; r++) put_row(width, j, z + r * width, first + r, mean[r], rstd[r]);
}

/* Four rows of a constant width. factor: [4, d] or NULL. */
enum { THIN = 64 };
static void thin_rows(const join *j, int64_t first, const float *factor) {
    const join own = *j; /* a copy, which no store of a row can change */
    float z[4 * THIN];
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
        float *at = z + r * THIN;
        if (own.f.value.data) {
            plain_sum(THIN, &own, first + r, factor ? factor + r * THIN : NULL, at);
        } else {
            const real *x = own.x.value.data + (first + r) * own.x.value.ld;
#pragma GCC unroll 4
            for (int i = 0; i < THIN; i += VW)
                v_store(at + i, v_mul(v_set(own.x.scale), v_load_real(x + i)));
        }
    }
    normalise(THIN, &own, z, first, 4);
}

/* A thread's z [4, d] and factors [at once, d]. */
static int64_t thread_floats(int32_t width) {
    return (4 + drop_rows_at_once(width)) * width;
}

FTH_SCRATCH(join) {
    (void)capacity;
    return threads_scratch_bytes(dev, thread_floats(g->value[op->in[JOIN_X]].width));
}

/* Rows [first, first + n) in fours. factor: [n, d] or NULL; z: a place for [4, d]. */
static void join_rows(const join *j, int64_t first, int64_t n, const float *factor, float *z) {
    const bool plain = is_plain(j), norms = j->gain && j->y.data;
    const bool thin = j->width == THIN && norms && (plain || !(j->f.value.data || j->x.vector));
    for (int64_t i = 0; i < n; i += 4) {
        const int64_t left = n - i < 4 ? n - i : 4;
        const float *drawn = factor ? factor + i * j->width : NULL;
        if (thin && left == 4) {
            thin_rows(j, first + i, drawn);
            continue;
        }
        for (int64_t r = 0; r < left; r++) {
            const float *by = drawn ? drawn + r * j->width : NULL;
            if (plain)
                plain_sum(j->width, j, first + i + r, by, z + r * j->width);
            else
                any_sum(j, first + i + r, by, z + r * j->width);
        }
        if (norms) normalise(j->width, j, z, first + i, (int)left);
    }
}

static void join_part(fth_exec *ex, const fth_op *op, const fth_team *team) {
    const fth_tensor *t = fth_arg(ex, op->in[JOIN_X]);
    const join j = join_of(ex, op);
    const int64_t at_once = drop_rows_at_once(j.width);
    float *z = thread_scratch(ex, team->thread, thread_floats(j.width)), *factor = z + 4 * j.width;
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    memset(z, 0, sizeof *z * (size_t)(4 * j.width)); /* rows that the last four lack */
    for (int64_t row = mine.begin; row < mine.end; row += at_once) {
        const int64_t n = mine.end - row < at_once ? mine.end - row : at_once;
        if (j.drop)
            FTH_NAME(drop_factors)(ex, j.drop, drop_element(ex, t, row), n * j.width, factor);
        if (j.kept) FTH_NAME(drop_to_bits)(factor, j.width, j.kept, row, n);
        join_rows(&j, row, n, j.drop ? factor : NULL, z);
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
