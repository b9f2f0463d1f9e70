/* linear_digits.h: y = act(x W^T + b) with floats in fixed point; see backend/cpu/tile/digits.h. */
#ifndef FTH_BACKEND_CPU_PRODUCT_LINEAR_DIGITS_H
#define FTH_BACKEND_CPU_PRODUCT_LINEAR_DIGITS_H

#include "backend/cpu/product/gemm.h"
#include "backend/cpu/tile/packed.h"

/* g says everything but the weights. */
void FTH_NAME(linear_digits)(const fth_exec *ex, const gemm *g, const fth_int8 *map,
                             const fth_team *team);
int64_t FTH_NAME(linear_digits_bytes)(const fth_device *dev, int64_t rows_, int64_t k);

#endif
