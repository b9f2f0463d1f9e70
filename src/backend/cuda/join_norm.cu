/* join_norm.cu: z = r x + a D(f) + c e, y = LN(z); join and norm are its halves. Reads 2n (3n with
 * e), writes 2n, two numbers a row and, where a backward follows, a bit of dropout for every element;
 * bandwidth bound, so a row is read once and stays in registers: a warp for a row of up to 1024
 * columns, else a block. */
#include "backend/cuda/join.cuh"

namespace {
template <class T> struct join_args {
    const T *x, *f, *e; /* f and e may be absent */
    int64_t ld_x, ld_f, ld_e;
    T *z, *y; /* norm has no z, join no y */
    int64_t ld_z, ld_y;
    float *stats; /* opt */
    int64_t ld_stats;
    const float *gain, *bias;
    join_coef r, a, c;
    drop_place drop;
    uint8_t *kept; /* [rows, chunks] what it keeps of every piece, opt */
    float eps;
    int width, chunks;
    bool wide;
    row_count rows;
    const fth_cuda_step *step;
};

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
    const float mean = group_sum<GROUP>(sum, shared) / (float)a.width;
    sum = 0.0f;
#pragma unroll
    for (int k = 0; k < CHUNKS; k++) {
        const int chunk = lane + k * GROUP, n = min(8, a.width - chunk * 8);
        if (chunk >= a.chunks) continue;
#pragma unroll
        for (int i = 0; i < 8; i++) sum += i < n ? (z[k][i] - mean) * (z[k][i] - mean) : 0.0f;
    }
    const float var = group_sum<GROUP>(sum, shared) / (float)a.width;
    const float rstd = rsqrtf(var + a.eps);
#pragma unroll
    for (int k = 0; k < CHUNKS; k++) {
        const int chunk = lane + k * GROUP, column = chunk * 8, n = min(8, a.width - column);
        if (chunk >= a.chunks) continue;
        float gain[8], bias[8];
        load8(a.gain + column, WIDE, n, gain);
        load8(a.bias + column, WIDE, n, bias);
#pragma unroll
        for (int i = 0; i < 8; i++) gain[i] = gain[i] * ((z[k][i] - mean) * rstd) + bias[i];
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

template <class T> const T *data_of(const fth_tensor *t) {
    return t ? (const T *)t->data : nullptr;
}

template <class T> fth_err forward(const fth_cuda_call *c) {
    const fth_tensor *x = in_of(c, JOIN_X), *f = in_of(c, JOIN_F), *e = in_of(c, JOIN_E);
    const fth_tensor *z = out_of(c, JOIN_Z), *y = out_of(c, JOIN_Y);
    const fth_tensor *stats = out_of(c, JOIN_STATS), *kept = out_of(c, JOIN_KEPT);
    const fth_tensor *vectors[] = {in_of(c, JOIN_R), in_of(c, JOIN_A), in_of(c, JOIN_C),
                                   in_of(c, JOIN_GAIN), in_of(c, JOIN_BIAS)};
    join_args<T> a = {};
    a.x = data_of<T>(x), a.f = data_of<T>(f), a.e = data_of<T>(e);
    a.ld_x = x->ld, a.ld_f = f ? f->ld : 0, a.ld_e = e ? e->ld : 0;
    a.z = (T *)data_of<T>(z), a.y = (T *)data_of<T>(y);
    a.ld_z = z ? z->ld : 0, a.ld_y = y ? y->ld : 0;
    a.stats = stats ? (float *)stats->data : nullptr, a.ld_stats = stats ? stats->ld : 0;
    a.r = coef_of(&c->op->u.join.r, vectors[0]);
    a.a = coef_of(&c->op->u.join.a, vectors[1]);
    a.c = coef_of(&c->op->u.join.c, vectors[2]);
    a.gain = data_of<float>(vectors[3]), a.bias = data_of<float>(vectors[4]);
    if (f) a.drop = drop_at(&c->op->u.join.drop, f);
    a.kept = kept ? (uint8_t *)kept->data : nullptr;
    a.eps = (float)c->op->u.join.eps;
    a.width = x->width, a.chunks = ceil_div(x->width, 8);
    a.wide = is_wide(x) && is_wide(f) && is_wide(e) && is_wide(z) && is_wide(y);
    for (const fth_tensor *v : vectors) a.wide = a.wide && (!v || v->width == 1 || is_wide(v));
    a.rows = rows_of(x);
    a.step = c->step;
    if (x->width <= 512) return launch<T, 32, 2>(c, a);
    if (x->width <= 768) return launch<T, 32, 3>(c, a);
    if (x->width <= 1024) return launch<T, 32, 4>(c, a);
    if (x->width <= 4096) return launch<T, 256, 2>(c, a);
    if (x->width <= 16384) return launch<T, 512, 4>(c, a);
    return fth_fail(FTH_FAILED, "a row of %d columns: must be at most 16384 on device cuda",
                    x->width);
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
    return either(c);
}
