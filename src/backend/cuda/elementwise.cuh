/* elementwise.cuh: operations that go element by element: one thread for eight columns of a row.
 * The tail gets zeros. */
#ifndef FTH_BACKEND_CUDA_ELEMENTWISE_CUH
#define FTH_BACKEND_CUDA_ELEMENTWISE_CUH

#include "backend/cuda/random.cuh"

enum { MAP_THREADS = 256 };

template <class T, int N> struct map_args {
    const T *in[N];
    int64_t ld_in[N];
    T *out;
    int64_t ld_out;
    int width;
    uint32_t chunks; /* of eight columns, per row */
    bool wide;
    row_count rows;
    const fth_cuda_step *step;
};

/* f(step, row, column, in [N][8], out [8]). */
template <class T, int N, bool WIDE, class F>
__global__ void __launch_bounds__(MAP_THREADS) map_kernel(map_args<T, N> a, F f) {
    const uint32_t i = blockIdx.x * MAP_THREADS + threadIdx.x, row = i / a.chunks;
    if (row >= a.rows.capacity) return;
    const int column = (int)(i - row * a.chunks) * 8, n = min(8, a.width - column);
    raw8<T> raw[N];
#pragma unroll
    for (int k = 0; k < N; k++) raw[k].load(a.in[k] + row * a.ld_in[k] + column, WIDE, n);
    float in[N][8], out[8];
    fill8(out, 0.0f);
    if (row < rows_now(a.step, a.rows)) {
#pragma unroll
        for (int k = 0; k < N; k++) raw[k].get(in[k]);
        f(a.step, (int64_t)row, column, in, out);
    }
    store8(a.out + row * a.ld_out + column, WIDE, n, out);
}

template <class T, int N, class F>
static fth_err map_as(const fth_cuda_call *c, const fth_tensor *const *in, const fth_tensor *out,
                      F f) {
    map_args<T, N> a = {};
    a.wide = is_wide(out);
    for (int k = 0; k < N; k++) {
        a.in[k] = (const T *)in[k]->data;
        a.ld_in[k] = in[k]->ld;
        a.wide = a.wide && is_wide(in[k]);
    }
    a.out = (T *)out->data;
    a.ld_out = out->ld;
    a.width = out->width;
    a.chunks = (uint32_t)ceil_div(out->width, 8);
    a.rows = rows_of(out);
    a.step = c->step;
    const int blocks = ceil_div(out->rows * a.chunks, MAP_THREADS);
    if (blocks == 0) return FTH_OK;
    if (a.wide)
        map_kernel<T, N, true><<<blocks, MAP_THREADS, 0, c->stream>>>(a, f);
    else
        map_kernel<T, N, false><<<blocks, MAP_THREADS, 0, c->stream>>>(a, f);
    return fth_cuda_launched();
}

/* out = f(in), all of one type. out may be the place of an input. */
template <int N, class F>
static fth_err map(const fth_cuda_call *c, const fth_tensor *const *in, const fth_tensor *out,
                   F f) {
    return is_bf16(out) ? map_as<bf16, N>(c, in, out, f) : map_as<float, N>(c, in, out, f);
}

#endif
