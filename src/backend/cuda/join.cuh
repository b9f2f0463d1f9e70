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

/* What all columns are multiplied with; a learned vector comes on top. */
static __device__ __forceinline__ float coef_scalar(const fth_cuda_step *step, join_coef c) {
    const float number = coef_number(step, c);
    return c.kind == FTH_COEF_SCALAR ? number * *c.param : number;
}

/* v *= the coefficient at the eight columns from `column` on; scalar: its coef_scalar. */
static __device__ __forceinline__ void scale8(join_coef c, float scalar, int column, bool wide,
                                              int n, float v[8]) {
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] *= scalar;
    if (c.kind != FTH_COEF_VECTOR) return;
    float k[8];
    load8(c.param + column, wide, n, k);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] *= k[i];
}

#endif
