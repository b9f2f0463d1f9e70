/* join_bwd.c: join_bwd, norm_bwd, join_norm_bwd. Per row dz = LN'(dy) + what z has from its other
 * readers, then dx = r dz, df = a D(dz), de = c dz (doc/mathematics.md#layer-norm). Sums over rows
 * (gain, bias, learned coefficients) are kept by each thread and added in the order of the threads
 * at the end. Reads 2n to 3n, writes 2n per row; bound by memory and the dropout draws. */
#include "backend/cpu/kernel/kernel.h"

#include "backend/cpu/kernel/vec.h"

/* Sums over rows, [d] each. */
enum { SUM_GAIN, SUM_BIAS, SUM_R, SUM_A, SUM_C, N_SUMS };

/* One output r dz, a D(dz) or c dz and the learned coefficient behind it. */
typedef struct branch {
    rows out;            /* data NULL: not wanted */
    rows value;          /* the term's value, where its coefficient is learned */
    float scale;         /* the whole scalar factor */
    float constant;      /* the part of it that is not learned */
    const float *vector; /* [d] learned, or NULL */
    float *grad;         /* [d] or [1]: of the learned coefficient; NULL: none */
    bool by_column;      /* grad is a vector */
} branch;

typedef struct join_bwd {
    branch b[3]; /* of x, f, e */
    rows dy, dz, z;
    full_rows stats;
    const float *gain;      /* [d]; NULL: no LN */
    float *dgain, *dbias;   /* [d] */
    const fth_drop *drop;   /* NULL: none */
    const fth_tensor *kept; /* bits that the forward has drawn; NULL: draw them again */
    int32_t width;
} join_bwd;

static branch branch_of(const fth_exec *ex, const fth_op *op, const fth_coef *coef, int which) {
    branch b = {.out = rows_of(ex, op->out[JOIN_BWD_DX + which]),
                .value = rows_of(ex, op->in[JOIN_BWD_X + which]),
                .grad = vector_of(ex, op->out[JOIN_BWD_DR + which]),
                .constant = (float)fth_coef_now(ex, coef),
                .by_column = coef->kind == FTH_COEF_VECTOR};
    b.scale = b.constant;
    if (coef->kind == FTH_COEF_SCALAR) b.scale *= scalar_of(ex, op->in[JOIN_BWD_R + which], 1);
    if (coef->kind == FTH_COEF_VECTOR) b.vector = vector_of(ex, op->in[JOIN_BWD_R + which]);
    return b;
}

static join_bwd join_bwd_of(const fth_exec *ex, const fth_op *op) {
    join_bwd j = {.dz = rows_of(ex, op->in[JOIN_BWD_DZ])};
    const bool has_ln = op->kind != FTH_KIND_join_bwd;
    j.width = fth_arg(ex, op->in[has_ln ? JOIN_BWD_DY : JOIN_BWD_DZ])->width;
    if (has_ln) {
        j.dy = rows_of(ex, op->in[JOIN_BWD_DY]);
        j.z = rows_of(ex, op->in[JOIN_BWD_Z]);
        j.stats = full_of(ex, op->in[JOIN_BWD_STATS]);
        j.gain = vector_of(ex, op->in[JOIN_BWD_GAIN]);
        j.dgain = vector_of(ex, op->out[JOIN_BWD_DGAIN]);
        j.dbias = vector_of(ex, op->out[JOIN_BWD_DBIAS]);
    }
    if (op->kind == FTH_KIND_norm_bwd) {
        j.b[0] = (branch){.out = rows_of(ex, op->out[JOIN_BWD_DX]), .scale = 1};
        return j;
    }
    j.b[0] = branch_of(ex, op, &op->u.join.r, 0);
    j.b[1] = branch_of(ex, op, &op->u.join.a, 1);
    j.b[2] = branch_of(ex, op, &op->u.join.c, 2);
    if (op->u.join.drop.p > 0 && (j.b[1].out.data || j.b[1].grad)) j.drop = &op->u.join.drop;
    if (j.drop) j.kept = fth_arg(ex, op->in[JOIN_BWD_KEPT]);
    return j;
}

/* The two means that LN' needs of a row (doc/mathematics.md#layer-norm). */
typedef struct row_means {
    float u, uz; /* of u = g dy, and of u xhat */
} row_means;

/* Adds to the sums of gain and bias. */
static row_means means_row(const join_bwd *j, int64_t row, float *restrict_ sums) {
    const int32_t width = j->width;
    const real *restrict_ dy = j->dy.data + row * j->dy.ld;
    const real *restrict_ z = j->z.data + row * j->z.ld;
    const float mean = j->stats.data[row * j->stats.ld];
    const float rstd = j->stats.data[row * j->stats.ld + 1];
    const float *restrict_ gain = j->gain;
    float *restrict_ dgain = sums + SUM_GAIN * width, *restrict_ dbias = sums + SUM_BIAS * width;
    vf sum_u = v_zero(), sum_uz = v_zero();
    int32_t i = 0;
    for (; i + VW <= width; i += VW) {
        const vf g = v_load_real(dy + i), u = v_mul(g, v_load(gain + i));
        const vf xhat = v_mul(v_add(v_load_real(z + i), v_set(-mean)), v_set(rstd));
        v_store(dgain + i, v_fma(g, xhat, v_load(dgain + i)));
        v_store(dbias + i, v_add(g, v_load(dbias + i)));
        sum_u = v_add(sum_u, u);
        sum_uz = v_fma(u, xhat, sum_uz);
    }
    float rest_u = 0, rest_uz = 0;
    for (; i < width; i++) {
        const float g = from_real(dy[i]), xhat = (from_real(z[i]) - mean) * rstd, u = g * gain[i];
        dgain[i] += g * xhat;
        dbias[i] += g;
        rest_u += u;
        rest_uz += u * xhat;
    }
    return (row_means){(v_sum(sum_u) + rest_u) / (float)width,
                       (v_sum(sum_uz) + rest_uz) / (float)width};
}

/* dz of one row through the LN, with what z has from its other readers. */
static void norm_row(const join_bwd *j, int64_t row, float *restrict_ dz, float *restrict_ sums) {
    const int32_t width = j->width;
    const row_means m = means_row(j, row, sums);
    const real *restrict_ dy = j->dy.data + row * j->dy.ld;
    const real *restrict_ z = j->z.data + row * j->z.ld;
    const real *restrict_ more = j->dz.data ? j->dz.data + row * j->dz.ld : NULL;
    const float mean = j->stats.data[row * j->stats.ld];
    const float rstd = j->stats.data[row * j->stats.ld + 1];
    const float *restrict_ gain = j->gain;
    /* dz = (u - mean u - xhat mean uz) rstd = u rstd - z b - c */
    const float b = rstd * rstd * m.uz, c = rstd * m.u - mean * b;
    int32_t i = 0;
    for (; i + VW <= width; i += VW) {
        const vf u = v_mul(v_mul(v_load_real(dy + i), v_load(gain + i)), v_set(rstd));
        const vf out = v_add(v_fma(v_load_real(z + i), v_set(-b), u), v_set(-c));
        v_store(dz + i, more ? v_add(out, v_load_real(more + i)) : out);
    }
    for (; i < width; i++)
        dz[i] = from_real(dy[i]) * gain[i] * rstd - from_real(z[i]) * b - c +
                (more ? from_real(more[i]) : 0.0f);
}

/* One branch of one row: its output, and the sums of its learned coefficient. factor: [d] of the
 * dropout, or NULL. */
static void branch_row(const branch *b, int64_t row, const float *restrict_ dz,
                       const float *restrict_ factor, float *restrict_ sum, int32_t width) {
    if (b->grad) {
        const real *value = b->value.data + row * b->value.ld;
#pragma omp simd
        for (int32_t i = 0; i < width; i++)
            sum[i] += dz[i] * (factor ? factor[i] : 1.0f) * from_real(value[i]);
    }
    if (!b->out.data) return;
    real *restrict_ out = b->out.data + row * b->out.ld;
    const float scale = b->scale, *restrict_ vector = b->vector;
    int32_t i = 0;
    for (; i + VW <= width && !vector; i += VW) {
        const vf x = v_mul(v_load(dz + i), v_set(scale));
        v_store_real(out + i, factor ? v_mul(x, v_load(factor + i)) : x);
    }
    for (; i < width; i++)
        out[i] = to_real(scale * (vector ? vector[i] : 1.0f) * (factor ? factor[i] : 1.0f) * dz[i]);
}

/* ---- thin rows: two at a time in registers ---- */

enum { THIN = 64 };

/* Is it the backward of LN(r x + a D(f)) of thin rows, without learned coefficients? */
static bool is_thin(const join_bwd *j) {
    bool plain = j->gain && !j->b[2].out.data;
    for (int b = 0; b < 3; b++) plain = plain && !j->b[b].vector && !j->b[b].grad;
    return plain && j->width == THIN;
}

/* A row's dy and z. */
typedef struct thin_row {
    vf g[THIN / VW], z[THIN / VW];
    float mean, rstd;
} thin_row;

inline_ thin_row load_row(const join_bwd *j, int64_t row) {
    const real *dy = j->dy.data + row * j->dy.ld, *z = j->z.data + row * j->z.ld;
    thin_row t = {.mean = j->stats.data[row * j->stats.ld],
                  .rstd = j->stats.data[row * j->stats.ld + 1]};
#pragma GCC unroll 16
    for (int i = 0; i < THIN / VW; i++) {
        t.g[i] = v_load_real(dy + i * VW);
        t.z[i] = v_load_real(z + i * VW);
    }
    return t;
}

/* Outputs of one row from dz = u rstd - z b - c (norm_row). */
inline_ void put_row(const join_bwd *j, int64_t row, const thin_row *t, row_means m,
                     const float *factor) {
    const real *more = j->dz.data ? j->dz.data + row * j->dz.ld : NULL;
    real *dx = j->b[0].out.data ? j->b[0].out.data + row * j->b[0].out.ld : NULL;
    real *df = j->b[1].out.data ? j->b[1].out.data + row * j->b[1].out.ld : NULL;
    const float b = t->rstd * t->rstd * m.uz, c = t->rstd * m.u - t->mean * b;
#pragma GCC unroll 16
    for (int i = 0; i < THIN / VW; i++) {
        const vf u = v_mul(v_mul(t->g[i], v_load(j->gain + i * VW)), v_set(t->rstd));
        vf dz = v_add(v_fma(t->z[i], v_set(-b), u), v_set(-c));
        if (more) dz = v_add(dz, v_load_real(more + i * VW));
        if (dx) v_store_real(dx + i * VW, v_mul(dz, v_set(j->b[0].scale)));
        if (!df) continue;
        const vf branch_dz = v_mul(dz, v_set(j->b[1].scale));
        v_store_real(df + i * VW, factor ? v_mul(branch_dz, v_load(factor + i * VW)) : branch_dz);
    }
}

/* Rows first and first + 1. factor: [2, d] or NULL. */
static void thin_pair(const join_bwd *j, int64_t first, const float *factor, float *sums) {
    const join_bwd own = *j; /* a copy, which no store of a row can change */
    const thin_row t[2] = {load_row(&own, first), load_row(&own, first + 1)};
    float *dgain = sums + SUM_GAIN * THIN, *dbias = sums + SUM_BIAS * THIN;
    vf sum[4] = {v_zero(), v_zero(), v_zero(), v_zero()}; /* u and u xhat of both */
#pragma GCC unroll 16
    for (int i = 0; i < THIN / VW; i++) {
        const vf gain = v_load(own.gain + i * VW);
        vf gains = v_load(dgain + i * VW), biases = v_load(dbias + i * VW);
#pragma GCC unroll 2
        for (int r = 0; r < 2; r++) {
            const vf g = t[r].g[i], u = v_mul(g, gain);
            const vf xhat = v_mul(v_add(t[r].z[i], v_set(-t[r].mean)), v_set(t[r].rstd));
            gains = v_fma(g, xhat, gains);
            biases = v_add(g, biases);
            sum[2 * r] = v_add(sum[2 * r], u);
            sum[2 * r + 1] = v_fma(u, xhat, sum[2 * r + 1]);
        }
        v_store(dgain + i * VW, gains);
        v_store(dbias + i * VW, biases);
    }
    const v4 mean = v_four_sums(sum) / (float)THIN;
    put_row(&own, first, &t[0], (row_means){mean[0], mean[1]}, factor);
    put_row(&own, first + 1, &t[1], (row_means){mean[2], mean[3]}, factor ? factor + THIN : NULL);
}

/* Adds what the threads summed to the gradients; the columns are shared among them. */
static void reduce(const fth_exec *ex, const join_bwd *j, const fth_team *team, int64_t floats) {
    const int32_t width = j->width;
    float *const grad[N_SUMS] = {j->dgain, j->dbias, j->b[0].grad, j->b[1].grad, j->b[2].grad};
    for (int s = 0; s < N_SUMS; s++) {
        if (!grad[s]) continue;
        const branch *b = s >= SUM_R ? &j->b[s - SUM_R] : NULL;
        const bool scalar = b && !b->by_column;
        const fth_cpu_share mine = scalar ? (fth_cpu_share){0, team->thread == 0 ? width : 0}
                                          : fth_team_share(team, width, 16);
        double whole = 0;
        for (int64_t i = mine.begin; i < mine.end; i++) {
            float sum = 0;
            for (int t = 0; t < team->n_threads; t++)
                sum += thread_scratch(ex, t, floats)[s * width + i];
            if (b) sum *= b->constant;
            if (scalar)
                whole += (double)sum;
            else
                grad[s][i] += sum;
        }
        if (scalar && team->thread == 0) grad[s][0] += (float)whole;
    }
}

/* A thread's sums [N_SUMS, d], dz [d] and factors [at once, d]. */
static int64_t thread_floats(int32_t width) {
    return (N_SUMS + 1 + drop_rows_at_once(width)) * width;
}

FTH_SCRATCH(join_bwd) {
    (void)capacity;
    const fth_val shape = op->in[JOIN_BWD_DY] ? op->in[JOIN_BWD_DY] : op->in[JOIN_BWD_DZ];
    return threads_scratch_bytes(dev, thread_floats(g->value[shape].width));
}

/* Row by row. factor: [d] or NULL; dz: a place for [d]. */
static void any_row(const join_bwd *j, int64_t row, const float *factor, float *restrict_ dz,
                    float *sums) {
    const int32_t width = j->width;
    if (j->gain) {
        norm_row(j, row, dz, sums);
    } else {
        const real *in = j->dz.data + row * j->dz.ld;
#pragma omp simd
        for (int32_t i = 0; i < width; i++) dz[i] = from_real(in[i]);
    }
    for (int b = 0; b < 3; b++)
        branch_row(&j->b[b], row, dz, b == 1 ? factor : NULL, sums + (SUM_R + b) * width, width);
}

static void join_bwd_part(fth_exec *ex, const fth_op *op, const fth_team *team) {
    const join_bwd j = join_bwd_of(ex, op);
    const fth_tensor *t = fth_arg(ex, op->in[j.gain ? JOIN_BWD_DY : JOIN_BWD_DZ]);
    const int32_t width = j.width;
    const int64_t at_once = drop_rows_at_once(width), floats = thread_floats(width);
    const bool thin = is_thin(&j);
    float *sums = thread_scratch(ex, team->thread, floats);  /* [N_SUMS, d] */
    float *dz = sums + N_SUMS * width, *factor = dz + width; /* [d], [at_once, d] */
    memset(sums, 0, sizeof *sums * (size_t)(N_SUMS * width));
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t row = mine.begin; row < mine.end; row += at_once) {
        const int64_t n = mine.end - row < at_once ? mine.end - row : at_once;
        if (j.kept)
            FTH_NAME(drop_from_bits)(j.drop, j.kept, row, n, width, factor);
        else if (j.drop)
            FTH_NAME(drop_factors)(ex, j.drop, drop_element(ex, t, row), n * width, factor);
        int64_t i = 0;
        for (; thin && i + 2 <= n; i += 2)
            thin_pair(&j, row + i, j.drop ? factor + i * width : NULL, sums);
        for (; i < n; i++) any_row(&j, row + i, j.drop ? factor + i * width : NULL, dz, sums);
    }
    fth_team_wait(team);
    reduce(ex, &j, team, floats);
}

FTH_PART(join_bwd) {
    join_bwd_part(ex, op, team);
}

FTH_PART(norm_bwd) {
    join_bwd_part(ex, op, team);
}

FTH_PART(join_norm_bwd) {
    join_bwd_part(ex, op, team);
}
