/* update.c: Adam's update of one matrix right after its gradient has been made: reads 4n and writes
 * 3n floats, of which the gradient still is in a cache. */
#include "backend/cpu/kernel/adam.h"

static int64_t stretches_of(int64_t n) {
    return (n + ADAM_STRETCH - 1) / ADAM_STRETCH;
}

/* Sums of every stretch, so that they add up in the same order whatever the threads. */
FTH_SCRATCH(update) {
    (void)dev;
    (void)capacity;
    const fth_value *grad = &g->value[op->in[UPDATE_GRAD]];
    return stretches_of(grad->rows * grad->width) * FTH_RANGE_SUMS * (int64_t)sizeof(double);
}

static void put_roots(const fth_exec *ex, const fth_op *op, const double *parts, int64_t n) {
    const fth_tensor *out = fth_arg(ex, op->out[UPDATE_SUMS]);
    for (int k = 0; k < FTH_RANGE_SUMS; k++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += parts[i * FTH_RANGE_SUMS + k];
        set_element(out, 0, k, (float)sqrt(sum));
    }
}

/* One stretch; where its gradient is not finite it stays as it is. */
static void update_stretch(const stretch *s, const fth_adam *args, double lr,
                           const adam_numbers *numbers, bool watched, double *sums) {
    memset(sums, 0, sizeof *sums * FTH_RANGE_SUMS);
    sums[FTH_RANGE_GRAD] = square_sum(s->grad, s->n);
    const bool moves = lr >= 0 && isfinite(sums[FTH_RANGE_GRAD]);
    if (moves) adam_stretch(s, numbers);
    if (watched) change_sums(s, args, moves ? lr : 0, sums);
}

FTH_PART(update) {
    const fth_tensor *grad = fth_arg(ex, op->in[UPDATE_GRAD]);
    const int64_t n = grad->rows * grad->width, stretches = stretches_of(n);
    float *master = vector_of(ex, op->out[UPDATE_MASTER]);
    real *weights = rows_of(ex, op->out[UPDATE_WEIGHTS]).data;
    double *parts = ex->scratch;
    fth_adam args = ex->step.adam;
    args.grad_scale = 1;
    const bool moves = args.update > 0 && isfinite(vector_of(ex, op->in[UPDATE_LOSS])[0]);
    const float rate = ex->step.rate[op->u.update.rate] * op->u.update.share;
    const double lr = moves ? args.lr * (double)rate : -1;
    const adam_numbers numbers = adam_numbers_of(&args, lr);
    const fth_cpu_share mine = fth_team_share(team, n, ADAM_STRETCH);
    for (int64_t i = mine.begin; i < mine.end; i += ADAM_STRETCH) {
        const stretch s = {.p = master + i,
                           .m = vector_of(ex, op->out[UPDATE_M]) + i,
                           .v = vector_of(ex, op->out[UPDATE_V]) + i,
                           .grad = (const float *)grad->data + i,
                           .w = (void *)weights == (void *)master ? NULL : weights + i,
                           .n = n - i < ADAM_STRETCH ? n - i : ADAM_STRETCH};
        update_stretch(&s, &args, lr, &numbers, op->u.update.watched,
                       parts + i / ADAM_STRETCH * FTH_RANGE_SUMS);
    }
    if (stretches > 1) fth_team_wait(team);
    if (stretches > 1 ? team->thread == 0 : mine.begin < mine.end)
        put_roots(ex, op, parts, stretches);
}
