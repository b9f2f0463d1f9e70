/* tensor_map.cu: descriptions of matrices from which sm_90's copy engine takes tiles. */
#include "backend/cuda/product/tensor_map.cuh"

typedef CUresult encoder(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                         const cuuint64_t *, const cuuint32_t *, const cuuint32_t *,
                         CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                         CUtensorMapFloatOOBfill);

/* A function of the driver, which is asked for it: the program is not linked with the driver. */
static encoder *find_encoder(void) {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
    const cudaError_t err = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found,
                                                             12000, cudaEnableDefault, &result);
    return err == cudaSuccess && result == cudaDriverEntryPointSuccess ? (encoder *)found : nullptr;
}

static encoder *the_encoder(void) {
    static encoder *const found = find_encoder();
    return found;
}

bool fth_cuda_can_map(void) {
    return the_encoder() != nullptr;
}

static fth_err encode(CUtensorMap *map, const bf16 *x, cuuint32_t rank, const cuuint64_t *size,
                      const cuuint64_t *pitch, const cuuint32_t *box) {
    const cuuint32_t step[3] = {1, 1, 1};
    const CUresult result =
        the_encoder()(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, rank, (void *)x, size, pitch, box,
                      step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result == CUDA_SUCCESS) return FTH_OK;
    return fth_fail(FTH_FAILED, "describing %lld x %lld numbers to the GPU: error %d of the driver",
                    (long long)size[1], (long long)size[0], (int)result);
}

fth_err fth_cuda_map_tiles(CUtensorMap *map, const bf16 *x, int64_t ld, int64_t rows,
                           int64_t columns, int high) {
    const cuuint64_t size[2] = {(cuuint64_t)columns, (cuuint64_t)rows};
    const cuuint64_t pitch[1] = {(cuuint64_t)ld * sizeof(bf16)};
    const cuuint32_t box[2] = {FTH_CUDA_TILE, (cuuint32_t)high};
    return encode(map, x, 2, size, pitch, box);
}

fth_err fth_cuda_map_groups(CUtensorMap *map, const bf16 *x, int64_t ld, int64_t rows,
                            int64_t columns, int high, int groups) {
    const cuuint64_t size[3] = {FTH_CUDA_TILE, (cuuint64_t)rows,
                                (cuuint64_t)columns / FTH_CUDA_TILE};
    const cuuint64_t pitch[2] = {(cuuint64_t)ld * sizeof(bf16), FTH_CUDA_TILE * sizeof(bf16)};
    const cuuint32_t box[3] = {FTH_CUDA_TILE, (cuuint32_t)high, (cuuint32_t)groups};
    return encode(map, x, 3, size, pitch, box);
}
