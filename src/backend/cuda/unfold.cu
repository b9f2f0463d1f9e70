/* unfold.cu: what a convolution over time reads, its gradient, and the gate behind it. unfold reads
 * n and writes 5 n / 4 or 5 n / 2, its gradient the other way round; bandwidth bound. A thread
 * makes one number. */
#include "backend/cuda/random.cuh"

namespace {
enum { UNFOLD_THREADS = 256 };

struct place {
    const int32_t *pos, *sentence, *offsets, *masked;
    int per_row, first, channels;
    row_count rows;
    const fth_cuda_step *step;
};

__device__ bool has_step(const place &p, int64_t row, int step) {
    const int64_t left = p.offsets[p.sentence[row] + 1] - row;
    return step >= -p.per_row * p.pos[row] && step < p.per_row * left;
}

template <class T>
__global__ void __launch_bounds__(UNFOLD_THREADS)
    unfold_kernel(place p, const T *x, int64_t ld_x, T *y, int64_t ld_y) {
    const int width = p.channels * FTH_KERNEL;
    const int64_t i = (int64_t)blockIdx.x * UNFOLD_THREADS + threadIdx.x, row = i / width;
    if (row >= p.rows.capacity) return;
    const int column = (int)(i % width), step = p.first + column % FTH_KERNEL;
    float out = 0;
    if (row < rows_now(p.step, p.rows) && has_step(p, row, step)) {
        const int64_t at = row * p.per_row + step;
        out =
            to_float(x[at / p.per_row * ld_x + at % p.per_row * p.channels + column / FTH_KERNEL]);
    }
    y[row * ld_y + column] = from_float<T>(out);
}

template <class T>
__global__ void __launch_bounds__(UNFOLD_THREADS)
    unfold_bwd_kernel(place p, const T *dy, int64_t ld_dy, T *dx, int64_t ld_dx) {
    const int width = p.channels * p.per_row;
    const int64_t i = (int64_t)blockIdx.x * UNFOLD_THREADS + threadIdx.x, row = i / width;
    if (row >= p.rows.capacity) return;
    const int column = (int)(i % width), step = column / p.channels, c = column % p.channels;
    float sum = 0;
    for (int k = 0; k < FTH_KERNEL && row < rows_now(p.step, p.rows); k++) {
        const int begin = step - p.first - k; /* the first step of the reader's row */
        if (begin % p.per_row || !has_step(p, row, begin)) continue;
        sum += to_float(dy[(row + begin / p.per_row) * ld_dy + c * FTH_KERNEL + k]);
    }
    dx[row * ld_dx + column] = from_float<T>(sum);
}

__device__ float sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}

template <class T>
__global__ void __launch_bounds__(UNFOLD_THREADS)
    glu_kernel(place p, const T *x, int64_t ld_x, int width, int part, T *y, int64_t ld_y) {
    const int64_t i = (int64_t)blockIdx.x * UNFOLD_THREADS + threadIdx.x, row = i / width;
    if (row >= p.rows.capacity) return;
    const int column = (int)(i % width);
    const bool shown = row < rows_now(p.step, p.rows) && !(part == 1 && p.masked[row]);
    const T *in = x + row * ld_x + column;
    y[row * ld_y + part * width + column] =
        from_float<T>(shown ? to_float(in[0]) * sigmoid(to_float(in[width])) : 0.0f);
}

template <class T>
__global__ void __launch_bounds__(UNFOLD_THREADS)
    glu_bwd_kernel(place p, const T *dy, int64_t ld_dy, const T *x, int64_t ld_x, int width,
                   int part, T *dx, int64_t ld_dx) {
    const int64_t i = (int64_t)blockIdx.x * UNFOLD_THREADS + threadIdx.x, row = i / width;
    if (row >= p.rows.capacity) return;
    const int column = (int)(i % width);
    const bool shown = row < rows_now(p.step, p.rows) && !(part == 1 && p.masked[row]);
    const T *in = x + row * ld_x + column;
    const float g = shown ? to_float(dy[row * ld_dy + part * width + column]) : 0.0f;
    const float open = shown ? sigmoid(to_float(in[width])) : 0.0f;
    T *out = dx + row * ld_dx + column;
    out[0] = from_float<T>(g * open);
    out[width] = from_float<T>(shown ? g * to_float(in[0]) * open * (1.0f - open) : 0.0f);
}

/* t: a value with rows of the source. */
place place_of(const fth_cuda_call *c, const fth_tensor *t) {
    const fth_cuda_side *side = &c->batch->side[FTH_SRC];
    place p = {};
    p.pos = side->pos, p.sentence = side->sentence, p.offsets = side->offsets;
    p.masked = c->batch->masked;
    p.rows = rows_of(t);
    p.step = c->step;
    return p;
}

template <class T> fth_err unfold(const fth_cuda_call *c) {
    const fth_tensor *x = in_of(c, UNFOLD_X), *y = out_of(c, UNFOLD_Y);
    place p = place_of(c, y);
    p.per_row = c->op->u.unfold.per_row, p.first = c->op->u.unfold.first;
    p.channels = y->width / FTH_KERNEL;
    const int blocks = ceil_div(y->rows * y->width, UNFOLD_THREADS);
    if (blocks == 0) return FTH_OK;
    unfold_kernel<T><<<blocks, UNFOLD_THREADS, 0, c->stream>>>(p, (const T *)x->data, x->ld,
                                                               (T *)y->data, y->ld);
    return fth_cuda_launched();
}

template <class T> fth_err unfold_bwd(const fth_cuda_call *c) {
    const fth_tensor *dy = in_of(c, UNFOLD_BWD_DY), *dx = out_of(c, UNFOLD_BWD_DX);
    place p = place_of(c, dx);
    p.per_row = c->op->u.unfold.per_row, p.first = c->op->u.unfold.first;
    p.channels = dx->width / p.per_row;
    const int blocks = ceil_div(dx->rows * dx->width, UNFOLD_THREADS);
    if (blocks == 0) return FTH_OK;
    unfold_bwd_kernel<T><<<blocks, UNFOLD_THREADS, 0, c->stream>>>(p, (const T *)dy->data, dy->ld,
                                                                   (T *)dx->data, dx->ld);
    return fth_cuda_launched();
}

template <class T> fth_err glu(const fth_cuda_call *c) {
    const fth_tensor *y = out_of(c, GLU_Y);
    const place p = place_of(c, y);
    for (int part = 0; part < 2; part++) {
        const fth_tensor *x = in_of(c, GLU_X + part);
        const int width = x ? x->width / 2 : 0, blocks = ceil_div(y->rows * width, UNFOLD_THREADS);
        if (blocks == 0) continue;
        glu_kernel<T><<<blocks, UNFOLD_THREADS, 0, c->stream>>>(p, (const T *)x->data, x->ld, width,
                                                                part, (T *)y->data, y->ld);
        FTH_TRY(fth_cuda_launched());
    }
    return FTH_OK;
}

template <class T> fth_err glu_bwd(const fth_cuda_call *c) {
    const fth_tensor *dy = in_of(c, GLU_BWD_DY);
    const place p = place_of(c, dy);
    for (int part = 0; part < 2; part++) {
        const fth_tensor *x = in_of(c, GLU_BWD_X + part), *dx = out_of(c, GLU_BWD_DX + part);
        const int width = x ? x->width / 2 : 0, blocks = ceil_div(dy->rows * width, UNFOLD_THREADS);
        if (blocks == 0) continue;
        glu_bwd_kernel<T><<<blocks, UNFOLD_THREADS, 0, c->stream>>>(
            p, (const T *)dy->data, dy->ld, (const T *)x->data, x->ld, width, part, (T *)dx->data,
            dx->ld);
        FTH_TRY(fth_cuda_launched());
    }
    return FTH_OK;
}
} // namespace

fth_err fth_cuda_unfold(const fth_cuda_call *c) {
    return is_bf16(out_of(c, UNFOLD_Y)) ? unfold<bf16>(c) : unfold<float>(c);
}

fth_err fth_cuda_unfold_bwd(const fth_cuda_call *c) {
    return is_bf16(out_of(c, UNFOLD_BWD_DX)) ? unfold_bwd<bf16>(c) : unfold_bwd<float>(c);
}

fth_err fth_cuda_glu(const fth_cuda_call *c) {
    return is_bf16(out_of(c, GLU_Y)) ? glu<bf16>(c) : glu<float>(c);
}

fth_err fth_cuda_glu_bwd(const fth_cuda_call *c) {
    return is_bf16(in_of(c, GLU_BWD_DY)) ? glu_bwd<bf16>(c) : glu_bwd<float>(c);
}
