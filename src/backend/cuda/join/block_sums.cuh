/* block_sums.cuh: sums over rows, column by column, that blocks of a kernel have made for their own
 * rows: parts [quantity, block, width]. A second kernel adds them up in order: on the side stream
 * beside what follows, or for several operations together. */
#ifndef FTH_BACKEND_CUDA_JOIN_BLOCK_SUMS_CUH
#define FTH_BACKEND_CUDA_JOIN_BLOCK_SUMS_CUH

#include "backend/cuda/join/join.cuh"

/* What is summed up. BRANCH: the gradient of a linear operation's output, for its bias. */
enum { GAIN, BIAS, BRANCH, COEF_R, COEF_A, COEF_C, QUANTITIES };

/* How the parts of an operation become gradients. */
struct finish_args {
    const float *parts[QUANTITIES];
    float *grad[QUANTITIES];    /* += the sum over blocks; NULL: not wanted */
    join_coef coef[QUANTITIES]; /* whose unlearned part multiplies the sum */
    bool scalar[QUANTITIES];    /* over all columns too */
    int blocks, width;
    const fth_cuda_step *step;
};

/* Those of a bias alone. */
static inline finish_args finish_bias(const fth_cuda_call *c, const float *parts, float *grad,
                                      int64_t blocks, int width) {
    finish_args f = {};
    f.parts[BRANCH] = parts, f.grad[BRANCH] = grad;
    f.coef[BRANCH] = {FTH_COEF_CONST, 0, 1.0f, nullptr};
    f.blocks = (int)blocks, f.width = width, f.step = c->step;
    return f;
}

/* Where the parts of an operation are to be put; learned: those of coefficients are among them. */
float *fth_cuda_parts_place(const fth_cuda_call *c, bool learned);

/* Adds them, now or later. */
fth_err fth_cuda_add_parts(const fth_cuda_call *c, const finish_args &f, bool learned);

#endif
