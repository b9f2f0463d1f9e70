/* join_norm.cu: z = r x + a D(f) + c e, y = LN(z); join and norm are its halves. Reads 2n (3n with
 * e), writes 2n, two numbers a row and, where a backward follows, a bit of dropout for every
 * element; bandwidth bound, so a row is read once and stays in registers: a warp for a row of up to
 * 1024 columns, else a block. */
#include "backend/cuda/product/linear_join.cuh"

namespace {
/* A thread's pieces of a row, as they lie in memory. A row of the tail is fetched too: it holds
 * something finite. */
template <class T, int GROUP, int CHUNKS, bool WIDE>
__device__ __forceinline__ void fetch(const join_args<T> &a, const T *row, int lane,
                                      raw8<T> pieces[CHUNKS]) {
#pragma unroll
    for (int k = 0; k < CHUNKS; k++) {
        const int chunk = lane + k * GROUP, column = chunk * 8;
        if (chunk < a.chunks)
            pieces[k].load(row + column, WIDE, min(8, a.width - column));
        else
            pieces[k].zero();
    }
}

/* Eight columns of the sum; scalar: coef_scalar of r, a, c. */
template <class T, bool WIDE>
__device__ __forceinline__ void join8(const join_args<T> &a, const float scalar[3], int64_t row,
                                      int column, int n, const raw8<T> &x, const raw8<T> &f,
                                      float z[8]) {
    float v[8], kept[8];
    x.get(z);
    if (!a.f) return;
    scale8(a.r, scalar[0], column, WIDE, n, z);
    f.get(v);
    const uint32_t mask = drop_mask(a.step, a.drop, row, column, WIDE);
    if (a.kept)
        a.kept[row * a.chunks + column / 8] = (uint8_t)(WIDE ? mask : mask & 0xffu >> (8 - n));
    kept_factors(a.drop, mask, kept);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] *= kept[i];
    scale8(a.a, scalar[1], column, WIDE, n, v);
#pragma unroll
    for (int i = 0; i < 8; i++) z[i] += v[i];
    if (a.e) {
        load8(a.e + row * a.ld_e + column, WIDE, n, v);
        scale8(a.c, scalar[2], column, WIDE, n, v);
#pragma unroll
        for (int i = 0; i < 8; i++) z[i] += v[i];
    }
    /* What is kept of z is what the norm sees, here and in the backward. */
#pragma unroll
    for (int i = 0; i < 8; i++) z[i] = rounded<T>(z[i]);
}

template <class T>
__device__ void zero_row(const join_args<T> &a, int64_t row, int lane, int step) {
    float zeros[8];
    fill8(zeros, 0.0f);
    for (int chunk = lane; chunk < a.chunks; chunk += step) {
        const int column = chunk * 8, n = min(8, a.width - column);
        if (a.z) store8(a.z + row * a.ld_z + column, a.wide, n, zeros);
        if (a.y) store8(a.y + row * a.ld_y + column, a.wide, n, zeros);
        if (a.kept) a.kept[row * a.chunks + chunk] = 0;
    }
    if (a.stats && lane < 2) a.stats[row * a.ld_stats + lane] = 0.0f;
}

/* GROUP threads a row, at most CHUNKS pieces of eight columns each. Few registers, so that all rows
 * of a small batch are under way at once. */
template <class T, int GROUP, int CHUNKS, bool WIDE>
__global__ void __launch_bounds__(GROUP == 32 ? 256 : GROUP, GROUP == 32 && CHUNKS < 4 ? 4 : 1)
    join_kernel(join_args<T> a) {
    constexpr int BLOCK = GROUP == 32 ? 256 : GROUP;
    __shared__ float shared[32];
    const int lane = (int)threadIdx.x % GROUP;
    const int64_t row = (int64_t)blockIdx.x * (BLOCK / GROUP) + threadIdx.x / GROUP;
    if (row >= a.rows.capacity) return;
    raw8<T> x[CHUNKS], f[CHUNKS];
    fetch<T, GROUP, CHUNKS, WIDE>(a, a.x + row * a.ld_x, lane, x);
    if (a.f) fetch<T, GROUP, CHUNKS, WIDE>(a, a.f + row * a.ld_f, lane, f);
    if (row >= rows_now(a.step, a.rows)) {
        zero_row(a, row, lane, GROUP);
        return;
    }
    const float scalar[3] = {coef_scalar(a.step, a.r), coef_scalar(a.step, a.a),
                             coef_scalar(a.step, a.c)};
    float z[CHUNKS][8], sum = 0.0f;
#pragma unroll
    for (int k = 0; k < CHUNKS; k++) {
        const int chunk = lane + k * GROUP, column = chunk * 8, n = min(8, a.width - column);
        if (chunk >= a.chunks) continue;
        join8<T, WIDE>(a, scalar, row, column, n, x[k], f[k], z[k]);
        if (a.z) store8(a.z + row * a.ld_z + column, WIDE, n, z[k]);
#pragma unroll
        for (int i = 0; i < 8; i++) sum += i < n ? z[k][i] : 0.0f;
    }
    if (!a.y) return;
    const float *given = a.given ? a.given + row * a.ld_given : nullptr;
    const float mean = given ? given[0] : group_sum<GROUP>(sum, shared) / (float)a.width;
    sum = 0.0f;
#pragma unroll
    for (int k = 0; k < CHUNKS; k++) {
        const int chunk = lane + k * GROUP, n = min(8, a.width - chunk * 8);
        if (chunk >= a.chunks) continue;
#pragma unroll
        for (int i = 0; i < 8; i++) sum += i < n ? (z[k][i] - mean) * (z[k][i] - mean) : 0.0f;
    }
    const float var = given ? 0.0f : group_sum<GROUP>(sum, shared) / (float)a.width;
    const float rstd = given ? given[1] : rsqrtf(var + a.eps);
#pragma unroll
    for (int k = 0; k < CHUNKS; k++) {
        const int chunk = lane + k * GROUP, column = chunk * 8, n = min(8, a.width - column);
        if (chunk >= a.chunks) continue;
        float gain[8], bias[8];
        load8(a.gain + column, WIDE, n, gain);
        load8(a.bias + column, WIDE, n, bias);
#pragma unroll
        for (int i = 0; i < 8; i++) gain[i] = normed(z[k][i], mean, rstd, gain[i], bias[i]);
        store8(a.y + row * a.ld_y + column, WIDE, n, gain);
    }
    if (a.stats && lane == 0) {
        a.stats[row * a.ld_stats] = mean;
        a.stats[row * a.ld_stats + 1] = rstd;
    }
}

template <class T, int GROUP, int CHUNKS>
fth_err launch(const fth_cuda_call *c, const join_args<T> &a) {
    constexpr int BLOCK = GROUP == 32 ? 256 : GROUP;
    const int blocks = ceil_div(a.rows.capacity, BLOCK / GROUP);
    if (blocks == 0) return FTH_OK;
    if (a.wide)
        join_kernel<T, GROUP, CHUNKS, true><<<blocks, BLOCK, 0, c->stream>>>(a);
    else
        join_kernel<T, GROUP, CHUNKS, false><<<blocks, BLOCK, 0, c->stream>>>(a);
    return fth_cuda_launched();
}

template <class T> fth_err forward(const fth_cuda_call *c) {
    const join_args<T> a = join_arguments<T>(c);
    if (a.width <= 512) return launch<T, 32, 2>(c, a);
    if (a.width <= 768) return launch<T, 32, 3>(c, a);
    if (a.width <= 1024) return launch<T, 32, 4>(c, a);
    if (a.width <= 4096) return launch<T, 256, 2>(c, a);
    if (a.width <= 16384) return launch<T, 512, 4>(c, a);
    return fth_fail(FTH_FAILED, "a row of %d columns: must be at most 16384 on device cuda",
                    a.width);
}

fth_err either(const fth_cuda_call *c) {
    return is_bf16(in_of(c, JOIN_X)) ? forward<bf16>(c) : forward<float>(c);
}
} // namespace

fth_err fth_cuda_join(const fth_cuda_call *c) {
    return either(c);
}

fth_err fth_cuda_norm(const fth_cuda_call *c) {
    return either(c);
}

fth_err fth_cuda_join_norm(const fth_cuda_call *c) {
    if (fth_cuda_is_joined(c)) return fth_cuda_linear_join(c);
    return either(c);
}
