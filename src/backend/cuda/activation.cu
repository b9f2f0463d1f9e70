/* activation.cu: y = act(x); dx = dy * act'(saved). Reads n (2n), writes n; bandwidth bound. */
#include "backend/cuda/activation.cuh"

namespace {
template <class T> struct forward {
    fth_act act;
    __device__ void operator()(const fth_cuda_step *, int64_t, int, const float (*in)[8],
                               float *out) const {
#pragma unroll
        for (int i = 0; i < 8; i++) out[i] = act_of<T>(act, in[0][i]);
    }
};

template <class T> struct backward {
    fth_act act;
    __device__ void operator()(const fth_cuda_step *, int64_t, int, const float (*in)[8],
                               float *out) const {
#pragma unroll
        for (int i = 0; i < 8; i++) out[i] = in[0][i] * act_slope<T>(act, in[1][i]);
    }
};
} // namespace

fth_err fth_cuda_activate(const fth_cuda_call *c, fth_act act, const fth_tensor *x,
                          const fth_tensor *y) {
    return is_bf16(y) ? map_as<bf16, 1>(c, &x, y, forward<bf16>{act})
                      : map_as<float, 1>(c, &x, y, forward<float>{act});
}

fth_err fth_cuda_through_activation(const fth_cuda_call *c, fth_act act, const fth_tensor *dy,
                                    const fth_tensor *saved, const fth_tensor *dx) {
    const fth_tensor *in[2] = {dy, saved};
    return is_bf16(dx) ? map_as<bf16, 2>(c, in, dx, backward<bf16>{act})
                       : map_as<float, 2>(c, in, dx, backward<float>{act});
}

fth_err fth_cuda_activation(const fth_cuda_call *c) {
    return fth_cuda_activate(c, c->op->u.linear.act, in_of(c, ACT_X), out_of(c, ACT_Y));
}

fth_err fth_cuda_activation_bwd(const fth_cuda_call *c) {
    return fth_cuda_through_activation(c, c->op->u.linear.act, in_of(c, ACT_BWD_DY),
                                       in_of(c, ACT_BWD_SAVED), out_of(c, ACT_BWD_DX));
}
