/* adam.cuh: Adam of one element (doc/mathematics.md#optimiser-and-rates, fairseq's form). */
#ifndef FTH_BACKEND_CUDA_ADAM_CUH
#define FTH_BACKEND_CUDA_ADAM_CUH

#include "backend/cuda/vec.cuh"

/* The update's numbers for elements of one learning rate. */
struct adam_rate {
    float beta1, beta2, rest1, rest2; /* rest = 1 - beta */
    float eps, grad_scale;
    float decay, step; /* lr * weight_decay; lr * sqrt(1 - beta2^t) / (1 - beta1^t) */
};

static __device__ __forceinline__ void adam_one(const adam_rate &a, float g, float *theta, float *m,
                                                float *v) {
    g *= a.grad_scale;
    *m = a.beta1 * *m + a.rest1 * g;
    *v = a.beta2 * *v + a.rest2 * g * g;
    *theta -= a.decay * *theta;
    *theta -= a.step * *m / (sqrtf(*v) + a.eps);
}

/* Squares of gradient, parameter before the update and change, added to sums; theta, m and v are
 * those after it. step 0: there was none. */
static __device__ __forceinline__ void add_squares(const adam_rate &a, float g, float theta,
                                                   float m, float v, double *sums) {
    const float moved = a.step == 0.0f ? 0.0f : a.step * m / (sqrtf(v) + a.eps);
    const float old = (theta + moved) / (1.0f - a.decay), change = moved + a.decay * old;
    sums[FTH_RANGE_GRAD] += (double)g * g;
    sums[FTH_RANGE_PARAM] += (double)old * old;
    sums[FTH_RANGE_CHANGE] += (double)change * change;
}

#endif
