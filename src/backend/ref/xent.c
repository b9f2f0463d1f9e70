/* xent.c: label-smoothed cross-entropy of x W^T + b (doc/mathematics.md#loss) with its gradients:
 * q(target) = 1 - eps, q(v) = eps / (V - 1) elsewhere; loss = -sum q log p; dlogits = p - q. */
#include "backend/ref/ref.h"

#include <math.h>

/* Fills p [V] with the logits of a row, then with their softmax; returns the log of the sum of
 * exponentials and puts the sum of all logits and the target's into *total and *own. */
static double softmax(const fth_tensor *x, const fth_tensor *w, const fth_tensor *b, int64_t row,
                      int32_t target, double *p, double *total, double *own) {
    double highest = -INFINITY;
    *total = 0;
    for (int64_t v = 0; v < w->rows; v++) {
        p[v] = b ? fth_ref_get(b, 0, v) : 0;
        for (int32_t c = 0; c < x->width; c++)
            p[v] += fth_ref_get(x, row, c) * fth_ref_get(w, v, c);
        highest = fmax(highest, p[v]);
        *total += p[v];
    }
    *own = p[target];
    double sum = exp(p[0] - highest);
    for (int64_t v = 1; v < w->rows; v++) sum += exp(p[v] - highest);
    const double lse = highest + log(sum);
    for (int64_t v = 0; v < w->rows; v++) p[v] = exp(p[v] - lse);
    return lse;
}

/* dx, dW and db of a row from g [V], the gradient of its logits. */
static void row_gradients(fth_exec *ex, const fth_op *op, int64_t row, const double *g) {
    const fth_tensor *x = fth_arg(ex, op->in[XENT_X]), *w = fth_arg(ex, op->in[XENT_W]);
    const fth_tensor *dx = fth_arg(ex, op->out[XENT_DX]), *dw = fth_arg(ex, op->out[XENT_DW]);
    const fth_tensor *db = fth_arg(ex, op->out[XENT_DB]);
    for (int64_t v = 0; db && v < w->rows; v++) fth_ref_add_to(db, 0, v, g[v]);
    for (int32_t c = 0; c < x->width; c++) {
        double sum = 0;
        for (int64_t v = 0; v < w->rows; v++) {
            sum += g[v] * fth_ref_get(w, v, c);
            if (dw) fth_ref_add_to(dw, v, c, g[v] * fth_ref_get(x, row, c));
        }
        if (dx) fth_ref_put(dx, row, c, sum);
    }
}

fth_err fth_ref_xent(fth_exec *ex, const fth_op *op) {
    const fth_tensor *x = fth_arg(ex, op->in[XENT_X]), *w = fth_arg(ex, op->in[XENT_W]);
    const fth_tensor *loss = fth_arg(ex, op->out[XENT_LOSS]), *nll = fth_arg(ex, op->out[XENT_NLL]);
    const fth_tensor *dx = fth_arg(ex, op->out[XENT_DX]), *dw = fth_arg(ex, op->out[XENT_DW]);
    const fth_tensor *b = fth_arg(ex, op->in[XENT_B]), *db = fth_arg(ex, op->out[XENT_DB]);
    const int32_t *targets = fth_targets_of(&ex->batch, x->extent);
    const int64_t vocab = w->rows;
    const double eps = op->u.xent.smoothing, eps_i = vocab > 1 ? eps / (double)(vocab - 1) : 0;
    const fth_tensor *before = fth_arg(ex, op->in[XENT_BEFORE]);
    const fth_tensor *before_nll = fth_arg(ex, op->in[XENT_NLL_BEFORE]);
    double loss_sum = before ? fth_ref_get(before, 0, 0) : 0;
    double nll_sum = before ? fth_ref_get(before, 0, 1) : 0, *p = ex->scratch; /* [V] */
    for (int64_t row = 0; row < fth_rows_now(ex, x); row++) {
        const int32_t target = fth_target_cut(&op->u.xent.cut, targets ? targets[row] : -1);
        const double nll_before = before_nll ? fth_ref_get(before_nll, row, 0) : 0;
        if (nll) fth_ref_put(nll, row, 0, nll_before);
        for (int32_t c = 0; dx && c < x->width; c++) fth_ref_put(dx, row, c, 0);
        if (target < 0) continue;
        double total, own, lse = softmax(x, w, b, row, target, p, &total, &own);
        const double row_nll = lse - own, smooth = (double)vocab * lse - total;
        loss_sum += (1 - eps - eps_i) * row_nll + eps_i * smooth;
        nll_sum += row_nll;
        if (nll) fth_ref_put(nll, row, 0, nll_before + row_nll);
        for (int64_t v = 0; v < vocab; v++)
            p[v] = (p[v] - (v == target ? 1 - eps : eps_i)) * ex->step.loss_scale;
        if (dx || dw || db) row_gradients(ex, op, row, p);
    }
    fth_ref_put(loss, 0, 0, loss_sum);
    fth_ref_put(loss, 0, 1, nll_sum);
    return FTH_OK;
}

int64_t fth_ref_xent_scratch(const fth_device *dev, const fth_graph *g, const fth_op *op,
                             const int64_t capacity[FTH_N_EXTENTS]) {
    (void)dev, (void)capacity;
    return g->value[op->in[XENT_W]].rows * (int64_t)sizeof(double);
}
