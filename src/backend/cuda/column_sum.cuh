/* column_sum.cuh: out[n] += sums of the columns of a value over the batch's rows. */
#ifndef FTH_BACKEND_CUDA_COLUMN_SUM_CUH
#define FTH_BACKEND_CUDA_COLUMN_SUM_CUH

#include "backend/cuda/cuda.cuh"

fth_err fth_cuda_column_sum(const fth_cuda_call *c, const fth_tensor *x, float *out);
int64_t fth_cuda_column_sum_scratch(int64_t width);

#endif
