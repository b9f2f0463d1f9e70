/* pick.cu: y = some rows of x: the first of every sentence, or those with a target; y = mean of x
 * over the rows of every sentence; their gradients; and the squared distance from the values of the
 * sentences. Reads and writes every row once; bandwidth bound. */
#include "backend/cuda/vec.cuh"

namespace {
enum { PICK_THREADS = 256 };

/* What all of them read of the batch. */
struct lists {
    const int32_t *offsets, *sentence; /* of the source */
    const int32_t *picked;             /* NULL: the first rows are meant */
    row_count n_picked;
    const fth_cuda_step *step;
};

/* Eight columns of a row of one value. */
struct piece {
    int64_t row;
    int column, n;
};

template <class T> struct matrix {
    T *data;
    int64_t ld;
    int width;
    uint32_t chunks;
    row_count rows;
    bool wide;
};

template <class T> matrix<T> matrix_of(const fth_tensor *t) {
    return {(T *)t->data, t->ld, t->width, (uint32_t)ceil_div(t->width, 8), rows_of(t), is_wide(t)};
}

template <class T> __device__ bool piece_of(const matrix<T> &m, piece *p) {
    const uint32_t i = blockIdx.x * PICK_THREADS + threadIdx.x;
    p->row = i / m.chunks;
    p->column = (int)(i - p->row * m.chunks) * 8;
    p->n = min(8, m.width - p->column);
    return p->row < m.rows.capacity;
}

template <class T>
__device__ void load(const matrix<T> &m, int64_t row, const piece &p, float v[8]) {
    load8(m.data + row * m.ld + p.column, m.wide, p.n, v);
}

template <class T> __device__ void store(const matrix<T> &m, const piece &p, const float v[8]) {
    store8(m.data + p.row * m.ld + p.column, m.wide, p.n, v);
}

template <class T>
__global__ void __launch_bounds__(PICK_THREADS) pick_kernel(lists l, matrix<T> x, matrix<T> y) {
    piece p;
    if (!piece_of(y, &p)) return;
    float v[8];
    fill8(v, 0.0f);
    if (p.row < rows_now(l.step, y.rows))
        load(x, l.picked ? l.picked[p.row] : l.offsets[p.row], p, v);
    store(y, p, v);
}

/* Which number a row has among those that were picked, -1: it was not. */
__device__ int64_t number_of(const lists &l, int64_t row) {
    if (!l.picked) return l.offsets[l.sentence[row]] == row ? l.sentence[row] : -1;
    int64_t low = 0, high = rows_now(l.step, l.n_picked);
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (l.picked[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low < rows_now(l.step, l.n_picked) && l.picked[low] == row ? low : -1;
}

template <class T>
__global__ void __launch_bounds__(PICK_THREADS)
    pick_bwd_kernel(lists l, matrix<T> dy, matrix<T> dx) {
    piece p;
    if (!piece_of(dx, &p)) return;
    float v[8];
    fill8(v, 0.0f);
    const int64_t k = p.row < rows_now(l.step, dx.rows) ? number_of(l, p.row) : -1;
    if (k >= 0) load(dy, k, p, v);
    store(dx, p, v);
}

template <class T>
__global__ void __launch_bounds__(PICK_THREADS) mean_kernel(lists l, matrix<T> x, matrix<T> y) {
    piece p;
    if (!piece_of(y, &p)) return;
    float sum[8];
    fill8(sum, 0.0f);
    if (p.row < rows_now(l.step, y.rows)) {
        const int64_t first = l.offsets[p.row], end = l.offsets[p.row + 1];
        for (int64_t row = first; row < end; row++) {
            float v[8];
            load(x, row, p, v);
#pragma unroll
            for (int i = 0; i < 8; i++) sum[i] += v[i];
        }
#pragma unroll
        for (int i = 0; i < 8; i++) sum[i] /= (float)(end - first);
    }
    store(y, p, sum);
}

template <class T>
__global__ void __launch_bounds__(PICK_THREADS)
    mean_bwd_kernel(lists l, matrix<T> dy, matrix<T> dx) {
    piece p;
    if (!piece_of(dx, &p)) return;
    float v[8];
    fill8(v, 0.0f);
    if (p.row < rows_now(l.step, dx.rows)) {
        const int32_t s = l.sentence[p.row];
        load(dy, s, p, v);
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] /= (float)(l.offsets[s + 1] - l.offsets[s]);
    }
    store(dx, p, v);
}

/* One block: a number for each sentence, summed in order and in double. */
template <class T>
__global__ void __launch_bounds__(PICK_THREADS)
    square_kernel(matrix<T> x, const float *values, T *dx, int64_t ld_dx, float *loss,
                  const fth_cuda_step *step) {
    __shared__ double shared[PICK_THREADS];
    const int64_t n = rows_now(step, x.rows);
    double sum = 0;
    for (int64_t i = threadIdx.x; i < x.rows.capacity; i += PICK_THREADS) {
        const float off = i < n ? to_float(x.data[i * x.ld]) - values[i] : 0.0f;
        sum += (double)off * off;
        if (dx) dx[i * ld_dx] = from_float<T>(2.0f * off * step->loss_scale);
    }
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int half = PICK_THREADS / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x < 2) loss[threadIdx.x] = (float)shared[0];
}

lists lists_of(const fth_cuda_call *c, bool picked, const fth_tensor *rows) {
    const fth_cuda_side *src = &c->batch->side[FTH_SRC];
    return {src->offsets, src->sentence, picked ? c->batch->picked : nullptr, rows_of(rows),
            c->step};
}

template <class T> using pick_launch = void (*)(lists, matrix<T>, matrix<T>);

/* A thread for eight columns of a row of the output; `rows` has the rows of the list. */
template <class T>
fth_err launch(const fth_cuda_call *c, pick_launch<T> kernel, bool picked, const fth_tensor *rows) {
    const fth_tensor *in = in_of(c, 0), *out = out_of(c, 0);
    const matrix<T> to = matrix_of<T>(out);
    const int blocks = ceil_div(out->rows * to.chunks, PICK_THREADS);
    if (blocks == 0) return FTH_OK;
    kernel<<<blocks, PICK_THREADS, 0, c->stream>>>(lists_of(c, picked, rows), matrix_of<T>(in), to);
    return fth_cuda_launched();
}

template <class T> fth_err square(const fth_cuda_call *c) {
    const fth_tensor *x = in_of(c, SQUARE_X), *dx = out_of(c, SQUARE_DX);
    square_kernel<T><<<1, PICK_THREADS, 0, c->stream>>>(
        matrix_of<T>(x), c->batch->values, dx ? (T *)dx->data : nullptr, dx ? dx->ld : 0,
        (float *)out_of(c, SQUARE_LOSS)->data, c->step);
    return fth_cuda_launched();
}

bool takes_targets(const fth_cuda_call *c) {
    return c->op->u.pick.what == FTH_PICK_TARGETS;
}
} // namespace

fth_err fth_cuda_pick(const fth_cuda_call *c) {
    const fth_tensor *y = out_of(c, PICK_Y);
    return is_bf16(y) ? launch<bf16>(c, pick_kernel<bf16>, takes_targets(c), y)
                      : launch<float>(c, pick_kernel<float>, takes_targets(c), y);
}

fth_err fth_cuda_pick_bwd(const fth_cuda_call *c) {
    const fth_tensor *dy = in_of(c, PICK_BWD_DY);
    return is_bf16(dy) ? launch<bf16>(c, pick_bwd_kernel<bf16>, takes_targets(c), dy)
                       : launch<float>(c, pick_bwd_kernel<float>, takes_targets(c), dy);
}

fth_err fth_cuda_mean(const fth_cuda_call *c) {
    const fth_tensor *y = out_of(c, MEAN_Y);
    return is_bf16(y) ? launch<bf16>(c, mean_kernel<bf16>, false, y)
                      : launch<float>(c, mean_kernel<float>, false, y);
}

fth_err fth_cuda_mean_bwd(const fth_cuda_call *c) {
    const fth_tensor *dy = in_of(c, MEAN_BWD_DY);
    return is_bf16(dy) ? launch<bf16>(c, mean_bwd_kernel<bf16>, false, dy)
                       : launch<float>(c, mean_bwd_kernel<float>, false, dy);
}

fth_err fth_cuda_square(const fth_cuda_call *c) {
    return is_bf16(in_of(c, SQUARE_X)) ? square<bf16>(c) : square<float>(c);
}
