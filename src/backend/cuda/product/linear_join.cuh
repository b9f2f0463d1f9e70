/* linear_join.cuh: products that a join makes itself, of its branch or, in the backward, of its
 * gradient, so that their rows need not go to memory and come back. Where an operation join_norm or
 * join_norm_bwd does so, the linear or linear_dx before it does nothing. */
#ifndef FTH_BACKEND_CUDA_PRODUCT_LINEAR_JOIN_CUH
#define FTH_BACKEND_CUDA_PRODUCT_LINEAR_JOIN_CUH

#include "backend/cuda/join/join_bwd.cuh"

enum { FTH_CUDA_JOINED_ROWS = 128 }; /* that have a row of parts in the backward */

/* Of an operation. */
struct fth_cuda_joined {
    int32_t other; /* the join of a product, the product of a join; -1: it is not joined */
    bool keeps;    /* a join: others read the product, too */
};

/* The operands of a product that is joined. */
struct fth_linear_join {
    const fth_tensor *x, *w;  /* x w^T, or of linear_dx: x w */
    const fth_tensor *bias;   /* linear, opt */
    const fth_tensor *addend; /* linear_dx, opt */
    bool keeps;
};

/* Finds what is joined in a program: joined [n_ops]; bias_maker: of bias_sums.cu. */
fth_err fth_cuda_find_joined(const fth_exec *ex, const int32_t *bias_maker,
                             fth_cuda_joined **joined);
bool fth_cuda_is_joined(const fth_cuda_call *c);
/* The product of a join. */
fth_linear_join fth_cuda_product_of(const fth_cuda_call *c);

/* linear and join_norm; c is the join's, as below. */
fth_err fth_cuda_linear_join(const fth_cuda_call *c);
/* linear_dx and join_norm_bwd; parts have a row for every FTH_CUDA_JOINED_ROWS rows. */
fth_err fth_cuda_linear_join_bwd(const fth_cuda_call *c, const bwd_args<bf16> &join);

/* linear_dx through ReLU by one kernel. Whether it can be; db: the gradient of the bias before it,
 * opt. */
bool fth_cuda_can_slope(const fth_cuda_call *c);
fth_err fth_cuda_linear_slope(const fth_cuda_call *c, float *db);

/* linear_join_wgmma.cu, linear_join_wgmma_bwd.cu, linear_slope_wgmma.cu */
fth_err fth_cuda_linear_join_wgmma(const fth_cuda_call *c, const fth_linear_join *l);
fth_err fth_cuda_linear_join_wgmma_bwd(const fth_cuda_call *c, const fth_linear_join *l,
                                       const bwd_args<bf16> &join);
/* parts: a row for every FTH_CUDA_JOINED_ROWS rows, opt. */
fth_err fth_cuda_linear_slope_wgmma(const fth_cuda_call *c, const fth_linear_join *l,
                                    const fth_tensor *saved, const fth_tensor *dx, float *parts);

#endif
