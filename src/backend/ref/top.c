/* top.c: the best words of every row. */
#include "backend/ref/ref.h"

#include <math.h>

static double log_sum_exp(const fth_tensor *x, int64_t row) {
    double most = -INFINITY, sum = 0;
    for (int32_t v = 0; v < x->width; v++) { /* with fmax gcc 12 gives up on 64-bit ARM */
        const double logit = fth_ref_get(x, row, v);
        if (logit > most) most = logit;
    }
    if (most == -INFINITY) return most;
    for (int32_t v = 0; v < x->width; v++) sum += exp(fth_ref_get(x, row, v) - most);
    return most + log(sum);
}

/* The word that comes after `last` in order, -1 when there is none. last -1: the first. */
static int32_t next_word(const fth_tensor *x, int64_t row, int32_t last) {
    const double bound = last < 0 ? INFINITY : fth_ref_get(x, row, last);
    double most = -INFINITY;
    int32_t found = -1;
    for (int32_t v = 0; v < x->width; v++) {
        const double logit = fth_ref_get(x, row, v);
        const bool behind = logit < bound || (logit == bound && v > last);
        if (behind && logit > most) most = logit, found = v;
    }
    return found;
}

fth_err fth_ref_top(fth_exec *ex, const fth_op *op) {
    const fth_tensor *x = fth_arg(ex, op->in[TOP_X]), *y = fth_arg(ex, op->out[TOP_Y]);
    const int32_t *asked = ex->batch.side[FTH_TGT].targets;
    const int32_t k = (y->width - TOP_BEST) / 2;
    for (int64_t row = 0; row < fth_rows_now(ex, x); row++) {
        const int32_t word = asked ? asked[row] : -1;
        fth_ref_put(y, row, TOP_LSE, log_sum_exp(x, row));
        fth_ref_put(y, row, TOP_ASKED, word < 0 ? 0 : fth_ref_get(x, row, word));
        for (int32_t i = 0, last = -1, ended = 0; i < k; i++) {
            const int32_t found = ended ? -1 : next_word(x, row, last);
            ended = found < 0;
            last = found;
            fth_ref_put(y, row, TOP_BEST + i, ended ? -INFINITY : fth_ref_get(x, row, found));
            fth_ref_put(y, row, TOP_BEST + k + i, found);
        }
    }
    return FTH_OK;
}
