/* activation.cuh: activations and their slopes (doc/mathematics.md#sub-layers; GELU in its erf
 * form). */
#ifndef FTH_BACKEND_CUDA_ACTIVATION_CUH
#define FTH_BACKEND_CUDA_ACTIVATION_CUH

#include "backend/cuda/elementwise.cuh"

/* The normal distribution's cdf, and exp(-x^2 / 2). fp32 deserves the exact functions. In bf16 a
 * rational approximation of erfc with the same exponential is far below the rounding: it is off by
 * at most 1.5e-7 (Abramowitz and Stegun 7.1.26). */
template <class T> __device__ __forceinline__ float2 normal_of(float x) {
    if (sizeof(T) == 4) return make_float2(0.5f * erfcf(-x * 0.70710678f), expf(-0.5f * x * x));
    const float e = __expf(-0.5f * x * x);
    const float t = __fdividef(1.0f, 1.0f + 0.3275911f * 0.70710678f * fabsf(x));
    const float sum =
        t * (0.254829592f +
             t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    const float tail = 0.5f * sum * e;
    return make_float2(x > 0.0f ? 1.0f - tail : tail, e);
}

template <class T> __device__ __forceinline__ float act_of(fth_act act, float x) {
    if (act == FTH_ACT_RELU) return fmaxf(x, 0.0f);
    if (act == FTH_ACT_TANH) return tanhf(x);
    return act == FTH_ACT_GELU ? x * normal_of<T>(x).x : x;
}

/* saved: GELU's input, the others' output. */
template <class T> __device__ __forceinline__ float act_slope(fth_act act, float saved) {
    if (act == FTH_ACT_RELU) return saved > 0.0f ? 1.0f : 0.0f;
    if (act == FTH_ACT_TANH) return 1.0f - saved * saved;
    if (act != FTH_ACT_GELU) return 1.0f;
    const float2 normal = normal_of<T>(saved);
    return normal.x + saved * 0.39894228f * normal.y;
}

/* y = act(x), dx = dy * act'(saved): activation.cu, used by linear.cu too. Places may coincide. */
fth_err fth_cuda_activate(const fth_cuda_call *c, fth_act act, const fth_tensor *x,
                          const fth_tensor *y);
fth_err fth_cuda_through_activation(const fth_cuda_call *c, fth_act act, const fth_tensor *dy,
                                    const fth_tensor *saved, const fth_tensor *dx);

#endif
