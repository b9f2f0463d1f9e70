/* column_sum.cuh: sums over the rows of a value, for the gradients of biases. */
#ifndef FTH_BACKEND_CUDA_PRODUCT_COLUMN_SUM_CUH
#define FTH_BACKEND_CUDA_PRODUCT_COLUMN_SUM_CUH

#include "backend/cuda/activation.cuh"

/* out [width] += the sums of x's columns. */
fth_err fth_cuda_column_sum(const fth_cuda_call *c, const fth_tensor *x, float *out);

/* dx *= act'(saved), and out [width] += the sums of its columns. */
fth_err fth_cuda_slope_sum(const fth_cuda_call *c, fth_act act, const fth_tensor *dx,
                           const fth_tensor *saved, float *out);

/* Bytes of scratch that each takes. */
int64_t fth_cuda_column_sum_scratch(int64_t width);

#endif
