/* xent.cu: label-smoothed cross-entropy of x W^T + b with its gradients (doc/mathematics.md#loss):
 * q(target) = 1 - eps, q(v) = eps / (V - 1) elsewhere; loss = -sum q log p; dlogits = (p - q)
 * scale. Three products of 2 R V d operations; the logits are made a chunk of rows at a time in
 * scratch, read twice (the second time from the cache) and overwritten by their gradient: never all
 * of them. */
#include "backend/cuda/product/column_sum.cuh"
#include "backend/cuda/product/gemm.cuh"

namespace {
enum { XENT_THREADS = 1024, CHUNK_BYTES = 256 << 20 };

int64_t pitch_of(int64_t vocab) {
    return (vocab + 63) / 64 * 64;
}

/* Rows of a chunk. */
int64_t chunk_of(int64_t rows, int64_t vocab, size_t size) {
    int64_t chunk = CHUNK_BYTES / (pitch_of(vocab) * (int64_t)size) / 128 * 128;
    if (chunk < 128) chunk = 128;
    return chunk < rows ? chunk : rows;
}

template <class T> struct loss_args {
    T *logits;            /* [chunk, pitch] */
    int64_t pitch, first; /* row of the batch that the chunk begins with */
    int vocab;
    const int32_t *targets;
    fth_cut cut;
    float eps, eps_i; /* eps_i = eps / (V - 1) */
    bool gradient;
    float2 *sums;            /* [rows] loss and nll of every row */
    float *nll;              /* [rows] opt */
    const float *nll_before; /* the same */
    int64_t ld_nll, ld_before;
    row_count rows;
    const fth_cuda_step *step;
};

/* Largest logit, sum of exponentials of what is below it, sum of all: of a part of a row. */
struct softmax_part {
    float highest, sum, total;
};

/* fp32 deserves the exact function; in bf16 the fast one is far below the rounding. */
template <class T> __device__ __forceinline__ float exp_of(float x) {
    return sizeof(T) == 2 ? __expf(x) : expf(x);
}

template <class T> __device__ __forceinline__ softmax_part merged(softmax_part a, softmax_part b) {
    const float highest = fmaxf(a.highest, b.highest);
    if (highest == -INFINITY) return {highest, 0.0f, 0.0f};
    return {highest,
            a.sum * exp_of<T>(a.highest - highest) + b.sum * exp_of<T>(b.highest - highest),
            a.total + b.total};
}

template <class T> __device__ softmax_part block_merge(softmax_part p) {
    __shared__ softmax_part shared[XENT_THREADS / 32];
#pragma unroll
    for (int k = 16; k > 0; k >>= 1)
        p = merged<T>(p, {__shfl_xor_sync(~0u, p.highest, k), __shfl_xor_sync(~0u, p.sum, k),
                          __shfl_xor_sync(~0u, p.total, k)});
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = p;
    __syncthreads();
    p = shared[threadIdx.x % 32];
#pragma unroll
    for (int k = 16; k > 0; k >>= 1)
        p = merged<T>(p, {__shfl_xor_sync(~0u, p.highest, k), __shfl_xor_sync(~0u, p.sum, k),
                          __shfl_xor_sync(~0u, p.total, k)});
    return p;
}

/* fth_target_cut (backend.h) */
__device__ int32_t cut_target(fth_cut cut, int32_t target) {
    if (cut.kind == FTH_CUT_HEAD) return target < cut.low ? target : cut.low + (target >= cut.high);
    if (cut.kind == FTH_CUT_TAIL)
        return target >= cut.low && target < cut.high ? target - cut.low : -1;
    return target;
}

/* A block for a row of logits. */
template <class T> __global__ void __launch_bounds__(XENT_THREADS) loss_kernel(loss_args<T> a) {
    const int64_t row = a.first + blockIdx.x;
    T *logits = a.logits + blockIdx.x * a.pitch;
    const bool real = row < rows_now(a.step, a.rows);
    const int32_t target = cut_target(a.cut, real ? a.targets[row] : -1);
    const float nll_before = a.nll_before && real ? a.nll_before[row * a.ld_before] : 0.0f;
    if (target < 0) {
        float zeros[8];
        fill8(zeros, 0.0f);
        for (int v = threadIdx.x * 8; a.gradient && v < a.vocab; v += XENT_THREADS * 8)
            store8(logits + v, true, 8, zeros);
        if (threadIdx.x == 0) a.sums[row] = make_float2(0.0f, 0.0f);
        if (threadIdx.x == 0 && a.nll) a.nll[row * a.ld_nll] = nll_before;
        return;
    }
    softmax_part p = {-INFINITY, 0.0f, 0.0f};
    float x[8];
    for (int v = threadIdx.x * 8; v < a.vocab; v += XENT_THREADS * 8) {
        const int n = min(8, a.vocab - v);
        load8(logits + v, n == 8, n, x);
        softmax_part q = {x[0], 0.0f, 0.0f};
#pragma unroll
        for (int i = 1; i < 8; i++) q.highest = i < n ? fmaxf(q.highest, x[i]) : q.highest;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            q.sum += i < n ? exp_of<T>(x[i] - q.highest) : 0.0f;
            q.total += i < n ? x[i] : 0.0f;
        }
        p = merged<T>(p, q);
    }
    const float own = to_float(logits[target]);
    p = block_merge<T>(p); /* the barrier in it: own is read before anybody writes */
    const float lse = p.highest + logf(p.sum), nll = lse - own;
    if (threadIdx.x == 0) {
        const float smooth = (float)a.vocab * lse - p.total;
        a.sums[row] = make_float2((1.0f - a.eps - a.eps_i) * nll + a.eps_i * smooth, nll);
        if (a.nll) a.nll[row * a.ld_nll] = nll_before + nll;
    }
    if (!a.gradient) return;
    for (int v = threadIdx.x * 8; v < a.vocab; v += XENT_THREADS * 8) {
        const int n = min(8, a.vocab - v);
        load8(logits + v, n == 8, n, x);
#pragma unroll
        for (int i = 0; i < 8; i++)
            x[i] = (exp_of<T>(x[i] - lse) - (v + i == target ? 1.0f - a.eps : a.eps_i)) *
                   a.step->loss_scale;
        store8(logits + v, n == 8, n, x);
    }
}

/* The sums over all rows, in order and in double. */
__global__ void __launch_bounds__(256)
    total_kernel(const float2 *sums, row_count rows, const fth_cuda_step *step, const float *before,
                 float *loss) {
    __shared__ double shared[2][256];
    const int64_t n = rows_now(step, rows);
    double sum[2] = {0, 0};
    for (int64_t i = threadIdx.x; i < n; i += 256) sum[0] += sums[i].x, sum[1] += sums[i].y;
    for (int k = 0; k < 2; k++) shared[k][threadIdx.x] = sum[k];
    __syncthreads();
    for (int half = 128; half > 0; half >>= 1) {
        if (threadIdx.x < half)
            for (int k = 0; k < 2; k++) shared[k][threadIdx.x] += shared[k][threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x < 2)
        loss[threadIdx.x] =
            (float)(shared[threadIdx.x][0] + (before ? (double)before[threadIdx.x] : 0.0));
}

/* The bias as the epilogue wants it: of the logits' type. */
const void *bias_of(const fth_cuda_call *c) {
    const fth_tensor *b = in_of(c, XENT_B);
    if (!b) return nullptr;
    if (c->ex->device->real == FTH_F32) return b->data;
    return c->program->bias + c->program->bias_at[c->op - c->ex->graph->op];
}

/* logits [n, V] = x W^T + b for rows [first, first + n). */
fth_err make_logits(const fth_cuda_call *c, int64_t first, int64_t n, void *logits) {
    const fth_tensor *x = in_of(c, XENT_X), *w = in_of(c, XENT_W);
    fth_cuda_gemm g = {};
    g.type = g.out_type = x->dtype;
    g.b_turned = true;
    g.m = n, g.n = w->rows, g.k = w->width;
    g.a = (const char *)x->data + (size_t)(first * x->ld) * fth_dtype_size(x->dtype);
    g.lda = x->ld;
    g.b = w->data, g.ldb = w->ld;
    g.d = logits, g.ldd = pitch_of(w->rows);
    g.bias = bias_of(c);
    return fth_cuda_multiply(c, &g);
}

/* Where column sums make their parts: after the logits of a chunk and the sums of all rows. */
size_t parts_at(int64_t chunk, int64_t rows, int64_t vocab, size_t size) {
    const size_t bytes = (size_t)(chunk * pitch_of(vocab)) * size + (size_t)rows * sizeof(float2);
    return (bytes + 255) / 256 * 256;
}

/* What n rows add to db; of rows without a target the gradient is 0. */
fth_err sum_bias(const fth_cuda_call *c, int64_t n, void *dlogits, char *parts) {
    const fth_tensor *x = in_of(c, XENT_X), *w = in_of(c, XENT_W), *db = out_of(c, XENT_DB);
    if (!db) return FTH_OK;
    fth_tensor g = {};
    g.data = dlogits, g.ld = pitch_of(w->rows), g.rows = n, g.width = (int32_t)w->rows;
    g.dtype = x->dtype, g.extent = FTH_ROWS_FIXED;
    fth_cuda_call sum = *c;
    sum.scratch = parts;
    return fth_cuda_column_sum(&sum, &g, (float *)db->data);
}

/* dx of the rows and what they add to dW, from the gradient of their logits. */
fth_err spread_gradient(const fth_cuda_call *c, int64_t first, int64_t n, const void *dlogits) {
    const fth_tensor *x = in_of(c, XENT_X), *w = in_of(c, XENT_W);
    const fth_tensor *dx = out_of(c, XENT_DX), *dw = out_of(c, XENT_DW);
    const size_t size = fth_dtype_size(x->dtype);
    fth_cuda_gemm g = {};
    g.type = g.out_type = x->dtype;
    g.m = n, g.n = w->width, g.k = w->rows;
    g.a = dlogits, g.lda = pitch_of(w->rows);
    g.b = w->data, g.ldb = w->ld;
    if (dx) {
        g.d = (char *)dx->data + (size_t)(first * dx->ld) * size;
        g.ldd = dx->ld;
        FTH_TRY(fth_cuda_multiply(c, &g));
    }
    if (!dw) return FTH_OK;
    g.out_type = FTH_F32;
    g.a_turned = true;
    g.m = w->rows, g.k = n;
    g.b = (const char *)x->data + (size_t)(first * x->ld) * size, g.ldb = x->ld;
    g.c = g.d = dw->data, g.ldc = g.ldd = dw->ld;
    return fth_cuda_multiply(c, &g);
}

const int32_t *targets_of(const fth_cuda_batch *b, fth_extent extent) {
    return extent == FTH_ROWS_SENTENCES ? b->labels
           : extent == FTH_ROWS_PICKED  ? b->picked_ids
                                        : b->side[extent == FTH_ROWS_TGT].targets;
}

template <class T> fth_err run(const fth_cuda_call *c) {
    const fth_tensor *x = in_of(c, XENT_X), *w = in_of(c, XENT_W);
    const fth_tensor *nll = out_of(c, XENT_NLL), *loss = out_of(c, XENT_LOSS);
    const fth_tensor *before = in_of(c, XENT_BEFORE), *nll_before = in_of(c, XENT_NLL_BEFORE);
    const int64_t vocab = w->rows, chunk = chunk_of(x->rows, vocab, sizeof(T));
    const double eps = c->op->u.xent.smoothing;
    loss_args<T> a = {};
    a.logits = (T *)c->scratch;
    a.pitch = pitch_of(vocab);
    a.vocab = (int)vocab;
    a.targets = targets_of(c->batch, x->extent);
    a.cut = c->op->u.xent.cut;
    a.eps = (float)eps;
    a.eps_i = vocab > 1 ? (float)(eps / (double)(vocab - 1)) : 0.0f;
    a.gradient = out_of(c, XENT_DX) || out_of(c, XENT_DW) || out_of(c, XENT_DB);
    a.sums = (float2 *)((char *)c->scratch + (size_t)(chunk * a.pitch) * sizeof(T));
    char *parts = (char *)c->scratch + parts_at(chunk, x->rows, vocab, sizeof(T));
    a.nll = nll ? (float *)nll->data : nullptr;
    a.ld_nll = nll ? nll->ld : 0;
    a.nll_before = nll_before ? (const float *)nll_before->data : nullptr;
    a.ld_before = nll_before ? nll_before->ld : 0;
    a.rows = rows_of(x);
    a.step = c->step;
    for (a.first = 0; a.first < x->rows; a.first += chunk) {
        const int64_t n = x->rows - a.first < chunk ? x->rows - a.first : chunk;
        FTH_TRY(make_logits(c, a.first, n, a.logits));
        loss_kernel<T><<<(unsigned)n, XENT_THREADS, 0, c->stream>>>(a);
        FTH_TRY(fth_cuda_launched());
        if (a.gradient) FTH_TRY(sum_bias(c, n, a.logits, parts));
        if (a.gradient) FTH_TRY(spread_gradient(c, a.first, n, a.logits));
    }
    total_kernel<<<1, 256, 0, c->stream>>>(a.sums, a.rows, c->step,
                                           before ? (const float *)before->data : nullptr,
                                           (float *)loss->data);
    return fth_cuda_launched();
}
} // namespace

fth_err fth_cuda_xent(const fth_cuda_call *c) {
    return is_bf16(in_of(c, XENT_X)) ? run<bf16>(c) : run<float>(c);
}

/* The logits of a chunk, then the sums of all rows, then the parts of db. */
int64_t fth_cuda_xent_scratch(const fth_device *dev, const fth_graph *g, const fth_op *op,
                              const int64_t capacity[FTH_N_EXTENTS]) {
    const fth_value *x = &g->value[op->in[XENT_X]];
    const int64_t rows = x->extent == FTH_ROWS_FIXED ? x->rows : capacity[x->extent];
    const int64_t vocab = g->value[op->in[XENT_W]].rows;
    const size_t size = fth_dtype_size(dev->real);
    const int64_t bytes = (int64_t)parts_at(chunk_of(rows, vocab, size), rows, vocab, size);
    return op->in[XENT_B] ? bytes + fth_cuda_column_sum_scratch(vocab) : bytes;
}
