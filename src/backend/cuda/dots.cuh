/* dots.cuh: products of whole values, for the gradients of learned scalars: parts by blocks of
 * fixed shape, then one block adds the parts in order, so the sum has the same bits every time. In
 * double, for such sums cancel. */
#ifndef FTH_BACKEND_CUDA_DOTS_CUH
#define FTH_BACKEND_CUDA_DOTS_CUH

#include "backend/cuda/vec.cuh"

enum { DOT_JOBS = 64, DOT_BLOCKS = 128, DOT_THREADS = 256 };

/* The sum over rows and columns [first, first + width) of a b; without b, of a. */
template <class T> struct dot_job {
    const T *a, *b;
    int64_t lda, ldb;
    int first, width;
};

template <class T> struct dot_jobs {
    dot_job<T> job[DOT_JOBS];
    int n;
};

template <class T>
__global__ void __launch_bounds__(DOT_THREADS)
    dot_parts(dot_jobs<T> jobs, row_count rows, const fth_cuda_step *step, double *parts) {
    __shared__ double shared[DOT_THREADS / 32];
    const dot_job<T> j = jobs.job[blockIdx.y];
    const int64_t n = rows_now(step, rows) * j.width;
    double sum = 0;
    for (int64_t i = blockIdx.x * DOT_THREADS + threadIdx.x; i < n; i += DOT_BLOCKS * DOT_THREADS) {
        const int64_t row = i / j.width, column = j.first + (i - row * j.width);
        const double a = to_float(j.a[row * j.lda + column]);
        sum += j.b ? a * to_float(j.b[row * j.ldb + column]) : a;
    }
    sum = group_sum<DOT_THREADS>(sum, shared);
    if (threadIdx.x == 0) parts[blockIdx.y * DOT_BLOCKS + blockIdx.x] = sum;
}

/* f(job, sums [n]) once for every job. */
template <class F>
__global__ void __launch_bounds__(DOT_BLOCKS) dot_finish(const double *parts, int n, F f) {
    __shared__ double shared[DOT_BLOCKS / 32], sums[DOT_JOBS];
    for (int j = 0; j < n; j++) {
        const double sum = group_sum<DOT_BLOCKS>(parts[j * DOT_BLOCKS + threadIdx.x], shared);
        if (threadIdx.x == 0) sums[j] = sum;
    }
    __syncthreads();
    if (threadIdx.x < n) f((int)threadIdx.x, sums);
}

template <class T, class F>
static fth_err dots(const fth_cuda_call *c, const dot_jobs<T> &jobs, row_count rows, F f) {
    double *parts = (double *)c->scratch; /* [jobs, DOT_BLOCKS] */
    dot_parts<T>
        <<<dim3(DOT_BLOCKS, jobs.n), DOT_THREADS, 0, c->stream>>>(jobs, rows, c->step, parts);
    FTH_TRY(fth_cuda_launched());
    dot_finish<<<1, DOT_BLOCKS, 0, c->stream>>>(parts, jobs.n, f);
    return fth_cuda_launched();
}

template <class T> static dot_job<T> dot_of(const fth_tensor *a, const fth_tensor *b) {
    return {
        (const T *)a->data, b ? (const T *)b->data : nullptr, a->ld, b ? b->ld : 0, 0, a->width};
}

#endif
