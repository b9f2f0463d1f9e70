/* linear_int8.h: y = act(x W^T + b) with weights of 8 bits; see backend/cpu/tile/int8.h. */
#ifndef FTH_BACKEND_CPU_PRODUCT_LINEAR_INT8_H
#define FTH_BACKEND_CPU_PRODUCT_LINEAR_INT8_H

#include "backend/cpu/product/gemm.h"
#include "backend/cpu/tile/packed.h"

/* g says everything but the weights. */
void FTH_NAME(linear_int8)(const fth_exec *ex, const gemm *g, const fth_int8 *w,
                           const fth_team *team);
int64_t FTH_NAME(linear_int8_bytes)(const fth_device *dev, int64_t rows_, int64_t k);

#endif
