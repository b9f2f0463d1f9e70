/* scale_shift.cu: y = k s (x - c) with learned scalars; dx = k s dy, ds += k <dy, x - c>,
 * dc -= k s * sum of dy. Reads n, writes n; backward reads dy twice more and x. */
#include "backend/cuda/dots.cuh"
#include "backend/cuda/elementwise.cuh"

namespace {
struct shifted { /* k s (x - c) */
    float k;
    const float *s, *c;
    __device__ void operator()(const fth_cuda_step *, int64_t, int, const float (*in)[8],
                               float *out) const {
        const float scale = s ? k * *s : k, shift = c ? *c : 0.0f;
#pragma unroll
        for (int i = 0; i < 8; i++) out[i] = scale * (in[0][i] - shift);
    }
};

/* sums[0] = sum of dy, sums[1] = <dy, x> */
struct gradients {
    float k;
    const float *s, *c;
    float *ds, *dc;
    __device__ void operator()(int job, const double *sums) const {
        if (job != 0) return;
        if (ds) *ds += (float)(k * (sums[1] - (c ? *c : 0.0f) * sums[0]));
        if (dc) *dc -= (float)((s ? k * *s : k) * sums[0]);
    }
};

const float *scalar(const fth_tensor *t) {
    return t ? (const float *)t->data : nullptr;
}

template <class T> fth_err reduce(const fth_cuda_call *c, const gradients &g) {
    const fth_tensor *dy = in_of(c, SHIFT_BWD_DY);
    dot_jobs<T> jobs;
    jobs.n = g.ds ? 2 : 1;
    jobs.job[0] = dot_of<T>(dy, nullptr);
    if (g.ds) jobs.job[1] = dot_of<T>(dy, in_of(c, SHIFT_BWD_X));
    return dots(c, jobs, rows_of(dy), g);
}
} // namespace

fth_err fth_cuda_scale_shift(const fth_cuda_call *c) {
    const fth_tensor *x = in_of(c, SHIFT_X);
    return map<1>(
        c, &x, out_of(c, SHIFT_Y),
        shifted{c->op->u.scale_shift.factor, scalar(in_of(c, SHIFT_S)), scalar(in_of(c, SHIFT_C))});
}

fth_err fth_cuda_scale_shift_bwd(const fth_cuda_call *c) {
    const fth_tensor *dy = in_of(c, SHIFT_BWD_DY), *dx = out_of(c, SHIFT_BWD_DX);
    const float k = c->op->u.scale_shift.factor, *s = scalar(in_of(c, SHIFT_BWD_S));
    const fth_tensor *ds = out_of(c, SHIFT_BWD_DS), *dc = out_of(c, SHIFT_BWD_DC);
    if (dx) FTH_TRY(map<1>(c, &dy, dx, shifted{k, s, nullptr}));
    if (!ds && !dc) return FTH_OK;
    const gradients g = {k, s, scalar(in_of(c, SHIFT_BWD_C)), ds ? (float *)ds->data : nullptr,
                         dc ? (float *)dc->data : nullptr};
    return is_bf16(dy) ? reduce<bf16>(c, g) : reduce<float>(c, g);
}

/* Parts of the sums; also for head_scale_bwd and mix_bwd. */
int64_t fth_cuda_dots_scratch(const fth_device *, const fth_graph *, const fth_op *,
                              const int64_t[FTH_N_EXTENTS]) {
    return (int64_t)sizeof(double) * DOT_JOBS * DOT_BLOCKS;
}
