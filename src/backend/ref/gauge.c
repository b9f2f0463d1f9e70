/* watch.c: the operations that look at values: sums over rows, cosines between the positions of a
 * sentence (doc/analyses.md#when-a-run-has-failed d), entropy of attention. They change nothing but
 * their two sums. */
#include "backend/ref/ref.h"

#include <math.h>

static double dot(const fth_tensor *a, int64_t i, const fth_tensor *b, int64_t j, int32_t first,
                  int32_t width) {
    double sum = 0;
    for (int32_t c = first; c < first + width; c++)
        sum += fth_ref_get(a, i, c) * fth_ref_get(b, j, c);
    return sum;
}

/* Sum of (coefficient x)^2 of a row. */
static double scaled_square(const fth_exec *ex, const fth_coef *coef, const fth_tensor *param,
                            const fth_tensor *x, int64_t row) {
    double sum = 0;
    for (int32_t c = 0; c < x->width; c++) {
        const double term = fth_ref_coefficient(ex, coef, param, c) * fth_ref_get(x, row, c);
        sum += term * term;
    }
    return sum;
}

/* What a row adds to the two sums. */
static void add_row(const fth_exec *ex, const fth_op *op, int64_t row, double sums[2]) {
    const fth_tensor *x = fth_arg(ex, op->in[GAUGE_X]), *f = fth_arg(ex, op->in[GAUGE_F]);
    const double square = dot(x, row, x, row, 0, x->width);
    switch (op->u.gauge.what) {
    case FTH_GAUGE_NORM:
        sums[0] += square;
        sums[1] += sqrt(square);
        break;
    case FTH_GAUGE_NONZERO:
        for (int32_t c = 0; c < x->width; c++) sums[0] += fth_ref_get(x, row, c) != 0;
        sums[1] += x->width;
        break;
    case FTH_GAUGE_COSINE:
        sums[0] += dot(x, row, f, row, 0, x->width) /
                   sqrt(square * dot(f, row, f, row, 0, x->width) + 1e-30);
        sums[1] += 1;
        break;
    case FTH_GAUGE_RATIO:
        sums[0] += scaled_square(ex, &op->u.gauge.a, fth_arg(ex, op->in[GAUGE_A]), f, row);
        sums[1] += scaled_square(ex, &op->u.gauge.r, fth_arg(ex, op->in[GAUGE_R]), x, row);
        break;
    }
}

static void put_sums(const fth_exec *ex, const fth_op *op, const double sums[2]) {
    const fth_tensor *out = fth_arg(ex, op->out[GAUGE_SUMS]);
    for (int k = 0; k < 2; k++) fth_ref_put(out, 0, k, sums[k]);
}

fth_err fth_ref_gauge(fth_exec *ex, const fth_op *op) {
    const int64_t rows = fth_rows_now(ex, fth_arg(ex, op->in[GAUGE_X]));
    double sums[2] = {0};
    for (int64_t row = 0; row < rows; row++) add_row(ex, op, row, sums);
    if (op->u.gauge.what == FTH_GAUGE_NORM || op->u.gauge.what == FTH_GAUGE_RATIO)
        sums[0] = sqrt(sums[0]);
    if (op->u.gauge.what == FTH_GAUGE_RATIO) sums[1] = sqrt(sums[1]);
    put_sums(ex, op, sums);
    return FTH_OK;
}

/* Every pair of positions by itself. */
fth_err fth_ref_gauge_positions(fth_exec *ex, const fth_op *op) {
    const fth_tensor *x = fth_arg(ex, op->in[GAUGE_POSITIONS_X]);
    const int32_t *offsets = ex->batch.side[op->u.gauge.side].offsets;
    double sums[2] = {0};
    for (int32_t s = 0; s < ex->batch.n_sent; s++) {
        const int64_t first = offsets[s], end = offsets[s + 1], n = end - first;
        if (n < 2) continue;
        double sentence = 0;
        for (int64_t i = first; i < end; i++)
            for (int64_t j = first; j < i; j++)
                sentence +=
                    dot(x, i, x, j, 0, x->width) /
                    sqrt(dot(x, i, x, i, 0, x->width) * dot(x, j, x, j, 0, x->width) + 1e-30);
        sums[0] += 2 * sentence / ((double)n * (double)(n - 1));
        sums[1] += 1;
    }
    put_sums(ex, op, sums);
    return FTH_OK;
}

/* Entropy of one head of a query row: sum of p (lse - s), p = exp(s - lse). No p is above 1: a
 * score that rounding has put above lse counts as lse, or the sum could be negative. */
static double entropy(const fth_exec *ex, const fth_op *op, int64_t row, int64_t key, int64_t seen,
                      int64_t pair, int32_t head) {
    const fth_tensor *q = fth_arg(ex, op->in[GAUGE_ENTROPY_Q]);
    const fth_tensor *k = fth_arg(ex, op->in[GAUGE_ENTROPY_K]);
    const fth_tensor *prev = fth_arg(ex, op->in[GAUGE_ENTROPY_PREV]);
    const double lse = fth_ref_get(fth_arg(ex, op->in[GAUGE_ENTROPY_LSE]), row, head);
    const int32_t width = q->width / op->u.attention.heads;
    double sum = 0;
    for (int64_t j = 0; j < seen; j++) {
        double s = (double)op->u.attention.scale * dot(q, row, k, key + j, head * width, width);
        if (prev) s += fth_ref_get(prev, pair + j, head);
        const double below = fmax(lse - s / (double)op->u.attention.divisor, 0);
        sum += exp(-below) * below;
    }
    return sum;
}

fth_err fth_ref_gauge_entropy(fth_exec *ex, const fth_op *op) {
    const int64_t rows = fth_rows_now(ex, fth_arg(ex, op->in[GAUGE_ENTROPY_Q]));
    const int64_t step = (rows + FTH_GAUGE_QUERIES - 1) / FTH_GAUGE_QUERIES;
    const int32_t *q_off = ex->batch.side[op->u.attention.q_side].offsets;
    const int32_t *k_off = ex->batch.side[op->u.attention.k_side].offsets;
    double sums[2] = {0};
    int64_t pair = 0;
    for (int32_t s = 0; s < ex->batch.n_sent; s++) {
        const int64_t keys = k_off[s + 1] - k_off[s];
        for (int64_t row = q_off[s]; row < q_off[s + 1]; row++, pair += keys) {
            if (row % step != 0) continue;
            const int64_t seen = op->u.attention.causal ? row - q_off[s] + 1 : keys;
            for (int32_t head = 0; head < op->u.attention.heads; head++)
                sums[0] += entropy(ex, op, row, k_off[s], seen, pair, head);
            sums[1] += op->u.attention.heads;
        }
    }
    put_sums(ex, op, sums);
    return FTH_OK;
}
