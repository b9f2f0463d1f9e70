/* head_scale.cu: y = gamma_j x in block j of the columns; dx = gamma_j dy, dgamma_j += <dy, x> over
 * block j. Reads n, writes n; backward reads dy twice and x. */
#include "backend/cuda/dots.cuh"
#include "backend/cuda/elementwise.cuh"

namespace {
struct scaled {
    const float *gamma;
    int block, heads; /* columns of a head; a last partial piece of eight may reach past them all */
    __device__ void operator()(const fth_cuda_step *, int64_t, int column, const float (*in)[8],
                               float *out) const {
#pragma unroll
        for (int i = 0; i < 8; i++) out[i] = gamma[min((column + i) / block, heads - 1)] * in[0][i];
    }
};

struct gradients {
    float *dgamma;
    __device__ void operator()(int job, const double *sums) const {
        dgamma[job] += (float)sums[job];
    }
};

template <class T> fth_err reduce(const fth_cuda_call *c, const fth_tensor *dgamma) {
    const fth_tensor *dy = in_of(c, HEADS_BWD_DY), *x = in_of(c, HEADS_BWD_X);
    const int heads = c->op->u.head_scale.heads, block = dy->width / heads;
    for (int from = 0; from < heads; from += DOT_JOBS) {
        dot_jobs<T> jobs;
        jobs.n = heads - from < DOT_JOBS ? heads - from : DOT_JOBS;
        for (int k = 0; k < jobs.n; k++) {
            jobs.job[k] = dot_of<T>(dy, x);
            jobs.job[k].first = (from + k) * block;
            jobs.job[k].width = block;
        }
        FTH_TRY(dots(c, jobs, rows_of(dy), gradients{(float *)dgamma->data + from}));
    }
    return FTH_OK;
}

fth_err scale(const fth_cuda_call *c, const fth_tensor *x, const fth_tensor *gamma,
              const fth_tensor *y) {
    const int heads = c->op->u.head_scale.heads;
    return map<1>(c, &x, y, scaled{(const float *)gamma->data, y->width / heads, heads});
}
} // namespace

fth_err fth_cuda_head_scale(const fth_cuda_call *c) {
    return scale(c, in_of(c, HEADS_X), in_of(c, HEADS_GAMMA), out_of(c, HEADS_Y));
}

fth_err fth_cuda_head_scale_bwd(const fth_cuda_call *c) {
    const fth_tensor *dy = in_of(c, HEADS_BWD_DY), *dgamma = out_of(c, HEADS_BWD_DGAMMA);
    const fth_tensor *dx = out_of(c, HEADS_BWD_DX);
    if (dx) FTH_TRY(scale(c, dy, in_of(c, HEADS_BWD_GAMMA), dx));
    if (!dgamma) return FTH_OK;
    return is_bf16(dy) ? reduce<bf16>(c, dgamma) : reduce<float>(c, dgamma);
}
