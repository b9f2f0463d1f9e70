/* join_norm_bwd_fast.cu: join_norm_bwd where a warp has a row and no coefficient is learned. Reads
 * dy, z (and the addend) and a bit of dropout for every element, writes dx and df: 4n to 6n,
 * bandwidth bound. A warp fetches its next row while it works on this one, and keeps its sums of
 * columns in registers until its rows are done. */
#include "backend/cuda/join/join_bwd.cuh"

namespace {
enum { SUMS = 3 }; /* GAIN, BIAS, BRANCH */

template <class T, int CHUNKS> struct bwd_row {
    raw8<T> dy[CHUNKS], z[CHUNKS], dz[CHUNKS];
    float mean, rstd;
    uint32_t keeps[CHUNKS]; /* by dropout, bit by bit */
};

template <class T, int CHUNKS, bool WIDE>
__device__ __forceinline__ void fetch(const bwd_args<T> &a, int64_t row, bwd_row<T, CHUNKS> *r) {
    const int lane = (int)threadIdx.x % 32;
    if (a.dy) r->mean = a.stats[row * a.ld_stats], r->rstd = a.stats[row * a.ld_stats + 1];
#pragma unroll
    for (int k = 0; k < CHUNKS; k++) {
        const int chunk = lane + k * 32, column = chunk * 8, n = min(8, a.width - column);
        r->dy[k].zero(), r->z[k].zero(), r->dz[k].zero();
        if (chunk >= a.chunks) continue;
        if (a.dy) {
            r->dy[k].load(a.dy + row * a.ld_dy + column, WIDE, n);
            r->z[k].load(a.z + row * a.ld_z + column, WIDE, n);
        }
        if (a.dz) r->dz[k].load(a.dz + row * a.ld_dz + column, WIDE, n);
        r->keeps[k] = a.kept ? a.kept[row * a.chunks + chunk] : 0xffu;
    }
}

/* gain dy and the normalised z of eight columns. */
template <class T, int CHUNKS, bool WIDE>
__device__ __forceinline__ void operands(const bwd_args<T> &a, const bwd_row<T, CHUNKS> &r, int k,
                                         float dy[8], float u[8], float xhat[8]) {
    const int column = ((int)threadIdx.x % 32 + k * 32) * 8;
    r.dy[k].get(dy), r.z[k].get(xhat);
    load8(a.gain + column, WIDE, min(8, a.width - column), u);
#pragma unroll
    for (int i = 0; i < 8; i++) u[i] *= dy[i], xhat[i] = (xhat[i] - r.mean) * r.rstd;
}

/* The two means of the norm's backward, and what the row adds to the sums. */
template <class T, int CHUNKS, bool WIDE>
__device__ __forceinline__ float2 means(const bwd_args<T> &a, const bwd_row<T, CHUNKS> &r,
                                        float (*sums)[CHUNKS][8]) {
    float sum_u = 0.0f, sum_ux = 0.0f;
#pragma unroll
    for (int k = 0; k < CHUNKS; k++) {
        if ((int)threadIdx.x % 32 + k * 32 >= a.chunks) continue;
        float dy[8], u[8], xhat[8];
        operands<T, CHUNKS, WIDE>(a, r, k, dy, u, xhat);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            sums[GAIN][k][i] += dy[i] * xhat[i];
            sums[BIAS][k][i] += dy[i];
            sum_u += u[i];
            sum_ux += u[i] * xhat[i];
        }
    }
#pragma unroll
    for (int k = 16; k > 0; k >>= 1) {
        sum_u += __shfl_xor_sync(~0u, sum_u, k);
        sum_ux += __shfl_xor_sync(~0u, sum_ux, k);
    }
    return make_float2(sum_u / (float)a.width, sum_ux / (float)a.width);
}

/* dz of eight columns. */
template <class T, int CHUNKS, bool WIDE>
__device__ __forceinline__ void gradient(const bwd_args<T> &a, const bwd_row<T, CHUNKS> &r, int k,
                                         float2 mean, float dz[8]) {
    r.dz[k].get(dz);
    if (!a.dy) return;
    float dy[8], u[8], xhat[8];
    operands<T, CHUNKS, WIDE>(a, r, k, dy, u, xhat);
#pragma unroll
    for (int i = 0; i < 8; i++) dz[i] += (u[i] - mean.x - xhat[i] * mean.y) * r.rstd;
}

/* What goes to x, to the branch and to e. */
template <class T, bool WIDE>
__device__ __forceinline__ void spread(const bwd_args<T> &a, const float scalar[3], int64_t row,
                                       int column, uint32_t keeps, const float dz[8],
                                       float branch[8]) {
    const int n = min(8, a.width - column);
    float kept[8];
    kept_factors(a.drop, keeps, kept);
#pragma unroll
    for (int t = 0; t < 3; t++) {
        if (!a.out[t]) continue;
        float g[8];
#pragma unroll
        for (int i = 0; i < 8; i++) g[i] = (t == 1 ? kept[i] * dz[i] : dz[i]) * scalar[t];
        store8(a.out[t] + row * a.ld_out[t] + column, WIDE, n, g);
        if (a.parts[BRANCH] && a.branch == t)
#pragma unroll
            for (int i = 0; i < 8; i++) branch[i] += g[i];
    }
}

/* Adds the sums of a block's warps and puts them into its row of parts. */
template <int CHUNKS>
__device__ __forceinline__ void write_parts(float *parts, int width, const float sums[CHUNKS][8],
                                            float *shared) {
    if (!parts) return;                 /* the same for all threads */
    constexpr int PITCH = CHUNKS * 256; /* shared [warps, PITCH] */
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < CHUNKS; k++)
#pragma unroll
        for (int i = 0; i < 8; i += 4)
            *reinterpret_cast<float4 *>(shared + warp * PITCH + (lane + k * 32) * 8 + i) =
                make_float4(sums[k][i], sums[k][i + 1], sums[k][i + 2], sums[k][i + 3]);
    __syncthreads();
    for (int column = threadIdx.x; column < width; column += BWD_THREADS) {
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < BWD_THREADS / 32; w++) total += shared[w * PITCH + column];
        parts[(int64_t)blockIdx.x * width + column] = total;
    }
}

template <class T, int CHUNKS, bool WIDE>
__global__ void __launch_bounds__(BWD_THREADS, CHUNKS <= 2 ? 2 : 1) warp_kernel(bwd_args<T> a) {
    __shared__ __align__(16) float shared[BWD_THREADS / 32 * CHUNKS * 256];
    const int lane = (int)threadIdx.x % 32;
    const int64_t step = (int64_t)gridDim.x * (BWD_THREADS / 32);
    int64_t row = (int64_t)blockIdx.x * (BWD_THREADS / 32) + threadIdx.x / 32;
    bwd_row<T, CHUNKS> now, next;
    if (row < a.rows.capacity) fetch<T, CHUNKS, WIDE>(a, row, &now);
    const int64_t rows = rows_now(a.step, a.rows);
    const float scalar[3] = {coef_number(a.step, a.coef[0]), coef_number(a.step, a.coef[1]),
                             coef_number(a.step, a.coef[2])};
    float sums[SUMS][CHUNKS][8];
#pragma unroll
    for (int q = 0; q < SUMS; q++)
#pragma unroll
        for (int k = 0; k < CHUNKS; k++) fill8(sums[q][k], 0.0f);
    for (; row < rows; row += step, now = next) {
        if (row + step < rows) fetch<T, CHUNKS, WIDE>(a, row + step, &next);
        const float2 mean = a.dy ? means<T, CHUNKS, WIDE>(a, now, sums) : make_float2(0.0f, 0.0f);
#pragma unroll
        for (int k = 0; k < CHUNKS; k++) {
            if (lane + k * 32 >= a.chunks) continue;
            float dz[8];
            gradient<T, CHUNKS, WIDE>(a, now, k, mean, dz);
            spread<T, WIDE>(a, scalar, row, (lane + k * 32) * 8, now.keeps[k], dz, sums[BRANCH][k]);
        }
    }
    for (; row < a.rows.capacity; row += step) zero_row(a, row, lane, 32);
#pragma unroll
    for (int q = 0; q < SUMS; q++) write_parts<CHUNKS>(a.parts[q], a.width, sums[q], shared);
}

template <class T, int CHUNKS>
fth_err launch(const fth_cuda_call *c, const bwd_args<T> &a, int blocks) {
    if (a.wide)
        warp_kernel<T, CHUNKS, true><<<blocks, BWD_THREADS, 0, c->stream>>>(a);
    else
        warp_kernel<T, CHUNKS, false><<<blocks, BWD_THREADS, 0, c->stream>>>(a);
    return fth_cuda_launched();
}
} // namespace

template <class T>
fth_err fth_cuda_join_bwd_fast(const fth_cuda_call *c, const bwd_args<T> &a, int blocks) {
    if (a.width <= 256) return launch<T, 1>(c, a, blocks);
    if (a.width <= 512) return launch<T, 2>(c, a, blocks);
    if (a.width <= 768) return launch<T, 3>(c, a, blocks);
    return launch<T, 4>(c, a, blocks);
}

template fth_err fth_cuda_join_bwd_fast(const fth_cuda_call *, const bwd_args<float> &, int);
template fth_err fth_cuda_join_bwd_fast(const fth_cuda_call *, const bwd_args<bf16> &, int);
