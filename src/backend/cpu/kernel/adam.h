/* adam.h: Adam on a stretch of parameters (doc/mathematics.md#optimiser-and-rates), and the sums
 * that telemetry wants of it. */
#ifndef FTH_BACKEND_CPU_KERNEL_ADAM_H
#define FTH_BACKEND_CPU_KERNEL_ADAM_H

#include "backend/cpu/kernel/kernel.h"
#include "backend/cpu/kernel/vec.h"

/* Elements that go through at a time: few enough for all threads to have some of a small matrix,
 * and for the five arrays to stay in the first-level cache. */
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

#if defined(__AVX512F__)
/* x / (sqrt(v) + eps) without the divider, which made an update take twice as long on a Sapphire
 * Rapids: estimates of 14 bits, each made better by a Newton step; off by 2.5 units of the last
 * place at most. v is brought to where its root has an inverse; a NaN stays one. */
inline_ vf over_root(vf x, vf v, vf eps) {
    const vf half = v_set(0.5f), kept = v_min(v_set(0x1p127f), v_max(v_set(0x1p-126f), v));
    const vf y = _mm512_rsqrt14_ps(kept), root = v_mul(kept, y), rest = v_mul(half, y);
    const vf divisor = v_add(v_fma(rest, _mm512_fnmadd_ps(root, root, kept), root), eps);
    const vf z = _mm512_rcp14_ps(divisor);
    const vf inverse = v_fma(z, _mm512_fnmadd_ps(divisor, z, v_set(1)), z),
             ratio = v_mul(x, inverse);
    return v_fma(inverse, _mm512_fnmadd_ps(divisor, ratio, x), ratio);
}

static inline void adam_elements(const stretch *s, const adam_numbers *a) {
    const vf b1 = v_set(a->b1), c1 = v_set(a->c1), b2 = v_set(a->b2), c2 = v_set(a->c2);
    const vf scale = v_set(a->scale), eps = v_set(a->eps), decay = v_set(a->decay);
    const vf step = v_set(a->step);
    for (int64_t i = 0; i < s->n; i += VW) {
        const __mmask16 in = (__mmask16)(s->n - i < VW ? (1 << (s->n - i)) - 1 : 0xffff);
        const vf g = v_mul(_mm512_maskz_loadu_ps(in, s->grad + i), scale);
        const vf m = v_fma(b1, _mm512_maskz_loadu_ps(in, s->m + i), v_mul(c1, g));
        const vf v = v_fma(b2, _mm512_maskz_loadu_ps(in, s->v + i), v_mul(v_mul(c2, g), g));
        const vf old = _mm512_maskz_loadu_ps(in, s->p + i), p = _mm512_fnmadd_ps(decay, old, old);
        _mm512_mask_storeu_ps(s->m + i, in, m);
        _mm512_mask_storeu_ps(s->v + i, in, v);
        _mm512_mask_storeu_ps(s->p + i, in, p - over_root(v_mul(step, m), v, eps));
    }
}
#else
static inline void adam_elements(const stretch *s, const adam_numbers *a) {
    const float b1 = a->b1, c1 = a->c1, b2 = a->b2, c2 = a->c2, scale = a->scale, eps = a->eps;
    const float decay = a->decay, step = a->step;
    float *restrict_ p = s->p, *restrict_ m = s->m, *restrict_ v = s->v;
    const float *restrict_ grad = s->grad;
#pragma omp simd
    for (int64_t i = 0; i < s->n; i++) {
        const float g = grad[i] * scale;
        m[i] = b1 * m[i] + c1 * g;
        v[i] = b2 * v[i] + c2 * g * g;
        p[i] -= decay * p[i];
        p[i] -= step * m[i] / (sqrtf(v[i]) + eps);
    }
}
#endif

static inline void adam_stretch(const stretch *s, const adam_numbers *a) {
    const float *restrict_ p = s->p;
    real *restrict_ w = s->w;
    adam_elements(s, a);
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
