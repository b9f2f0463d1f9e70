/* column_sum.cu: out += column sums of x, and the same of dx = dx * act'(saved) made on the way.
 * Reads n (2n, writes n); bandwidth bound. A block sums SUM_COLUMNS columns of every SUM_PARTS-th
 * piece of rows; the last block of a column group to finish adds the parts in order, so one launch
 * does and the bits are the same every time. */
#include "backend/cuda/product/column_sum.cuh"

namespace {
enum {
    SUM_COLUMNS = 64,
    SUM_PIECES = SUM_COLUMNS / 8, /* threads a row */
    SUM_LANES = 32,               /* rows at a time */
    SUM_PARTS = 16,
    SUM_THREADS = SUM_PIECES * SUM_LANES,
    SUM_WARPS = SUM_THREADS / 32,
    SUM_AHEAD = 2, /* rows that a thread fetches before it uses them */
    SUM_BLOCKS = 4 /* on a multiprocessor */
};

template <class T> struct sum_args {
    T *x;           /* read; written where saved is there */
    const T *saved; /* opt */
    fth_act act;
    int64_t ld, ld_saved;
    int width;
    row_count rows;
    const fth_cuda_step *step;
    float *parts; /* [SUM_PARTS, width] */
    float *out;   /* [width] */
    unsigned *counters;
};

/* Adds eight columns of the block's share of rows, from the last row on: the product that has made
 * x has left its last rows in the cache, and what is saved must not drive them out. */
template <class T, bool WIDE, bool SLOPE>
__device__ __forceinline__ void add_rows(const sum_args<T> &a, int column, int n, float sum[8]) {
    const int64_t rows = rows_now(a.step, a.rows), step = SUM_PARTS * SUM_LANES;
    int64_t row = rows - 1 - (blockIdx.y * SUM_LANES + threadIdx.x / SUM_PIECES);
    for (; row >= 0; row -= SUM_AHEAD * step) {
        raw8<T> x[SUM_AHEAD], saved[SUM_AHEAD];
#pragma unroll
        for (int k = 0; k < SUM_AHEAD; k++) {
            const int64_t r = row - k * step;
            x[k].zero(), saved[k].zero();
            if (r >= 0) x[k].load(a.x + r * a.ld + column, WIDE, n);
            if (SLOPE && r >= 0) saved[k].load_once(a.saved + r * a.ld_saved + column, WIDE, n);
        }
#pragma unroll
        for (int k = 0; k < SUM_AHEAD; k++) {
            const int64_t r = row - k * step;
            float v[8], s[8];
            x[k].get(v), saved[k].get(s);
#pragma unroll
            for (int i = 0; i < 8; i++) {
                if (SLOPE) v[i] *= act_slope<T>(a.act, s[i]);
                sum[i] += v[i];
            }
            if (SLOPE && r >= 0) store8(a.x + r * a.ld + column, WIDE, n, v);
        }
    }
}

template <class T, bool WIDE, bool SLOPE>
__global__ void __launch_bounds__(SUM_THREADS, SUM_BLOCKS) sum_kernel(sum_args<T> a) {
    __shared__ float shared[SUM_WARPS][SUM_COLUMNS];
    __shared__ bool last;
    const int piece = threadIdx.x % SUM_PIECES, warp = threadIdx.x / 32;
    const int column0 = blockIdx.x * SUM_COLUMNS, column = column0 + piece * 8;
    const int n = min(8, a.width - column);
    float sum[8];
    fill8(sum, 0.0f);
    if (n > 0) add_rows<T, WIDE, SLOPE>(a, column, n, sum);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        sum[i] += __shfl_xor_sync(~0u, sum[i], 8);
        sum[i] += __shfl_xor_sync(~0u, sum[i], 16);
        if (threadIdx.x % 32 < SUM_PIECES) shared[warp][piece * 8 + i] = sum[i];
    }
    __syncthreads();
    const int mine = column0 + (int)threadIdx.x;
    float total = 0.0f;
    if (threadIdx.x < SUM_COLUMNS && mine < a.width) {
#pragma unroll
        for (int k = 0; k < SUM_WARPS; k++) total += shared[k][threadIdx.x];
        a.parts[blockIdx.y * a.width + mine] = total;
        __threadfence();
    }
    __syncthreads();
    if (threadIdx.x == 0) last = atomicInc(&a.counters[blockIdx.x], SUM_PARTS - 1) == SUM_PARTS - 1;
    __syncthreads();
    if (!last || threadIdx.x >= SUM_COLUMNS || mine >= a.width) return;
    __threadfence();
    total = 0.0f;
#pragma unroll
    for (int k = 0; k < SUM_PARTS; k++) total += __ldcg(&a.parts[k * a.width + mine]);
    a.out[mine] += total;
}

template <class T, bool SLOPE>
fth_err sum_as(const fth_cuda_call *c, const fth_tensor *x, const fth_tensor *saved, fth_act act,
               float *out) {
    const sum_args<T> a = {(T *)x->data,
                           saved ? (const T *)saved->data : nullptr,
                           act,
                           x->ld,
                           saved ? saved->ld : 0,
                           x->width,
                           rows_of(x),
                           c->step,
                           (float *)c->scratch,
                           out,
                           c->counters};
    const dim3 blocks(ceil_div(x->width, SUM_COLUMNS), SUM_PARTS);
    if (blocks.x > FTH_CUDA_COUNTERS)
        return fth_fail(FTH_FAILED, "a sum of %d columns: must be at most %d", x->width,
                        FTH_CUDA_COUNTERS * SUM_COLUMNS);
    if (is_wide(x) && is_wide(saved))
        sum_kernel<T, true, SLOPE><<<blocks, SUM_THREADS, 0, c->stream>>>(a);
    else
        sum_kernel<T, false, SLOPE><<<blocks, SUM_THREADS, 0, c->stream>>>(a);
    return fth_cuda_launched();
}
} // namespace

fth_err fth_cuda_column_sum(const fth_cuda_call *c, const fth_tensor *x, float *out) {
    return is_bf16(x) ? sum_as<bf16, false>(c, x, nullptr, FTH_ACT_NONE, out)
                      : sum_as<float, false>(c, x, nullptr, FTH_ACT_NONE, out);
}

fth_err fth_cuda_slope_sum(const fth_cuda_call *c, fth_act act, const fth_tensor *dx,
                           const fth_tensor *saved, float *out) {
    return is_bf16(dx) ? sum_as<bf16, true>(c, dx, saved, act, out)
                       : sum_as<float, true>(c, dx, saved, act, out);
}

int64_t fth_cuda_column_sum_scratch(int64_t width) {
    return SUM_PARTS * width * (int64_t)sizeof(float);
}
