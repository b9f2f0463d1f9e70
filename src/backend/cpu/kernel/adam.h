/* adam.h: Adam on a stretch of parameters (METHODS A.9), and the sums that telemetry wants of it. */
#ifndef FTH_BACKEND_CPU_KERNEL_ADAM_H
#define FTH_BACKEND_CPU_KERNEL_ADAM_H

#include "backend/cpu/kernel/kernel.h"

/* Elements that go through at a time: few enough for all threads to have some of a small matrix, and
 * for the five arrays to stay in the first-level cache. */
enum { ADAM_STRETCH = 1024 };

/* What a stretch consists of. w: the copy in the type of activations, NULL where the parameters
 * themselves are read. */
typedef struct stretch {
    float *p, *m, *v;
    const float *grad;
    real *w;
    int64_t n;
} stretch;

/* What an update is, for all stretches with one rate. */
typedef struct adam_numbers {
    float b1, c1, b2, c2, scale, eps, decay, step;
} adam_numbers;

static inline adam_numbers adam_numbers_of(const fth_adam *args, double lr) {
    const double t = (double)args->update;
    return (adam_numbers){
        .b1 = (float)args->beta1,
        .c1 = (float)(1 - args->beta1),
        .b2 = (float)args->beta2,
        .c2 = (float)(1 - args->beta2),
        .scale = (float)args->grad_scale,
        .eps = (float)args->eps,
        .decay = (float)(lr * args->weight_decay),
        .step = (float)(lr * sqrt(1 - pow(args->beta2, t)) / (1 - pow(args->beta1, t)))};
}

static inline void adam_stretch(const stretch *s, const adam_numbers *a) {
    const float b1 = a->b1, c1 = a->c1, b2 = a->b2, c2 = a->c2, scale = a->scale, eps = a->eps;
    const float decay = a->decay, step = a->step;
    float *restrict_ p = s->p, *restrict_ m = s->m, *restrict_ v = s->v;
    const float *restrict_ grad = s->grad;
    real *restrict_ w = s->w;
#pragma omp simd
    for (int64_t i = 0; i < s->n; i++) {
        const float g = grad[i] * scale;
        m[i] = b1 * m[i] + c1 * g;
        v[i] = b2 * v[i] + c2 * g * g;
        p[i] -= decay * p[i];
        p[i] -= step * m[i] / (sqrtf(v[i]) + eps);
    }
    if (!w) return;
#pragma omp simd
    for (int64_t i = 0; i < s->n; i++) w[i] = to_real(p[i]);
}

static inline double square_sum(const float *x, int64_t n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sum;
}

/* Sums of squares after adam_stretch with the same rate (0: it was not called); args->grad_scale is
 * not used. */
static inline void change_sums(const stretch *s, const fth_adam *args, double lr, double *out) {
    const float *restrict_ p = s->p, *restrict_ m = s->m, *restrict_ v = s->v;
    const float *restrict_ grad = s->grad;
    const adam_numbers a = adam_numbers_of(args, lr);
    const float decay = a.decay, undo = 1 / (1 - decay), step = lr > 0 ? a.step : 0, eps = a.eps;
    double grads = 0, params = 0, changes = 0;
#pragma omp simd reduction(+ : grads, params, changes)
    for (int64_t i = 0; i < s->n; i++) {
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

#endif
