/* dropout.cu: y = D(x), its own backward. Reads n, writes n, ~10 integer operations an element. */
#include "backend/cuda/elementwise.cuh"

namespace {
struct drop {
    drop_place place;
    __device__ void operator()(const fth_cuda_step *step, int64_t row, int column,
                               const float (*in)[8], float *out) const {
        float factor[8];
        drop_factors(step, place, row, column, false, factor);
#pragma unroll
        for (int i = 0; i < 8; i++) out[i] = factor[i] * in[0][i];
    }
};
} // namespace

fth_err fth_cuda_dropout(const fth_cuda_call *c) {
    const fth_tensor *x = in_of(c, DROP_X), *y = out_of(c, DROP_Y);
    return map<1>(c, &x, y, drop{drop_at(&c->op->u.dropout.drop, y)});
}
