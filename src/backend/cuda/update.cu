/* update.cu: Adam's update of one matrix, right after its gradient has been made: reads 16 and writes
 * 12 bytes an element (14 with the bf16 copy), 4 of them from the second-level cache; bandwidth
 * bound, beside products that are not. The sums of squares come on the way: blocks leave their parts
 * in scratch and the last one to come adds them up in order. */
#include "backend/cuda/adam.cuh"

namespace {
enum { UPDATE_BLOCKS = 512, UPDATE_THREADS = 256 };

template <class T> struct update_args {
    float *master, *m, *v;
    T *weights; /* NULL: master itself */
    const float *grad, *loss;
    int64_t n; /* elements */
    const fth_cuda_step *step;
    int rate;
    bool watched, wide; /* wide: groups of four lie at multiples of 16 bytes */
    double *parts;      /* [blocks, FTH_RANGE_SUMS] */
    unsigned *counter;
    float *sums; /* [FTH_RANGE_SUMS] */
};

/* step: 0 where nothing is to be updated. */
template <class T> __device__ adam_rate rate_of(const update_args<T> &a) {
    const fth_cuda_step_adam &adam = a.step->adam;
    const float scale = a.step->rate[a.rate];
    adam_rate r;
    r.beta1 = adam.beta1, r.beta2 = adam.beta2;
    r.rest1 = adam.rest1, r.rest2 = adam.rest2;
    r.eps = adam.eps, r.grad_scale = 1.0f;
    const bool moves = adam.update > 0 && isfinite(a.loss[0]);
    r.decay = moves ? adam.lr * scale * adam.weight_decay : 0.0f;
    r.step = moves ? adam.corrected * scale : 0.0f;
    return r;
}

/* N elements at i. Where a gradient is not finite the element stays as it is. */
template <class T, int N>
__device__ __forceinline__ void update_some(const update_args<T> &a, const adam_rate &rate,
                                            bool moves, int64_t i, double *sums) {
    float g[N], theta[N], m[N], v[N];
    if (N == 4) {
        *reinterpret_cast<float4 *>(g) = *reinterpret_cast<const float4 *>(a.grad + i);
        *reinterpret_cast<float4 *>(theta) = *reinterpret_cast<const float4 *>(a.master + i);
        *reinterpret_cast<float4 *>(m) = *reinterpret_cast<const float4 *>(a.m + i);
        *reinterpret_cast<float4 *>(v) = *reinterpret_cast<const float4 *>(a.v + i);
    } else {
        g[0] = a.grad[i], theta[0] = a.master[i], m[0] = a.m[i], v[0] = a.v[i];
    }
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (moves && isfinite(g[k])) adam_one(rate, g[k], &theta[k], &m[k], &v[k]);
        if (a.watched)
            add_squares(rate, g[k], theta[k], m[k], v[k], sums);
        else
            sums[FTH_RANGE_GRAD] += (double)g[k] * g[k];
    }
    if (!moves) return;
    if (N == 4) {
        *reinterpret_cast<float4 *>(a.master + i) = *reinterpret_cast<float4 *>(theta);
        *reinterpret_cast<float4 *>(a.m + i) = *reinterpret_cast<float4 *>(m);
        *reinterpret_cast<float4 *>(a.v + i) = *reinterpret_cast<float4 *>(v);
        if (a.weights && sizeof(T) == 2)
            *reinterpret_cast<uint2 *>(a.weights + i) =
                make_uint2(pack2(theta[0], theta[1]), pack2(theta[2], theta[3]));
        else if (a.weights)
            *reinterpret_cast<float4 *>(a.weights + i) = *reinterpret_cast<float4 *>(theta);
    } else {
        a.master[i] = theta[0], a.m[i] = m[0], a.v[i] = v[0];
        if (a.weights) a.weights[i] = from_float<T>(theta[0]);
    }
}

/* Adds the blocks' sums up; the last one to come writes their roots. */
template <class T> __device__ void finish(const update_args<T> &a, const double *sums) {
    __shared__ double shared[UPDATE_THREADS / 32];
    __shared__ bool last;
    for (int k = 0; k < FTH_RANGE_SUMS; k++) {
        const double sum = group_sum<UPDATE_THREADS>(sums[k], shared);
        if (threadIdx.x == 0) a.parts[blockIdx.x * FTH_RANGE_SUMS + k] = sum;
    }
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicInc(a.counter, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (int k = 0; k < FTH_RANGE_SUMS; k++) {
        double sum = 0;
        for (int i = threadIdx.x; i < gridDim.x; i += UPDATE_THREADS)
            sum += __ldcg(&a.parts[i * FTH_RANGE_SUMS + k]);
        sum = group_sum<UPDATE_THREADS>(sum, shared);
        if (threadIdx.x == 0) a.sums[k] = (float)sqrt(sum);
    }
}

template <class T> __global__ void __launch_bounds__(UPDATE_THREADS) update(update_args<T> a) {
    double sums[FTH_RANGE_SUMS] = {0};
    const adam_rate rate = rate_of(a);
    const bool moves = a.step->adam.update > 0 && isfinite(a.loss[0]);
    const int64_t me = (int64_t)blockIdx.x * UPDATE_THREADS + threadIdx.x;
    const int64_t all = (int64_t)gridDim.x * UPDATE_THREADS;
    const int64_t fours = a.wide ? a.n / 4 : 0;
    for (int64_t i = me; i < fours; i += all) update_some<T, 4>(a, rate, moves, 4 * i, sums);
    for (int64_t i = 4 * fours + me; i < a.n; i += all) update_some<T, 1>(a, rate, moves, i, sums);
    finish(a, sums);
}

template <class T> fth_err launch(const fth_cuda_call *c) {
    const fth_tensor *grad = in_of(c, UPDATE_GRAD), *master = out_of(c, UPDATE_MASTER);
    const fth_tensor *weights = out_of(c, UPDATE_WEIGHTS);
    update_args<T> a = {};
    a.master = (float *)master->data;
    a.m = (float *)out_of(c, UPDATE_M)->data;
    a.v = (float *)out_of(c, UPDATE_V)->data;
    a.weights = weights->data == master->data ? nullptr : (T *)weights->data;
    a.grad = (const float *)grad->data;
    a.loss = (const float *)in_of(c, UPDATE_LOSS)->data;
    a.n = grad->rows * grad->width;
    a.step = c->step;
    a.rate = c->op->u.update.rate;
    a.watched = c->op->u.update.watched;
    const uintptr_t places = (uintptr_t)a.master | (uintptr_t)a.m | (uintptr_t)a.v |
                             (uintptr_t)a.grad | (uintptr_t)a.weights * (4 / sizeof(T));
    a.wide = places % 16 == 0;
    a.parts = (double *)c->scratch;
    a.counter = c->counters;
    a.sums = (float *)out_of(c, UPDATE_SUMS)->data;
    const int blocks = min(ceil_div(a.n, 4 * UPDATE_THREADS), (int)UPDATE_BLOCKS);
    update<T><<<blocks, UPDATE_THREADS, 0, c->stream>>>(a);
    return fth_cuda_launched();
}
} // namespace

fth_err fth_cuda_update(const fth_cuda_call *c) {
    return is_bf16(out_of(c, UPDATE_WEIGHTS)) ? launch<bf16>(c) : launch<float>(c);
}

int64_t fth_cuda_update_scratch(const fth_device *, const fth_graph *, const fth_op *,
                                const int64_t[FTH_N_EXTENTS]) {
    return UPDATE_BLOCKS * FTH_RANGE_SUMS * (int64_t)sizeof(double);
}
