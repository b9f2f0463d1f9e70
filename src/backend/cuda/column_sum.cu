/* column_sum.cu: out += column sums. Reads n; bandwidth bound. A block sums SUM_COLUMNS columns of
 * every SUM_PARTS-th piece of rows; the last block of a column group to finish adds the parts in
 * order, so one launch does and the bits are the same every time. */
#include "backend/cuda/column_sum.cuh"

#include "backend/cuda/vec.cuh"

enum {
    SUM_COLUMNS = 64,
    SUM_LANES = 32,
    SUM_PARTS = 16,
    SUM_THREADS = SUM_COLUMNS / 8 * SUM_LANES
};

template <class T> struct sum_args {
    const T *x;
    int64_t ld;
    int width;
    bool wide;
    row_count rows;
    const fth_cuda_step *step;
    float *parts; /* [SUM_PARTS, width] */
    float *out;   /* [width] */
    unsigned *counters;
};

template <class T> __global__ void __launch_bounds__(SUM_THREADS) column_sum(sum_args<T> a) {
    __shared__ float shared[SUM_LANES][SUM_COLUMNS + 1];
    __shared__ bool last;
    const int lane = threadIdx.x / (SUM_COLUMNS / 8), piece = threadIdx.x % (SUM_COLUMNS / 8);
    const int column0 = blockIdx.x * SUM_COLUMNS, column = column0 + piece * 8;
    const int n = min(8, a.width - column);
    const int64_t rows = rows_now(a.step, a.rows);
    float sum[8], x[8];
    fill8(sum, 0.0f);
    if (n > 0)
        for (int64_t row = blockIdx.y * SUM_LANES + lane; row < rows;
             row += SUM_PARTS * SUM_LANES) {
            load8(a.x + row * a.ld + column, a.wide, n, x);
#pragma unroll
            for (int i = 0; i < 8; i++) sum[i] += x[i];
        }
#pragma unroll
    for (int i = 0; i < 8; i++) shared[lane][piece * 8 + i] = sum[i];
    __syncthreads();
    const int mine = column0 + (int)threadIdx.x;
    if (threadIdx.x < SUM_COLUMNS && mine < a.width) {
        float total = 0.0f;
        for (int k = 0; k < SUM_LANES; k++) total += shared[k][threadIdx.x];
        a.parts[blockIdx.y * a.width + mine] = total;
        __threadfence();
    }
    __syncthreads();
    if (threadIdx.x == 0) last = atomicInc(&a.counters[blockIdx.x], SUM_PARTS - 1) == SUM_PARTS - 1;
    __syncthreads();
    if (!last || threadIdx.x >= SUM_COLUMNS || mine >= a.width) return;
    __threadfence();
    float total = 0.0f;
    for (int k = 0; k < SUM_PARTS; k++) total += __ldcg(&a.parts[k * a.width + mine]);
    a.out[mine] += total;
}

template <class T> static fth_err sum_as(const fth_cuda_call *c, const fth_tensor *x, float *out) {
    const sum_args<T> a = {(const T *)x->data,  x->ld,      x->width,
                           is_wide(x),          rows_of(x), c->step,
                           (float *)c->scratch, out,        c->gpu->counters};
    const dim3 blocks(ceil_div(x->width, SUM_COLUMNS), SUM_PARTS);
    if (blocks.x > FTH_CUDA_COUNTERS)
        return fth_fail(FTH_FAILED, "a sum of %d columns: must be at most %d", x->width,
                        FTH_CUDA_COUNTERS * SUM_COLUMNS);
    column_sum<T><<<blocks, SUM_THREADS, 0, c->stream>>>(a);
    return fth_cuda_launched();
}

fth_err fth_cuda_column_sum(const fth_cuda_call *c, const fth_tensor *x, float *out) {
    return is_bf16(x) ? sum_as<bf16>(c, x, out) : sum_as<float>(c, x, out);
}

int64_t fth_cuda_column_sum_scratch(int64_t width) {
    return SUM_PARTS * width * (int64_t)sizeof(float);
}
