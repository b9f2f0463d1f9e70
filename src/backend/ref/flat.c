/* flat.c: the work on flat arenas of parameters: sum of squares, Adam, the copy of the weights. */
#include "backend/ref/ref.h"

#include <math.h>

fth_err fth_ref_sum_squares(fth_device *dev, const void *full, int64_t n, double *out) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = fth_ref_load(dev->full, full, i);
        sum += x * x;
    }
    *out = sum;
    return FTH_OK;
}

fth_err fth_ref_square_sums(fth_device *dev, const void *full, int64_t n, int64_t piece,
                            double *out) {
    const size_t size = fth_dtype_size(dev->full);
    for (int64_t at = 0; at < n; at += piece)
        FTH_TRY(fth_ref_sum_squares(dev, (const char *)full + (size_t)at * size,
                                    at + piece < n ? piece : n - at, out++));
    return FTH_OK;
}

fth_err fth_ref_add_up(fth_device *dev, void *to, const fth_addends *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double sum = from->fresh ? 0 : fth_ref_load(dev->full, to, i);
        for (int32_t k = 0; k < from->many; k++) {
            const double x = fth_ref_load(dev->full, from->data, k * from->stride + i);
            sum = from->fresh && k == 0 ? x : sum + x;
        }
        fth_ref_store(dev->full, to, i, sum);
    }
    return FTH_OK;
}

/* doc/mathematics.md#optimiser-and-rates, fairseq's form: decoupled decay, eps added to the
 * uncorrected root. What is kept is rounded to float, so that a checkpoint in fp32 holds all of it.
 */
fth_err fth_ref_adam(fth_device *dev, const fth_arenas *a, const fth_adam *args) {
    const double b1 = args->beta1, b2 = args->beta2, t = (double)args->update;
    const double correction = sqrt(1 - pow(b2, t)) / (1 - pow(b1, t));
    const fth_dtype full = dev->full;
    for (int32_t r = 0; r < args->n_ranges; r++) {
        const fth_adam_range *range = &args->range[r];
        const double lr = args->lr * (double)range->lr_scale;
        for (int64_t i = range->begin; i < range->end; i++) {
            double g =
                fth_ref_load(full, a->grad, range->grad + i - range->begin) * args->grad_scale;
            double m = b1 * fth_ref_load(full, a->m, i) + (1 - b1) * g;
            double v = b2 * fth_ref_load(full, a->v, i) + (1 - b2) * g * g;
            double theta = fth_ref_load(full, a->master, i);
            theta -= lr * args->weight_decay * theta;
            theta -= lr * correction * m / (sqrt(v) + args->eps);
            fth_ref_store(full, a->m, i, (float)m);
            fth_ref_store(full, a->v, i, (float)v);
            fth_ref_store(full, a->master, i, (float)theta);
        }
    }
    return FTH_OK;
}

fth_err fth_ref_refresh_weights(fth_device *dev, const fth_arenas *a) {
    if (a->weights == a->master) return FTH_OK;
    for (int64_t i = 0; i < a->n; i++)
        fth_ref_store(dev->real, a->weights, i, fth_ref_load(dev->full, a->master, i));
    return FTH_OK;
}

/* Adam gave theta = (1 - decay) old - moved: the change is what it took away. */
fth_err fth_ref_range_sums(fth_device *dev, const fth_arenas *a, const fth_adam *args,
                           double *out) {
    const double t = (double)args->update;
    const double correction = sqrt(1 - pow(args->beta2, t)) / (1 - pow(args->beta1, t));
    const fth_dtype full = dev->full;
    for (int32_t r = 0; r < args->n_ranges; r++) {
        const fth_adam_range *range = &args->range[r];
        const double lr = args->lr * (double)range->lr_scale;
        const double decay = lr * args->weight_decay;
        double *sums = out + r * FTH_RANGE_SUMS;
        memset(sums, 0, sizeof *sums * FTH_RANGE_SUMS);
        for (int64_t i = range->begin; i < range->end; i++) {
            const double g = fth_ref_load(full, a->grad, range->grad + i - range->begin);
            const double theta = fth_ref_load(full, a->master, i);
            double moved = 0;
            if (lr > 0)
                moved = lr * correction * fth_ref_load(full, a->m, i) /
                        (sqrt(fth_ref_load(full, a->v, i)) + args->eps);
            const double old = (theta + moved) / (1 - decay), change = moved + decay * old;
            sums[FTH_RANGE_GRAD] += g * g;
            sums[FTH_RANGE_PARAM] += old * old;
            sums[FTH_RANGE_CHANGE] += change * change;
        }
    }
    return FTH_OK;
}
