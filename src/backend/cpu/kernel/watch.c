/* watch.c: the operations that look at values. watch reads each value once, bound by memory or the
 * cache that still holds it; watch_positions reads its value once and writes nothing of size;
 * watch_entropy makes the scores of at most FTH_WATCH_QUERIES query rows again.
 *
 * Sums go over pieces of fixed size, which are added up in order: they do not depend on the number
 * of threads. */
#include "backend/cpu/kernel/kernel.h"

#include "backend/cpu/kernel/math.h"

enum { PIECE = 16 }; /* rows of a piece */

static double *parts_of(const fth_exec *ex) {
    return ex->scratch; /* [pieces, 2] */
}

static int64_t rows_at_most(const fth_graph *g, fth_val v, const int64_t *capacity) {
    const fth_value *value = &g->value[v];
    return value->extent == FTH_ROWS_FIXED ? value->rows : capacity[value->extent];
}

/* Adds up the parts in order and writes the sums; roots: which of them are sums of squares. */
static void finish(fth_exec *ex, const fth_op *op, const fth_team *team, int64_t pieces,
                   unsigned roots) {
    fth_team_wait(team);
    if (team->thread != 0) return;
    const double *parts = parts_of(ex);
    double sums[2] = {0};
    for (int64_t i = 0; i < 2 * pieces; i++) sums[i % 2] += parts[i];
    for (int k = 0; k < 2; k++)
        set_element(fth_arg(ex, op->out[WATCH_SUMS]), 0, k,
                    (float)(roots >> k & 1 ? sqrt(sums[k]) : sums[k]));
}

/* ---- watch ---- */

FTH_SCRATCH(watch) {
    (void)dev;
    return (rows_at_most(g, op->in[WATCH_X], capacity) / PIECE + 1) * 2 * (int64_t)sizeof(double);
}

static float square_of(const real *x, int32_t n) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t i = 0; i < n; i++) sum += from_real(x[i]) * from_real(x[i]);
    return sum;
}

/* Sum of (c x)^2 with a coefficient for each column, or one for all. */
static float scaled_square(const real *x, int32_t n, float c, const float *vector) {
    if (!vector) return c * c * square_of(x, n);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t i = 0; i < n; i++) {
        const float term = vector[i] * from_real(x[i]);
        sum += term * term;
    }
    return c * c * sum;
}

static int32_t count_nonzero(const real *x, int32_t n) {
    int32_t count = 0;
#pragma omp simd reduction(+ : count)
    for (int32_t i = 0; i < n; i++) count += from_real(x[i]) != 0;
    return count;
}

static double cosine(const real *x, const real *f, int32_t n) {
    float xx = 0, ff = 0, xf = 0;
#pragma omp simd reduction(+ : xx, ff, xf)
    for (int32_t i = 0; i < n; i++) {
        const float a = from_real(x[i]), b = from_real(f[i]);
        xx += a * a;
        ff += b * b;
        xf += a * b;
    }
    return (double)xf / sqrt((double)xx * (double)ff + 1e-30);
}

/* A coefficient as a number and, where it is a learned vector, its elements. */
static float coefficient(const fth_exec *ex, const fth_coef *c, fth_val param,
                         const float **vector) {
    *vector = c->kind == FTH_COEF_VECTOR ? vector_of(ex, param) : NULL;
    const float value = (float)fth_coef_now(ex, c);
    return c->kind == FTH_COEF_SCALAR ? value * scalar_of(ex, param, 1) : value;
}

/* What the rows [begin, end) add to the two sums. */
static void watch_rows(const fth_exec *ex, const fth_op *op, int64_t begin, int64_t end,
                       double sums[2]) {
    const rows x = rows_of(ex, op->in[WATCH_X]), f = rows_of(ex, op->in[WATCH_F]);
    const int32_t width = fth_arg(ex, op->in[WATCH_X])->width;
    const float *r_of = NULL, *a_of = NULL;
    float r = 1, a = 1;
    if (op->u.watch.what == FTH_WATCH_RATIO) {
        r = coefficient(ex, &op->u.watch.r, op->in[WATCH_R], &r_of);
        a = coefficient(ex, &op->u.watch.a, op->in[WATCH_A], &a_of);
    }
    sums[0] = sums[1] = 0;
    for (int64_t row = begin; row < end; row++) {
        const real *xr = x.data + row * x.ld, *fr = f.data ? f.data + row * f.ld : NULL;
        switch (op->u.watch.what) {
        case FTH_WATCH_NORM: {
            const double square = (double)square_of(xr, width);
            sums[0] += square;
            sums[1] += sqrt(square);
            break;
        }
        case FTH_WATCH_NONZERO:
            sums[0] += count_nonzero(xr, width);
            sums[1] += width;
            break;
        case FTH_WATCH_COSINE:
            sums[0] += cosine(xr, fr, width);
            sums[1] += 1;
            break;
        case FTH_WATCH_RATIO:
            sums[0] += (double)scaled_square(fr, width, a, a_of);
            sums[1] += (double)scaled_square(xr, width, r, r_of);
            break;
        }
    }
}

FTH_PART(watch) {
    const int64_t n = fth_rows_now(ex, fth_arg(ex, op->in[WATCH_X]));
    const int64_t pieces = (n + PIECE - 1) / PIECE;
    const fth_share mine = fth_team_share(team, pieces, 1);
    for (int64_t i = mine.begin; i < mine.end; i++) {
        const int64_t begin = i * PIECE, end = begin + PIECE < n ? begin + PIECE : n;
        watch_rows(ex, op, begin, end, parts_of(ex) + 2 * i);
    }
    static const unsigned roots[] = {[FTH_WATCH_NORM] = 1, [FTH_WATCH_RATIO] = 3};
    finish(ex, op, team, pieces, roots[op->u.watch.what]);
}

/* ---- watch_positions ---- */

/* Parts, then each thread's sum of rows. */
FTH_SCRATCH(watch_positions) {
    const int64_t rows = rows_at_most(g, op->in[WATCH_POSITIONS_X], capacity);
    return whole_lines(4 * (rows + 1)) * (int64_t)sizeof(float) +
           threads_scratch_bytes(dev, g->value[op->in[WATCH_POSITIONS_X]].width);
}

/* (|sum u|^2 - sum |u|^2) / (n (n - 1)) of the rows u scaled to length 1; total: [width] */
static double sentence_cosine(const rows x, int32_t width, int64_t begin, int64_t end,
                              float *restrict_ total) {
    double own = 0;
    memset(total, 0, sizeof *total * (size_t)width);
    for (int64_t row = begin; row < end; row++) {
        const real *r = x.data + row * x.ld;
        const float square = square_of(r, width), scale = 1 / sqrtf(square + 1e-30f);
#pragma omp simd
        for (int32_t i = 0; i < width; i++) total[i] += scale * from_real(r[i]);
        own += (double)square * (double)scale * (double)scale;
    }
    double square = 0;
    for (int32_t i = 0; i < width; i++) square += (double)total[i] * (double)total[i];
    const double n = (double)(end - begin);
    return (square - own) / (n * (n - 1));
}

FTH_PART(watch_positions) {
    const fth_tensor *t = fth_arg(ex, op->in[WATCH_POSITIONS_X]);
    const rows x = rows_of(ex, op->in[WATCH_POSITIONS_X]);
    const int32_t *offsets = ex->batch.side[op->u.watch.side].offsets;
    const int32_t n = ex->batch.n_sent;
    float *total = (float *)ex->scratch + whole_lines(4 * (t->rows + 1)) +
                   team->thread * whole_lines(t->width);
    /* Sentences of one position have no pair and no part: there are at most rows / 2 parts. */
    int64_t part = 0;
    const fth_share mine = fth_team_share(team, n, 1);
    for (int32_t s = 0; s < n; s++) {
        if (offsets[s + 1] - offsets[s] < 2) continue;
        if (s >= mine.begin && s < mine.end) {
            parts_of(ex)[2 * part] =
                sentence_cosine(x, t->width, offsets[s], offsets[s + 1], total);
            parts_of(ex)[2 * part + 1] = 1;
        }
        part++;
    }
    finish(ex, op, team, part, 0);
}

/* ---- watch_entropy ---- */

FTH_SCRATCH(watch_entropy) {
    (void)dev, (void)g, (void)op, (void)capacity;
    return FTH_WATCH_QUERIES * 2 * (int64_t)sizeof(double);
}

/* One query row: where its keys and pairs are. */
typedef struct query {
    int64_t row, key, seen, pair;
} query;

static double entropy(const fth_exec *ex, const fth_op *op, const query *at, int32_t head) {
    const rows q = rows_of(ex, op->in[WATCH_ENTROPY_Q]), k = rows_of(ex, op->in[WATCH_ENTROPY_K]);
    const full_rows prev = full_of(ex, op->in[WATCH_ENTROPY_PREV]);
    const full_rows lses = full_of(ex, op->in[WATCH_ENTROPY_LSE]);
    const int32_t width = fth_arg(ex, op->in[WATCH_ENTROPY_Q])->width / op->u.attention.heads;
    const real *mine = q.data + at->row * q.ld + head * width;
    const float lse = lses.data[at->row * lses.ld + head];
    double sum = 0;
    for (int64_t j = 0; j < at->seen; j++) {
        const real *key = k.data + (at->key + j) * k.ld + head * width;
        float s = 0;
#pragma omp simd reduction(+ : s)
        for (int32_t i = 0; i < width; i++) s += from_real(mine[i]) * from_real(key[i]);
        s *= op->u.attention.scale;
        if (prev.data) s += prev.data[(at->pair + j) * prev.ld + head];
        const float below = lse - s / op->u.attention.divisor;
        sum += (double)(fast_exp(-below) * below);
    }
    return sum;
}

FTH_PART(watch_entropy) {
    const int64_t n = fth_rows_now(ex, fth_arg(ex, op->in[WATCH_ENTROPY_Q]));
    const int64_t step = (n + FTH_WATCH_QUERIES - 1) / FTH_WATCH_QUERIES;
    const int64_t queries = step ? (n + step - 1) / step : 0;
    const int32_t *q_off = ex->batch.side[op->u.attention.q_side].offsets;
    const int32_t *k_off = ex->batch.side[op->u.attention.k_side].offsets;
    const fth_share mine = fth_team_share(team, queries, 1);
    int64_t first_pair = 0;
    int32_t s = 0;
    for (int64_t i = 0; i < mine.end; i++) {
        const int64_t row = i * step;
        for (; row >= q_off[s + 1]; s++)
            first_pair += (int64_t)(q_off[s + 1] - q_off[s]) * (k_off[s + 1] - k_off[s]);
        if (i < mine.begin) continue;
        const int64_t keys = k_off[s + 1] - k_off[s], within = row - q_off[s];
        const query at = {row, k_off[s], op->u.attention.causal ? within + 1 : keys,
                          first_pair + within * keys};
        double *part = parts_of(ex) + 2 * i;
        part[0] = 0;
        part[1] = op->u.attention.heads;
        for (int32_t head = 0; head < op->u.attention.heads; head++)
            part[0] += entropy(ex, op, &at, head);
    }
    finish(ex, op, team, queries, 0);
}
