/* gemm.cuh: matrix products through cuBLASLt, one description per shape, made when it is first met.
 * Everything is said in rows: D[m, n] = act(op(A) op(B) + beta C + bias), all row-major. */
#ifndef FTH_BACKEND_CUDA_GEMM_CUH
#define FTH_BACKEND_CUDA_GEMM_CUH

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

fth_err fth_cuda_multiply(const fth_cuda_call *c, const fth_cuda_gemm *g);

/* Frees all descriptions. */
void fth_cuda_products_fini(fth_cuda *gpu);

#endif
