/* tensor_map.cuh: descriptions of matrices from which sm_90's copy engine takes tiles of 64
 * columns, with pieces exchanged as wgmma.cuh says. */
#ifndef FTH_BACKEND_CUDA_PRODUCT_TENSOR_MAP_CUH
#define FTH_BACKEND_CUDA_PRODUCT_TENSOR_MAP_CUH

#include "backend/cuda/cuda.cuh"

#include <cuda.h>

/* Whether the driver knows of such. */
bool fth_cuda_can_map(void);

/* x [rows, columns], rows ld apart; tiles of `high` rows; what a tile has beyond x is 0. */
fth_err fth_cuda_map_tiles(CUtensorMap *map, const bf16 *x, int64_t ld, int64_t rows,
                           int64_t columns, int high);

/* The same in groups of 64 columns: tiles [groups, high, 64]; columns is a multiple of 64. */
fth_err fth_cuda_map_groups(CUtensorMap *map, const bf16 *x, int64_t ld, int64_t rows,
                            int64_t columns, int high, int groups);

#endif
