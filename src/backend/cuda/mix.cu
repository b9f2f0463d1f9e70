/* mix.cu: y = sum_k w_k x_k with learned scalars; dx_k = addend_k + w_k dy, dw_k += <dy, x_k>.
 * Reads k n, writes n; backward reads dy and k x_k and k addends, writes k n. Pointers travel as
 * arguments of the kernel, MIX_GROUP at a time. */
#include "backend/cuda/dots.cuh"

namespace {
enum { MIX_GROUP = 64, MIX_THREADS = 256 };

template <class T> struct mix_args {
    const T *x[MIX_GROUP]; /* backward: the addends */
    int64_t ld[MIX_GROUP];
    T *out[MIX_GROUP]; /* forward: only the first */
    int64_t ld_out[MIX_GROUP];
    const T *dy;
    int64_t ld_dy;
    const float *w; /* [n] */
    int n, width;
    uint32_t chunks;
    bool wide, more; /* more: y has the sum of the groups before */
    row_count rows;
    const fth_cuda_step *step;
};

template <class T> __global__ void __launch_bounds__(MIX_THREADS) mix_forward(mix_args<T> a) {
    const uint32_t i = blockIdx.x * MIX_THREADS + threadIdx.x, row = i / a.chunks;
    if (row >= a.rows.capacity) return;
    const int column = (int)(i - row * a.chunks) * 8, n = min(8, a.width - column);
    T *y = a.out[0] + row * a.ld_out[0] + column;
    float sum[8], x[8];
    fill8(sum, 0.0f);
    if (row < rows_now(a.step, a.rows)) {
        if (a.more) load8(y, a.wide, n, sum);
        for (int k = 0; k < a.n; k++) {
            load8(a.x[k] + row * a.ld[k] + column, a.wide, n, x);
            const float w = a.w[k];
#pragma unroll
            for (int e = 0; e < 8; e++) sum[e] += w * x[e];
        }
    }
    store8(y, a.wide, n, sum);
}

template <class T> __global__ void __launch_bounds__(MIX_THREADS) mix_backward(mix_args<T> a) {
    const uint32_t i = blockIdx.x * MIX_THREADS + threadIdx.x, row = i / a.chunks;
    if (row >= a.rows.capacity) return;
    const int column = (int)(i - row * a.chunks) * 8, n = min(8, a.width - column);
    const bool real = row < rows_now(a.step, a.rows);
    float dy[8], sum[8];
    fill8(dy, 0.0f);
    if (real) load8(a.dy + row * a.ld_dy + column, a.wide, n, dy);
    for (int k = 0; k < a.n; k++) {
        if (!a.out[k]) continue;
        fill8(sum, 0.0f);
        if (real && a.x[k]) load8(a.x[k] + row * a.ld[k] + column, a.wide, n, sum);
        const float w = a.w[k];
#pragma unroll
        for (int e = 0; e < 8; e++) sum[e] += w * dy[e];
        store8(a.out[k] + row * a.ld_out[k] + column, a.wide, n, sum);
    }
}

template <class T> void set_shape(const fth_cuda_call *c, const fth_tensor *t, mix_args<T> *a) {
    a->width = t->width;
    a->chunks = (uint32_t)ceil_div(t->width, 8);
    a->rows = rows_of(t);
    a->step = c->step;
    a->wide = is_wide(t);
}

template <class T>
void set_term(mix_args<T> *a, int k, const fth_tensor *x, const fth_tensor *out) {
    a->x[k] = x ? (const T *)x->data : nullptr;
    a->ld[k] = x ? x->ld : 0;
    a->out[k] = out ? (T *)out->data : nullptr;
    a->ld_out[k] = out ? out->ld : 0;
    a->wide = a->wide && is_wide(x) && is_wide(out);
}

template <class T> fth_err forward(const fth_cuda_call *c) {
    const fth_tensor *y = out_of(c, MIX_Y);
    const int n = c->op->n_in - MIX_X0;
    for (int from = 0; from < n; from += MIX_GROUP) {
        mix_args<T> a = {};
        set_shape(c, y, &a);
        a.n = n - from < MIX_GROUP ? n - from : MIX_GROUP;
        a.more = from > 0;
        a.w = (const float *)in_of(c, MIX_W)->data + from;
        for (int k = 0; k < a.n; k++) set_term(&a, k, in_of(c, MIX_X0 + from + k), k ? nullptr : y);
        const int blocks = ceil_div(y->rows * a.chunks, MIX_THREADS);
        if (blocks == 0) return FTH_OK;
        mix_forward<T><<<blocks, MIX_THREADS, 0, c->stream>>>(a);
        FTH_TRY(fth_cuda_launched());
    }
    return FTH_OK;
}

struct gradients {
    float *dw;
    __device__ void operator()(int job, const double *sums) const {
        dw[job] += (float)sums[job];
    }
};

/* dw first: a dx may take the place of an addend, never of an x. */
template <class T> fth_err backward(const fth_cuda_call *c) {
    const fth_tensor *dy = in_of(c, MIX_BWD_DY), *dw = out_of(c, MIX_BWD_DW);
    const int n = (c->op->n_in - MIX_BWD_X0) / 2;
    for (int from = 0; from < n; from += MIX_GROUP) {
        mix_args<T> a = {};
        dot_jobs<T> jobs;
        set_shape(c, dy, &a);
        a.dy = (const T *)dy->data;
        a.ld_dy = dy->ld;
        a.n = jobs.n = n - from < MIX_GROUP ? n - from : MIX_GROUP;
        a.w = (const float *)in_of(c, MIX_BWD_W)->data + from;
        for (int k = 0; k < a.n; k++) {
            const fth_tensor *x = in_of(c, MIX_BWD_X0 + from + k);
            const fth_tensor *addend = in_of(c, MIX_BWD_X0 + n + from + k);
            set_term(&a, k, addend, out_of(c, MIX_BWD_DX0 + from + k));
            if (dw) jobs.job[k] = dot_of<T>(dy, x);
        }
        if (dw) FTH_TRY(dots(c, jobs, rows_of(dy), gradients{(float *)dw->data + from}));
        const int blocks = ceil_div(dy->rows * a.chunks, MIX_THREADS);
        if (blocks == 0) return FTH_OK;
        mix_backward<T><<<blocks, MIX_THREADS, 0, c->stream>>>(a);
        FTH_TRY(fth_cuda_launched());
    }
    return FTH_OK;
}
} // namespace

fth_err fth_cuda_mix(const fth_cuda_call *c) {
    return is_bf16(out_of(c, MIX_Y)) ? forward<bf16>(c) : forward<float>(c);
}

fth_err fth_cuda_mix_bwd(const fth_cuda_call *c) {
    return is_bf16(in_of(c, MIX_BWD_DY)) ? backward<bf16>(c) : backward<float>(c);
}
