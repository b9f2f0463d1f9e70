/* join.cuh: what join, norm, join_norm and their backwards share. */
#ifndef FTH_BACKEND_CUDA_JOIN_CUH
#define FTH_BACKEND_CUDA_JOIN_CUH

#include "backend/cuda/random.cuh"

/* A coefficient of a join as kernels read it. */
struct join_coef {
    int kind, slot;
    float value;
    const float *param; /* SCALAR [1], VECTOR [width] */
};

static inline join_coef coef_of(const fth_coef *c, const fth_tensor *param) {
    return {(int)c->kind, c->slot, (float)c->value, param ? (const float *)param->data : nullptr};
}

/* Its part that is not learned. */
static __device__ __forceinline__ float coef_number(const fth_cuda_step *step, join_coef c) {
    return c.kind == FTH_COEF_STEP ? c.value * step->slots[c.slot] : c.value;
}

/* At the eight columns from `column` on. */
static __device__ __forceinline__ void coef_at(const fth_cuda_step *step, join_coef c, int column,
                                               bool wide, int n, float v[8]) {
    float number = coef_number(step, c);
    if (c.kind == FTH_COEF_SCALAR) number *= *c.param;
    if (c.kind != FTH_COEF_VECTOR) {
        fill8(v, number);
        return;
    }
    load8(c.param + column, wide, n, v);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] *= number;
}

#endif
