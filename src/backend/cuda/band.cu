/* band.cu: words by bands of their numbers: rows of a band's table, a thread for each number; their
 * gradient, a block for every sorted row that is the first of its word, so that equal words do not
 * collide; and the log-probabilities of all words, a block for a row, which reads the products
 * three times. */
#include "backend/cuda/random.cuh"

namespace {
enum { BAND_THREADS = 256 };

struct place {
    const int32_t *ids, *order;
    int first, width;
    int64_t size;
    row_count rows;
    const fth_cuda_step *step;
};

template <class T, class W>
__global__ void __launch_bounds__(BAND_THREADS)
    band_kernel(place p, const W *table, int64_t ld_table, T *y, int64_t ld_y) {
    const int64_t i = (int64_t)blockIdx.x * BAND_THREADS + threadIdx.x, row = i / p.width;
    if (row >= p.rows.capacity) return;
    const int column = (int)(i % p.width);
    const int64_t at = row < rows_now(p.step, p.rows) ? (int64_t)p.ids[row] - p.first : -1;
    const bool here = at >= 0 && at < p.size;
    y[row * ld_y + column] = from_float<T>(here ? to_float(table[at * ld_table + column]) : 0.0f);
}

template <class T>
__global__ void __launch_bounds__(BAND_THREADS)
    band_bwd_kernel(place p, const T *dy, int64_t ld_dy, float *dtable, int64_t ld_table) {
    const int64_t rows = rows_now(p.step, p.rows), begin = blockIdx.x;
    if (begin >= rows) return;
    const int32_t id = p.ids[p.order[begin]];
    const int64_t at = (int64_t)id - p.first;
    if (at < 0 || at >= p.size || (begin > 0 && p.ids[p.order[begin - 1]] == id)) return;
    for (int column = threadIdx.x; column < p.width; column += BAND_THREADS) {
        float sum = 0;
        for (int64_t i = begin; i < rows && p.ids[p.order[i]] == id; i++)
            sum += to_float(dy[(int64_t)p.order[i] * ld_dy + column]);
        dtable[at * ld_table + column] += sum;
    }
}

place place_of(const fth_cuda_call *c, const fth_tensor *t, int64_t size) {
    const fth_cuda_side *side = &c->batch->side[FTH_TGT];
    place p = {};
    p.ids = side->ids, p.order = side->order;
    p.first = c->op->u.band.first;
    p.width = t->width;
    p.size = size;
    p.rows = rows_of(t);
    p.step = c->step;
    return p;
}

template <class T> fth_err band(const fth_cuda_call *c) {
    const fth_tensor *table = in_of(c, BAND_TABLE), *y = out_of(c, BAND_Y);
    const place p = place_of(c, y, table->rows);
    const int blocks = ceil_div(y->rows * y->width, BAND_THREADS);
    if (blocks == 0) return FTH_OK;
    band_kernel<T, T><<<blocks, BAND_THREADS, 0, c->stream>>>(p, (const T *)table->data, table->ld,
                                                              (T *)y->data, y->ld);
    return fth_cuda_launched();
}

template <class T> fth_err band_bwd(const fth_cuda_call *c) {
    const fth_tensor *dy = in_of(c, BAND_BWD_DY), *dtable = out_of(c, BAND_BWD_DTABLE);
    if (dy->rows == 0) return FTH_OK;
    band_bwd_kernel<T><<<(unsigned)dy->rows, BAND_THREADS, 0, c->stream>>>(
        place_of(c, dy, dtable->rows), (const T *)dy->data, dy->ld, (float *)dtable->data,
        dtable->ld);
    return fth_cuda_launched();
}

/* Log of the sum of exponentials of n numbers, by the whole block. */
template <class T> __device__ float log_sum(const T *x, int n) {
    __shared__ float shared[BAND_THREADS];
    float highest = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < n; i += BAND_THREADS) highest = fmaxf(highest, to_float(x[i]));
    shared[threadIdx.x] = highest;
    __syncthreads();
    for (int half = BAND_THREADS / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half)
            shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + half]);
        __syncthreads();
    }
    highest = shared[0];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += BAND_THREADS) sum += expf(to_float(x[i]) - highest);
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int half = BAND_THREADS / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    sum = shared[0];
    __syncthreads();
    return highest + logf(sum);
}

template <class T> struct words_args {
    const T *head, *tail[FTH_TAILS];
    int64_t ld_head, ld_tail[FTH_TAILS], ld_y;
    int words, size[FTH_TAILS];
    T *y;
    row_count rows;
    const fth_cuda_step *step;
};

template <class T> __global__ void __launch_bounds__(BAND_THREADS) words_kernel(words_args<T> a) {
    const int64_t row = blockIdx.x;
    T *y = a.y + row * a.ld_y;
    const bool real = row < rows_now(a.step, a.rows);
    const T *z = a.head + row * a.ld_head;
    const float whole = real ? log_sum(z, a.words + FTH_TAILS) : 0.0f;
    for (int i = threadIdx.x; i < a.words; i += BAND_THREADS)
        y[i] = from_float<T>(real ? to_float(z[i]) - whole : 0.0f);
    y += a.words;
    for (int k = 0; k < FTH_TAILS; k++) {
        const T *x = a.tail[k] + row * a.ld_tail[k];
        const float shift = real ? to_float(z[a.words + k]) - whole - log_sum(x, a.size[k]) : 0.0f;
        for (int i = threadIdx.x; i < a.size[k]; i += BAND_THREADS)
            y[i] = from_float<T>(real ? to_float(x[i]) + shift : 0.0f);
        y += a.size[k];
    }
}

template <class T> fth_err log_words(const fth_cuda_call *c) {
    const fth_tensor *head = in_of(c, LOG_WORDS_HEAD), *y = out_of(c, LOG_WORDS_Y);
    words_args<T> a = {};
    a.head = (const T *)head->data, a.ld_head = head->ld;
    a.words = head->width - FTH_TAILS;
    for (int k = 0; k < FTH_TAILS; k++) {
        const fth_tensor *tail = in_of(c, LOG_WORDS_HEAD + 1 + k);
        a.tail[k] = (const T *)tail->data, a.ld_tail[k] = tail->ld, a.size[k] = tail->width;
    }
    a.y = (T *)y->data, a.ld_y = y->ld;
    a.rows = rows_of(y);
    a.step = c->step;
    if (y->rows == 0) return FTH_OK;
    words_kernel<T><<<(unsigned)y->rows, BAND_THREADS, 0, c->stream>>>(a);
    return fth_cuda_launched();
}
} // namespace

fth_err fth_cuda_band(const fth_cuda_call *c) {
    return is_bf16(out_of(c, BAND_Y)) ? band<bf16>(c) : band<float>(c);
}

fth_err fth_cuda_band_bwd(const fth_cuda_call *c) {
    return is_bf16(in_of(c, BAND_BWD_DY)) ? band_bwd<bf16>(c) : band_bwd<float>(c);
}

fth_err fth_cuda_log_words(const fth_cuda_call *c) {
    return is_bf16(out_of(c, LOG_WORDS_Y)) ? log_words<bf16>(c) : log_words<float>(c);
}
