/* gemm.cuh: matrix products through cuBLASLt, one description per shape, made when it is first met.
 * Everything is said in rows: D[m, n] = act(op(A) op(B) + beta C + bias), all row-major. */
#ifndef FTH_BACKEND_CUDA_PRODUCT_GEMM_CUH
#define FTH_BACKEND_CUDA_PRODUCT_GEMM_CUH

#include "backend/cuda/cuda.cuh"

struct fth_cuda_gemm {
    fth_dtype type;     /* of A and B */
    fth_dtype out_type; /* of C, D and the bias */
    bool a_turned;      /* A is given as [k, m] */
    bool b_turned;      /* B is given as [n, k] */
    int64_t m, n, k;
    const void *a, *b, *c; /* c NULL: nothing is added; may be d */
    void *d;
    int64_t lda, ldb, ldc, ldd;
    const void *bias; /* [n], opt */
    bool relu;
};

/* What makes two products the same to cuBLASLt. Compared by bytes: zeroed before it is filled. */
struct fth_cuda_product_key {
    int64_t m, n, k, lda, ldb, ldc, ldd;
    int32_t type, out_type, a_turned, b_turned, adds, bias, relu;
    int32_t aligned[4]; /* bytes that a, b, c, d are multiples of, at most 16 */
};

struct fth_cuda_product {
    fth_cuda_product_key key;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c, d;
    cublasLtMatmulAlgo_t algo;
    size_t workspace; /* bytes that it needs */
    bool plain;       /* cuBLASLt has nothing for it */
};

/* One launch with the product's algorithm; the bias is set, d is where it goes. */
cublasStatus_t fth_cuda_product_run(const fth_cuda_call *c, const fth_cuda_gemm *g,
                                    const fth_cuda_product *p, void *d);

/* gemm_tune.cu: tries the algorithms on the operands and keeps the fastest of those whose results
 * have the bits of the first. */
void fth_cuda_product_tune(const fth_cuda_call *c, const fth_cuda_gemm *g, fth_cuda_product *p,
                           const cublasLtMatmulHeuristicResult_t *found, int n);

fth_err fth_cuda_multiply(const fth_cuda_call *c, const fth_cuda_gemm *g);

/* Frees all descriptions. */
void fth_cuda_products_fini(fth_cuda *gpu);

#endif
