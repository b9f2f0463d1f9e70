/* flat.c: work on the flat arenas: Adam (METHODS A.9), sums of squares over all or over ranges, the
 * copy that products read. Adam reads 4n and writes 3n floats: bound by memory. */
#include "backend/cpu/kernel/kernel.h"

/* One stretch of parameters with one learning rate. w: the copy in the type of activations, NULL
 * where the parameters themselves are read. */
static void adam_stretch(float *restrict_ p, float *restrict_ m, float *restrict_ v,
                         const float *restrict_ grad, real *restrict_ w, int64_t n,
                         const fth_adam *args, double lr) {
    const double t = (double)args->update;
    const float b1 = (float)args->beta1, c1 = (float)(1 - args->beta1);
    const float b2 = (float)args->beta2, c2 = (float)(1 - args->beta2);
    const float scale = (float)args->grad_scale, eps = (float)args->eps;
    const float decay = (float)(lr * args->weight_decay);
    const float step = (float)(lr * sqrt(1 - pow(args->beta2, t)) / (1 - pow(args->beta1, t)));
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const float g = grad[i] * scale;
        m[i] = b1 * m[i] + c1 * g;
        v[i] = b2 * v[i] + c2 * g * g;
        p[i] -= decay * p[i];
        p[i] -= step * m[i] / (sqrtf(v[i]) + eps);
    }
    if (!w) return;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) w[i] = to_real(p[i]);
}

void FTH_NAME(adam)(const fth_arenas *a, const fth_adam *args, const fth_team *team) {
    float *p = a->master, *m = a->m, *v = a->v;
    const float *grad = a->grad;
    real *w = a->weights == a->master ? NULL : a->weights;
    enum { STRETCH = 4096 }; /* its five arrays stay in the second-level cache for the copy */
    const fth_share mine = fth_team_share(team, a->n, STRETCH);
    for (int32_t r = 0; r < args->n_ranges; r++) {
        const fth_adam_range *range = &args->range[r];
        const int64_t begin = range->begin > mine.begin ? range->begin : mine.begin;
        const int64_t end = range->end < mine.end ? range->end : mine.end;
        for (int64_t i = begin; i < end; i += STRETCH)
            adam_stretch(p + i, m + i, v + i, grad + i, w ? w + i : NULL,
                         end - i < STRETCH ? end - i : STRETCH, args,
                         args->lr * (double)range->lr_scale);
    }
}

void FTH_NAME(sum_squares)(const float *x, int64_t n, double *sums, const fth_team *team) {
    const fth_share mine = fth_team_share(team, FTH_CPU_PIECES, 1);
    for (int64_t piece = mine.begin; piece < mine.end; piece++) {
        const int64_t begin = n / FTH_CPU_PIECES * piece;
        const int64_t end = piece == FTH_CPU_PIECES - 1 ? n : begin + n / FTH_CPU_PIECES;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = begin; i < end; i++) sum += (double)x[i] * (double)x[i];
        sums[piece] = sum;
    }
}

void FTH_NAME(refresh)(const fth_arenas *a, const fth_team *team) {
    const float *p = a->master;
    real *w = a->weights;
    const fth_share mine = fth_team_share(team, a->n, 4096);
#pragma omp simd
    for (int64_t i = mine.begin; i < mine.end; i++) w[i] = to_real(p[i]);
}

/* One range; a.grad_scale is not used. Squares are summed up in double. */
static void range_sums(const fth_arenas *a, const fth_adam *args, const fth_adam_range *range,
                       double *out) {
    const double t = (double)args->update, rate = args->lr * (double)range->lr_scale;
    const float *restrict_ p = a->master, *restrict_ m = a->m, *restrict_ v = a->v;
    const float *restrict_ grad = a->grad;
    const float decay = (float)(rate * args->weight_decay), undo = 1 / (1 - decay);
    const float step = (float)(rate * sqrt(1 - pow(args->beta2, t)) / (1 - pow(args->beta1, t)));
    const float eps = (float)args->eps;
    double grads = 0, params = 0, changes = 0;
#pragma omp simd reduction(+ : grads, params, changes)
    for (int64_t i = range->begin; i < range->end; i++) {
        const float moved = step * m[i] / (sqrtf(v[i]) + eps);
        const double g = (double)grad[i], old = (double)((p[i] + moved) * undo);
        const double change = (double)moved + (double)decay * old;
        grads += g * g;
        params += old * old;
        changes += change * change;
    }
    out[FTH_RANGE_GRAD] = grads;
    out[FTH_RANGE_PARAM] = params;
    out[FTH_RANGE_CHANGE] = changes;
}

void FTH_NAME(range_sums)(const fth_arenas *a, const fth_adam *args, double *out,
                          const fth_team *team) {
    const fth_share mine = fth_team_share(team, args->n_ranges, 1);
    for (int64_t r = mine.begin; r < mine.end; r++)
        range_sums(a, args, &args->range[r], out + r * FTH_RANGE_SUMS);
}
