/* gauge.c: the operations that look at values. gauge reads each value once, bound by memory or the
 * cache that still holds it; gauge_positions reads its value twice; gauge_entropy makes the scores
 * of at most FTH_GAUGE_QUERIES query rows again.
 *
 * Several of them follow one another and none reads what another writes: each is done by a single
 * thread, and threads wait for each other only behind the last one (cpu.c). */
#include "backend/cpu/kernel/kernel.h"

#include "backend/cpu/kernel/math.h"

/* Whether the operation is this thread's: they take turns. */
static bool is_mine(const fth_exec *ex, const fth_op *op, const fth_team *team) {
    return (op - ex->graph->op) % team->n_threads == team->thread;
}

static void put_sums(const fth_exec *ex, const fth_op *op, double first, double second) {
    const fth_tensor *out = fth_arg(ex, op->out[GAUGE_SUMS]);
    set_element(out, 0, 0, (float)first);
    set_element(out, 0, 1, (float)second);
}

/* ---- gauge ---- */

/* Squares of floats vanish below 1e-19 and overflow above 1.8e19, and gradients that fade on their
 * way down a deep stack go far below: such rows are added up in double. */
static double square_of(const real *x, int32_t n) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t i = 0; i < n; i++) sum += from_real(x[i]) * from_real(x[i]);
    if (sum > 1e-25f && sum < INFINITY) return (double)sum;
    double exact = 0;
    for (int32_t i = 0; i < n; i++) exact += (double)from_real(x[i]) * (double)from_real(x[i]);
    return exact;
}

/* Sum of (c x)^2 with a coefficient for each column, or one for all. */
static double scaled_square(const real *x, int32_t n, float c, const float *vector) {
    const double square = (double)c * (double)c;
    if (!vector) return square * square_of(x, n);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t i = 0; i < n; i++) {
        const float term = vector[i] * from_real(x[i]);
        sum += term * term;
    }
    return square * (double)sum;
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

/* What a row adds to the two sums of a ratio. */
typedef struct ratio {
    float r, a;
    const float *r_of, *a_of; /* [width] or NULL */
} ratio;

static ratio ratio_of(const fth_exec *ex, const fth_op *op) {
    ratio c = {0};
    if (op->u.gauge.what != FTH_GAUGE_RATIO) return c;
    c.r = coefficient(ex, &op->u.gauge.r, op->in[GAUGE_R], &c.r_of);
    c.a = coefficient(ex, &op->u.gauge.a, op->in[GAUGE_A], &c.a_of);
    return c;
}

FTH_PART(gauge) {
    if (!is_mine(ex, op, team)) return;
    const fth_tensor *t = fth_arg(ex, op->in[GAUGE_X]);
    const rows x = rows_of(ex, op->in[GAUGE_X]), f = rows_of(ex, op->in[GAUGE_F]);
    const int64_t n = fth_rows_now(ex, t);
    const int32_t width = t->width;
    const ratio c = ratio_of(ex, op);
    double first = 0, second = 0;
    for (int64_t row = 0; row < n; row++) {
        const real *xr = x.data + row * x.ld, *fr = f.data ? f.data + row * f.ld : NULL;
        switch (op->u.gauge.what) {
        case FTH_GAUGE_NORM: {
            const double square = square_of(xr, width);
            first += square;
            second += sqrt(square);
            break;
        }
        case FTH_GAUGE_NONZERO: first += count_nonzero(xr, width); break;
        case FTH_GAUGE_COSINE: first += cosine(xr, fr, width); break;
        case FTH_GAUGE_RATIO:
            first += scaled_square(fr, width, c.a, c.a_of);
            second += scaled_square(xr, width, c.r, c.r_of);
            break;
        }
    }
    switch (op->u.gauge.what) {
    case FTH_GAUGE_NORM: put_sums(ex, op, sqrt(first), second); break;
    case FTH_GAUGE_NONZERO: put_sums(ex, op, first, (double)(n * width)); break;
    case FTH_GAUGE_COSINE: put_sums(ex, op, first, (double)n); break;
    case FTH_GAUGE_RATIO: put_sums(ex, op, sqrt(first), sqrt(second)); break;
    }
}

/* ---- gauge_positions ---- */

FTH_SCRATCH(gauge_positions) {
    (void)capacity;
    return threads_scratch_bytes(dev, g->value[op->in[GAUGE_POSITIONS_X]].width);
}

/* (|sum u|^2 - sum |u|^2) / (n (n - 1)) of the rows u scaled to length 1; total: [width] */
static double sentence_cosine(const rows x, int32_t width, int64_t begin, int64_t end,
                              float *restrict_ total) {
    double own = 0;
    memset(total, 0, sizeof *total * (size_t)width);
    for (int64_t row = begin; row < end; row++) {
        const real *r = x.data + row * x.ld;
        const double square = square_of(r, width);
        const float scale = (float)(1 / sqrt(square + 1e-30));
#pragma omp simd
        for (int32_t i = 0; i < width; i++) total[i] += scale * from_real(r[i]);
        own += square * (double)scale * (double)scale;
    }
    double square = 0;
    for (int32_t i = 0; i < width; i++) square += (double)total[i] * (double)total[i];
    const double n = (double)(end - begin);
    return (square - own) / (n * (n - 1));
}

FTH_PART(gauge_positions) {
    if (!is_mine(ex, op, team)) return;
    const fth_tensor *t = fth_arg(ex, op->in[GAUGE_POSITIONS_X]);
    const rows x = rows_of(ex, op->in[GAUGE_POSITIONS_X]);
    const int32_t *offsets = ex->batch.side[op->u.gauge.side].offsets;
    float *total = thread_scratch(ex, team->thread, t->width); /* [width] */
    double cosines = 0;
    int64_t sentences = 0;
    for (int32_t s = 0; s < ex->batch.n_sent; s++) {
        if (offsets[s + 1] - offsets[s] < 2) continue; /* no pair of positions */
        cosines += sentence_cosine(x, t->width, offsets[s], offsets[s + 1], total);
        sentences++;
    }
    put_sums(ex, op, cosines, (double)sentences);
}

/* ---- gauge_entropy ---- */

/* One query row: where its keys and pairs are. */
typedef struct query {
    int64_t row, key, seen, pair;
} query;

static double entropy(const fth_exec *ex, const fth_op *op, const query *at, int32_t head) {
    const rows q = rows_of(ex, op->in[GAUGE_ENTROPY_Q]), k = rows_of(ex, op->in[GAUGE_ENTROPY_K]);
    const full_rows prev = full_of(ex, op->in[GAUGE_ENTROPY_PREV]);
    const full_rows lses = full_of(ex, op->in[GAUGE_ENTROPY_LSE]);
    const int32_t width = fth_arg(ex, op->in[GAUGE_ENTROPY_Q])->width / op->u.attention.heads;
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
        const float apart = lse - s / op->u.attention.divisor;
        const float below = apart < 0 ? 0 : apart; /* rounding: no probability is above 1 */
        sum += (double)(fast_exp(-below) * below);
    }
    return sum;
}

FTH_PART(gauge_entropy) {
    if (!is_mine(ex, op, team)) return;
    const int64_t n = fth_rows_now(ex, fth_arg(ex, op->in[GAUGE_ENTROPY_Q]));
    const int64_t step = (n + FTH_GAUGE_QUERIES - 1) / FTH_GAUGE_QUERIES;
    const int32_t *q_off = ex->batch.side[op->u.attention.q_side].offsets;
    const int32_t *k_off = ex->batch.side[op->u.attention.k_side].offsets;
    int64_t first_pair = 0, queries = 0;
    int32_t s = 0;
    double sum = 0;
    for (int64_t row = 0; row < n; row += step) {
        for (; row >= q_off[s + 1]; s++)
            first_pair += (int64_t)(q_off[s + 1] - q_off[s]) * (k_off[s + 1] - k_off[s]);
        const int64_t keys = k_off[s + 1] - k_off[s], within = row - q_off[s];
        const query at = {row, k_off[s], op->u.attention.causal ? within + 1 : keys,
                          first_pair + within * keys};
        for (int32_t head = 0; head < op->u.attention.heads; head++)
            sum += entropy(ex, op, &at, head);
        queries++;
    }
    put_sums(ex, op, sum, (double)(queries * op->u.attention.heads));
}
