/* activation.cuh: activations and their slopes (METHODS A.2; GELU in its erf form). */
#ifndef FTH_BACKEND_CUDA_ACTIVATION_CUH
#define FTH_BACKEND_CUDA_ACTIVATION_CUH

#include "backend/cuda/map.cuh"

static __device__ __forceinline__ float normal_cdf(float x) {
    return 0.5f * erfcf(-x * 0.70710678f);
}

static __device__ __forceinline__ float act_of(fth_act act, float x) {
    if (act == FTH_ACT_RELU) return fmaxf(x, 0.0f);
    return act == FTH_ACT_GELU ? x * normal_cdf(x) : x;
}

/* saved: ReLU's output, GELU's input. */
static __device__ __forceinline__ float act_slope(fth_act act, float saved) {
    if (act == FTH_ACT_RELU) return saved > 0.0f ? 1.0f : 0.0f;
    if (act != FTH_ACT_GELU) return 1.0f;
    return normal_cdf(saved) + saved * 0.39894228f * expf(-0.5f * saved * saved);
}

/* y = act(x), dx = dy * act'(saved): activation.cu, used by linear.cu too. Places may coincide. */
fth_err fth_cuda_activate(const fth_cuda_call *c, fth_act act, const fth_tensor *x,
                          const fth_tensor *y);
fth_err fth_cuda_through_activation(const fth_cuda_call *c, fth_act act, const fth_tensor *dy,
                                    const fth_tensor *saved, const fth_tensor *dx);

#endif
