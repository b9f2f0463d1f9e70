/* flat.cu: the work on flat arenas. Adam reads 16 and writes 12 bytes an element (14 with the bf16
 * copy), the sum of squares reads 4, the copy of the weights reads 4 and writes 2: all of it
 * bandwidth bound. */
#include "backend/cuda/adam.cuh"

static fth_cuda *gpu_of(fth_device *dev) {
    return reinterpret_cast<fth_cuda *>(dev);
}

enum { FLAT_THREADS = 256 };

/* ---- sum of squares ---- */

static __device__ double block_sum(double x) {
    __shared__ double shared[FLAT_THREADS / 32];
#pragma unroll
    for (int k = 16; k > 0; k >>= 1) x += __shfl_xor_sync(~0u, x, k);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (int k = 0; k < FLAT_THREADS / 32; k++) x += shared[k];
    return x;
}

/* n is a multiple of 4. */
static __global__ void __launch_bounds__(FLAT_THREADS)
    square_parts(const float *x, int64_t n, double *parts) {
    double sum = 0;
    const int64_t stride = (int64_t)gridDim.x * FLAT_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * FLAT_THREADS + threadIdx.x; i < n / 4; i += stride) {
        const float4 v = reinterpret_cast<const float4 *>(x)[i];
        sum += (double)v.x * v.x + (double)v.y * v.y + ((double)v.z * v.z + (double)v.w * v.w);
    }
    if (blockIdx.x == 0 && threadIdx.x < n % 4) {
        const double v = x[n / 4 * 4 + threadIdx.x];
        sum += v * v;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

static __global__ void __launch_bounds__(FLAT_THREADS)
    square_total(const double *parts, int n, double *out) {
    double sum = 0;
    for (int i = (int)threadIdx.x; i < n; i += FLAT_THREADS) sum += parts[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) *out = sum;
}

fth_err fth_cuda_sum_squares(fth_device *dev, const void *full, int64_t n, double *out) {
    fth_cuda *gpu = gpu_of(dev);
    square_parts<<<FTH_CUDA_SUMS, FLAT_THREADS, 0, gpu->stream>>>((const float *)full, n,
                                                                  gpu->sums);
    FTH_TRY(fth_cuda_launched());
    square_total<<<1, FLAT_THREADS, 0, gpu->stream>>>(gpu->sums, FTH_CUDA_SUMS,
                                                      gpu->sums + FTH_CUDA_SUMS);
    FTH_TRY(fth_cuda_launched());
    return dev->backend->download(dev, out, gpu->sums + FTH_CUDA_SUMS, sizeof *out);
}

/* A block for a piece. */
static __global__ void __launch_bounds__(FLAT_THREADS)
    square_pieces(const float *x, int64_t n, int64_t piece, double *out) {
    const int64_t begin = blockIdx.x * piece, end = min(begin + piece, n);
    double sum = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += FLAT_THREADS) sum += (double)x[i] * x[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

static fth_err room_for_sums(fth_cuda *gpu, int64_t n) {
    if (n <= gpu->cap_range_sums) return FTH_OK;
    cudaFree(gpu->range_sums);
    gpu->range_sums = nullptr;
    gpu->cap_range_sums = 0;
    CUDA_TRY(cudaMalloc(&gpu->range_sums, sizeof(double) * (size_t)n), "memory for sums");
    gpu->cap_range_sums = n;
    return FTH_OK;
}

fth_err fth_cuda_square_sums(fth_device *dev, const void *full, int64_t n, int64_t piece,
                             double *out) {
    fth_cuda *gpu = gpu_of(dev);
    if (n == 0) return FTH_OK;
    const int64_t pieces = (n + piece - 1) / piece;
    FTH_TRY(room_for_sums(gpu, pieces));
    square_pieces<<<(unsigned)pieces, FLAT_THREADS, 0, gpu->stream>>>((const float *)full, n, piece,
                                                                      gpu->range_sums);
    FTH_TRY(fth_cuda_launched());
    return dev->backend->download(dev, out, gpu->range_sums, (int64_t)sizeof(double) * pieces);
}

/* ---- sums in a fixed order ---- */

/* Reads many (+ 1) n, writes n. Four elements a thread; the stride is a multiple of 4. */
static __global__ void __launch_bounds__(FLAT_THREADS)
    add_kernel(float *to, const float *from, int64_t stride, int many, bool fresh, int64_t n) {
    const int64_t i = ((int64_t)blockIdx.x * FLAT_THREADS + threadIdx.x) * 4;
    if (i + 4 <= n) {
        float4 sum = *reinterpret_cast<const float4 *>((fresh ? from : to) + i);
        for (int k = fresh; k < many; k++) {
            const float4 x = *reinterpret_cast<const float4 *>(from + k * stride + i);
            sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
        }
        *reinterpret_cast<float4 *>(to + i) = sum;
        return;
    }
    for (int64_t at = i; at < n; at++) {
        float sum = fresh ? from[at] : to[at];
        for (int k = fresh; k < many; k++) sum += from[k * stride + at];
        to[at] = sum;
    }
}

fth_err fth_cuda_add_up(fth_device *dev, void *to, const fth_addends *from, int64_t n) {
    if (n == 0 || from->many == 0) return FTH_OK;
    add_kernel<<<ceil_div(n, 4 * FLAT_THREADS), FLAT_THREADS, 0, gpu_of(dev)->stream>>>(
        (float *)to, (const float *)from->data, from->stride, from->many, from->fresh, n);
    return fth_cuda_launched();
}

/* ---- Adam ---- */

struct adam_args {
    float *master, *m, *v;
    const float *grad;
    bf16 *weights; /* NULL: none apart from master */
    const fth_adam_range *range;
    int n_ranges;
    float lr, corrected, decay; /* lr; lr * sqrt(1 - beta2^t) / (1 - beta1^t); weight_decay */
    adam_rate rate;             /* step and decay are left to the range */
};

/* The range that holds the gradient at i, or n_ranges when there is none. */
static __device__ int find_range(const adam_args &a, int64_t i) {
    int low = 0, high = a.n_ranges;
    while (low < high) {
        const int middle = (low + high) / 2;
        const fth_adam_range &r = a.range[middle];
        if (r.grad + (r.end - r.begin) <= i)
            low = middle + 1;
        else
            high = middle;
    }
    return low < a.n_ranges && a.range[low].grad <= i ? low : a.n_ranges;
}

static __device__ adam_rate rate_of(const adam_args &a, const fth_adam_range &range) {
    adam_rate rate = a.rate;
    rate.decay = a.lr * range.lr_scale * a.decay;
    rate.step = a.corrected * range.lr_scale;
    return rate;
}

/* The range's elements whose gradients lie at i and behind. Four elements a thread; a group of four
 * that a border cuts goes one by one. */
static __global__ void __launch_bounds__(FLAT_THREADS) adam_kernel(adam_args a, int64_t n) {
    const int64_t i = ((int64_t)blockIdx.x * FLAT_THREADS + threadIdx.x) * 4;
    if (i >= n) return;
    const int mine = find_range(a, i);
    if (mine < a.n_ranges) {
        const fth_adam_range range = a.range[mine];
        const int64_t at = range.begin + (i - range.grad);
        if (range.end >= at + 4 && at % 4 == 0) {
            const adam_rate rate = rate_of(a, range);
            const float4 g = *reinterpret_cast<const float4 *>(a.grad + i);
            float4 theta = *reinterpret_cast<float4 *>(a.master + at);
            float4 m = *reinterpret_cast<float4 *>(a.m + at);
            float4 v = *reinterpret_cast<float4 *>(a.v + at);
            adam_one(rate, g.x, &theta.x, &m.x, &v.x);
            adam_one(rate, g.y, &theta.y, &m.y, &v.y);
            adam_one(rate, g.z, &theta.z, &m.z, &v.z);
            adam_one(rate, g.w, &theta.w, &m.w, &v.w);
            *reinterpret_cast<float4 *>(a.master + at) = theta;
            *reinterpret_cast<float4 *>(a.m + at) = m;
            *reinterpret_cast<float4 *>(a.v + at) = v;
            if (a.weights)
                *reinterpret_cast<uint2 *>(a.weights + at) =
                    make_uint2(pack2(theta.x, theta.y), pack2(theta.z, theta.w));
            return;
        }
    }
    for (int64_t k = i; k < i + 4 && k < n; k++) {
        const int found = find_range(a, k);
        if (found == a.n_ranges) continue;
        const int64_t at = a.range[found].begin + (k - a.range[found].grad);
        adam_one(rate_of(a, a.range[found]), a.grad[k], &a.master[at], &a.m[at], &a.v[at]);
        if (a.weights) a.weights[at] = from_float<bf16>(a.master[at]);
    }
}

static fth_err send_ranges(fth_cuda *gpu, const fth_adam *args) {
    const size_t bytes = sizeof *gpu->range * (size_t)args->n_ranges;
    if (args->n_ranges > gpu->cap_ranges) {
        cudaFree(gpu->range);
        gpu->range = nullptr;
        gpu->cap_ranges = 0;
        CUDA_TRY(cudaMalloc(&gpu->range, bytes), "memory for ranges of parameters");
        gpu->cap_ranges = args->n_ranges;
    }
    CUDA_TRY(cudaMemcpyAsync(gpu->range, args->range, bytes, cudaMemcpyHostToDevice, gpu->stream),
             "copying ranges of parameters");
    return FTH_OK;
}

double fth_cuda_adam_correction(const fth_adam *args) {
    const double t = (double)args->update;
    return sqrt(1 - pow(args->beta2, t)) / (1 - pow(args->beta1, t));
}

static adam_args arguments(const fth_cuda *gpu, const fth_arenas *a, const fth_adam *args) {
    adam_args k = {};
    k.master = (float *)a->master;
    k.m = (float *)a->m;
    k.v = (float *)a->v;
    k.grad = (const float *)a->grad;
    k.weights = a->weights == a->master ? nullptr : (bf16 *)a->weights;
    k.range = gpu->range;
    k.n_ranges = args->n_ranges;
    k.rate.beta1 = (float)args->beta1;
    k.rate.beta2 = (float)args->beta2;
    k.rate.rest1 = (float)(1 - args->beta1);
    k.rate.rest2 = (float)(1 - args->beta2);
    k.rate.eps = (float)args->eps;
    k.rate.grad_scale = (float)args->grad_scale;
    k.decay = (float)args->weight_decay;
    k.lr = (float)args->lr;
    k.corrected = (float)(args->lr * fth_cuda_adam_correction(args));
    return k;
}

fth_err fth_cuda_adam(fth_device *dev, const fth_arenas *a, const fth_adam *args) {
    fth_cuda *gpu = gpu_of(dev);
    if (args->n_ranges == 0 || a->grads == 0) return FTH_OK;
    FTH_TRY(send_ranges(gpu, args));
    adam_kernel<<<ceil_div(a->grads, 4 * FLAT_THREADS), FLAT_THREADS, 0, gpu->stream>>>(
        arguments(gpu, a, args), a->grads);
    return fth_cuda_launched();
}

/* ---- sums over ranges ---- */

/* A block for a range: sums of squares of gradient, parameter and of what the update made just
 * before has done to the parameter. */
static __global__ void __launch_bounds__(FLAT_THREADS) range_kernel(adam_args a, double *out) {
    const fth_adam_range range = a.range[blockIdx.x];
    const adam_rate rate = rate_of(a, range);
    double sums[FTH_RANGE_SUMS] = {0};
    for (int64_t i = range.begin + threadIdx.x; i < range.end; i += FLAT_THREADS)
        add_squares(rate, a.grad[range.grad + (i - range.begin)], a.master[i], a.m[i], a.v[i],
                    sums);
    for (int k = 0; k < FTH_RANGE_SUMS; k++) {
        const double sum = block_sum(sums[k]);
        if (threadIdx.x == 0) out[blockIdx.x * FTH_RANGE_SUMS + k] = sum;
        __syncthreads(); /* block_sum's shared memory is used again */
    }
}

fth_err fth_cuda_range_sums(fth_device *dev, const fth_arenas *a, const fth_adam *args,
                            double *out) {
    fth_cuda *gpu = gpu_of(dev);
    if (args->n_ranges == 0) return FTH_OK;
    FTH_TRY(send_ranges(gpu, args));
    FTH_TRY(room_for_sums(gpu, (int64_t)FTH_RANGE_SUMS * args->n_ranges));
    range_kernel<<<args->n_ranges, FLAT_THREADS, 0, gpu->stream>>>(arguments(gpu, a, args),
                                                                   gpu->range_sums);
    FTH_TRY(fth_cuda_launched());
    return dev->backend->download(dev, out, gpu->range_sums,
                                  (int64_t)sizeof(double) * FTH_RANGE_SUMS * args->n_ranges);
}

/* ---- the copy that products read ---- */

static __global__ void __launch_bounds__(FLAT_THREADS)
    cast_weights(const float *from, bf16 *to, int64_t n) {
    const int64_t i = ((int64_t)blockIdx.x * FLAT_THREADS + threadIdx.x) * 8;
    if (i >= n) return;
    const int count = (int)min((int64_t)8, n - i);
    float v[8];
    load8(from + i, count == 8, count, v);
    store8(to + i, count == 8, count, v);
}

fth_err fth_cuda_refresh_weights(fth_device *dev, const fth_arenas *a) {
    if (a->weights == a->master || a->n == 0) return FTH_OK;
    cast_weights<<<ceil_div(a->n, 8 * FLAT_THREADS), FLAT_THREADS, 0, gpu_of(dev)->stream>>>(
        (const float *)a->master, (bf16 *)a->weights, a->n);
    return fth_cuda_launched();
}
