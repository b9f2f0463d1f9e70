/* update.cu: Adam's updates of matrices right after their gradients have been made: reads 16 and
 * writes 12 bytes an element (14 with the bf16 copy): bandwidth bound. A small matrix takes as long
 * to begin and end as to update, so those that stand in a row are updated by one kernel. Beside
 * other kernels it stays on some of the multiprocessors, so that those whose results are waited for
 * find the others free. Sums of squares come on the way: each tile leaves its part, and a second
 * kernel adds them up in order. */
#include "backend/cuda/adam.cuh"

namespace {
enum {
    UPDATE_THREADS = 512,
    UPDATE_TILE = 32 * UPDATE_THREADS, /* elements */
    UPDATE_JOBS = 48,                  /* matrices of one kernel */
    FINISH_THREADS = 256
};

template <class T> struct job {
    float *master, *m, *v;
    T *weights; /* NULL: master itself */
    const float *grad;
    float *sums;  /* [FTH_RANGE_SUMS] */
    int64_t n;    /* elements */
    int32_t tile; /* its first */
    float share;  /* multiplies its rate */
    int16_t rate; /* index into the step's rates */
    bool wide;    /* groups of four lie at multiples of 16 bytes */
};

template <class T> struct jobs {
    job<T> job[UPDATE_JOBS];
    int n, tiles;
    const float *loss;
    const fth_cuda_step *step;
    double *parts; /* [tiles, sums] */
};

int tiles_of(int64_t n) {
    return ceil_div(n, UPDATE_TILE);
}

/* Is anything to be updated? */
template <class T> __device__ bool is_on(const jobs<T> &a) {
    return a.step->adam.update > 0 && isfinite(a.loss[0]);
}

/* step 0 where nothing is to be updated. */
__device__ adam_rate rate_of(const fth_cuda_step *step, int rate, float share, bool on) {
    const fth_cuda_step_adam &adam = step->adam;
    const float scale = on ? step->rate[rate] * share : 0.0f;
    adam_rate r;
    r.beta1 = adam.beta1, r.beta2 = adam.beta2;
    r.rest1 = adam.rest1, r.rest2 = adam.rest2;
    r.eps = adam.eps, r.grad_scale = 1.0f;
    r.decay = adam.lr * scale * adam.weight_decay;
    r.step = adam.corrected * scale;
    return r;
}

/* N neighbouring elements. None of these numbers is needed again soon but the weights. */
template <int N> struct piece { float g[N], theta[N], m[N], v[N]; };

template <class T, int N>
__device__ __forceinline__ void fetch(const job<T> &a, int64_t i, piece<N> *p) {
    const float *from[4] = {a.grad, a.master, a.m, a.v};
    float *to[4] = {p->g, p->theta, p->m, p->v};
#pragma unroll
    for (int k = 0; k < 4; k++)
        if (N == 4)
            *reinterpret_cast<float4 *>(to[k]) =
                __ldcs(reinterpret_cast<const float4 *>(from[k] + i));
        else
            to[k][0] = from[k][i];
}

/* Where a gradient is not finite the element stays as it is. */
template <bool WATCHED, int N>
__device__ __forceinline__ void move(const adam_rate &rate, bool on, piece<N> *p, double *sums) {
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (on && isfinite(p->g[k])) adam_one(rate, p->g[k], &p->theta[k], &p->m[k], &p->v[k]);
        if (WATCHED)
            add_squares(rate, p->g[k], p->theta[k], p->m[k], p->v[k], sums);
        else
            sums[FTH_RANGE_GRAD] += (double)p->g[k] * p->g[k];
    }
}

template <class T, int N>
__device__ __forceinline__ void store(const job<T> &a, int64_t i, const piece<N> &p) {
    float *to[3] = {a.master, a.m, a.v};
    const float *from[3] = {p.theta, p.m, p.v};
#pragma unroll
    for (int k = 0; k < 3; k++)
        if (N == 4)
            __stcs(reinterpret_cast<float4 *>(to[k] + i),
                   *reinterpret_cast<const float4 *>(from[k]));
        else
            to[k][i] = from[k][0];
    if (!a.weights) return;
    if (N == 4 && sizeof(T) == 2)
        *reinterpret_cast<uint2 *>(a.weights + i) =
            make_uint2(pack2(p.theta[0], p.theta[1]), pack2(p.theta[2], p.theta[3]));
    else
#pragma unroll
        for (int k = 0; k < N; k++) a.weights[i + k] = from_float<T>(p.theta[k]);
}

/* Elements [begin, end) of a matrix. A thread has two pieces on their way at a time. */
template <class T, bool WATCHED>
__device__ __forceinline__ void update_tile(const job<T> &a, const adam_rate &rate, bool on,
                                            int64_t begin, int64_t end, double *sums) {
    const int64_t whole = a.wide ? begin + (end - begin) / 4 * 4 : begin;
    for (int64_t i = begin + 4 * threadIdx.x; i < whole; i += 8 * UPDATE_THREADS) {
        const int64_t other = i + 4 * UPDATE_THREADS;
        piece<4> x, y;
        fetch(a, i, &x);
        if (other < whole) fetch(a, other, &y);
        move<WATCHED>(rate, on, &x, sums);
        if (on) store(a, i, x);
        if (other >= whole) break;
        move<WATCHED>(rate, on, &y, sums);
        if (on) store(a, other, y);
    }
    for (int64_t i = whole + threadIdx.x; i < end; i += UPDATE_THREADS) {
        piece<1> x;
        fetch(a, i, &x);
        move<WATCHED>(rate, on, &x, sums);
        if (on) store(a, i, x);
    }
}

template <class T, bool WATCHED>
__global__ void __launch_bounds__(UPDATE_THREADS) update(const __grid_constant__ jobs<T> a) {
    constexpr int SUMS = WATCHED ? FTH_RANGE_SUMS : 1;
    __shared__ double shared[UPDATE_THREADS / 32];
    const bool on = is_on(a);
    int k = 0;
    for (int tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
        while (k + 1 < a.n && a.job[k + 1].tile <= tile) k++;
        const job<T> &mine = a.job[k];
        const int64_t begin = (int64_t)(tile - mine.tile) * UPDATE_TILE;
        double sums[FTH_RANGE_SUMS] = {0};
        update_tile<T, WATCHED>(mine, rate_of(a.step, mine.rate, mine.share, on), on, begin,
                                min(begin + UPDATE_TILE, mine.n), sums);
        for (int q = 0; q < SUMS; q++) {
            const double sum = group_sum<UPDATE_THREADS>(sums[q], shared);
            if (threadIdx.x == 0) a.parts[(int64_t)tile * SUMS + q] = sum;
        }
    }
}

/* A block for each matrix: roots of the sums over its tiles. */
template <class T, int SUMS>
__global__ void __launch_bounds__(FINISH_THREADS) finish(const __grid_constant__ jobs<T> a) {
    __shared__ double shared[FINISH_THREADS / 32];
    const int k = blockIdx.x, end = k + 1 < a.n ? a.job[k + 1].tile : a.tiles;
    for (int q = 0; q < FTH_RANGE_SUMS; q++) {
        double sum = 0;
        for (int i = a.job[k].tile + threadIdx.x; q < SUMS && i < end; i += FINISH_THREADS)
            sum += a.parts[(int64_t)i * SUMS + q];
        sum = group_sum<FINISH_THREADS>(sum, shared);
        if (threadIdx.x == 0) a.job[k].sums[q] = (float)sqrt(sum);
    }
}

template <class T> job<T> job_of(const fth_exec *ex, const fth_op *op) {
    const fth_tensor *grad = fth_arg(ex, op->in[UPDATE_GRAD]);
    const fth_tensor *weights = fth_arg(ex, op->out[UPDATE_WEIGHTS]);
    job<T> a = {};
    a.master = (float *)fth_arg(ex, op->out[UPDATE_MASTER])->data;
    a.m = (float *)fth_arg(ex, op->out[UPDATE_M])->data;
    a.v = (float *)fth_arg(ex, op->out[UPDATE_V])->data;
    a.weights = weights->data == a.master ? nullptr : (T *)weights->data;
    a.grad = (const float *)grad->data;
    a.sums = (float *)fth_arg(ex, op->out[UPDATE_SUMS])->data;
    a.n = grad->rows * grad->width;
    a.rate = (int16_t)op->u.update.rate;
    a.share = op->u.update.share;
    const uintptr_t places = (uintptr_t)a.master | (uintptr_t)a.m | (uintptr_t)a.v |
                             (uintptr_t)a.grad | (uintptr_t)a.weights * (4 / sizeof(T));
    a.wide = places % 16 == 0;
    return a;
}

template <class T, bool WATCHED> fth_err run(const fth_cuda_call *c, const jobs<T> &a) {
    /* beside others: half of the multiprocessors, else two blocks on each */
    const bool beside = c->stream != c->gpu->stream;
    const int most = beside ? c->gpu->processors / 2 : 2 * c->gpu->processors;
    update<T, WATCHED><<<min(a.tiles, most), UPDATE_THREADS, 0, c->stream>>>(a);
    FTH_TRY(fth_cuda_launched());
    finish<T, WATCHED ? FTH_RANGE_SUMS : 1><<<a.n, FINISH_THREADS, 0, c->stream>>>(a);
    return fth_cuda_launched();
}

template <class T> fth_err launch(const fth_cuda_call *c) {
    for (int32_t done = 0; done < c->n_ops;) {
        jobs<T> a = {};
        a.loss = (const float *)in_of(c, UPDATE_LOSS)->data;
        a.step = c->step;
        a.parts = c->program->update_parts;
        for (; a.n < UPDATE_JOBS && done < c->n_ops; done++) {
            a.job[a.n] = job_of<T>(c->ex, c->op + done);
            a.job[a.n].tile = a.tiles;
            a.tiles += tiles_of(a.job[a.n++].n);
        }
        FTH_TRY((c->op->u.update.watched ? run<T, true>(c, a) : run<T, false>(c, a)));
    }
    return FTH_OK;
}
} // namespace

fth_err fth_cuda_update(const fth_cuda_call *c) {
    return is_bf16(out_of(c, UPDATE_WEIGHTS)) ? launch<bf16>(c) : launch<float>(c);
}

int32_t fth_cuda_updates_at(const fth_graph *g, int32_t i) {
    int32_t n = 1;
    while (i + n < g->n_ops && g->op[i + n].kind == FTH_KIND_update) n++;
    return n;
}

/* Updates in a row use it one kernel after the other, on one stream. */
fth_err fth_cuda_prepare_updates(const fth_graph *g, fth_cuda_program *p) {
    int64_t most = 0, now = 0;
    for (int32_t i = 0; i < g->n_ops; i++) {
        if (g->op[i].kind != FTH_KIND_update) {
            now = 0;
            continue;
        }
        const fth_value *grad = &g->value[g->op[i].in[UPDATE_GRAD]];
        now += tiles_of(grad->rows * grad->width);
        if (now > most) most = now;
    }
    if (most == 0) return FTH_OK;
    CUDA_TRY(cudaMalloc(&p->update_parts, sizeof(double) * FTH_RANGE_SUMS * (size_t)most),
             "memory for updates");
    return FTH_OK;
}
