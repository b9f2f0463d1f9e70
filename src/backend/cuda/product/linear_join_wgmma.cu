/* linear_join_wgmma.cu: f = x W^T + b, z = r x' + a D(f), y = LN(z) as one kernel, for rows of bf16
 * that a cluster's blocks hold together (row_product.cuh). 2 R n k operations; beside the product's
 * operands it reads x' and writes z and y, so that f neither goes to memory nor comes back.
 * Dropout's bits are drawn while the tensor cores work. */
#include "backend/cuda/join/join.cuh"
#include "backend/cuda/product/linear_join.cuh"
#include "backend/cuda/product/row_product.cuh"

namespace {
struct fused_args {
    row_maps maps;
    CUtensorMap z, y;
    const float *bias; /* of the product, opt */
    join_args<bf16> join;
};

enum { PRODUCT_BIAS, NORM_GAIN, NORM_BIAS }; /* of row_shared.vector */

enum { Z, Y }; /* matrices behind the product; before z, x is in its place */

__device__ __forceinline__ void load_vectors(const fused_args &a, row_shared *s, int self,
                                             int column) {
    for (int k = self; k < ROWS_WIDE; k += ROWS_PREPARERS) {
        s->vector[PRODUCT_BIAS][k] = a.bias ? a.bias[column + k] : 0.0f;
        s->vector[NORM_GAIN][k] = a.join.gain[column + k];
        s->vector[NORM_BIAS][k] = a.join.bias[column + k];
    }
}

/* What dropout keeps of the warp's rows, four at a time. */
__device__ __forceinline__ void draw(const join_args<bf16> &j, row_shared *s, int row, int rank) {
    const int lane = (int)threadIdx.x % 32, first = (int)threadIdx.x / 32 * ROWS_OF_WARP;
    const int chunk = rank * ROWS_WIDE / 8 + lane;
    const int64_t rows = rows_now(j.step, j.rows);
    const drop_key key = drop_key_of(j.step, j.drop);
#pragma unroll 1
    for (int i = first; i < first + ROWS_OF_WARP; i += 4) {
        uint32_t mask[4] = {0xffu, 0xffu, 0xffu, 0xffu};
        if (j.drop.threshold > 0)
#pragma unroll
            for (int k = 0; k < 4; k++) mask[k] = drop_bits(key, j.drop, row + i + k, chunk * 8);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int64_t at = row + i + k;
            if (at >= rows) mask[k] = 0;
            reinterpret_cast<uint8_t *>(s->keeps[i + k])[lane] = (uint8_t)mask[k];
            if (j.kept && at < j.rows.capacity) j.kept[at * j.chunks + chunk] = (uint8_t)mask[k];
        }
    }
}

/* Makes z of a thread's pieces of c, whose place it takes, as of x behind it. Adds to the
 * sums of the thread's two rows. 64 columns at a time: all is read before anything is written. */
template <int RANKS>
__device__ __forceinline__ void join_part(const row_product<RANKS, false> &p, int part, int upper,
                                          const float of_x[2], float of_f, float (*c)[4],
                                          float sum[2]) {
    const int t = (int)threadIdx.x % 4;
    uint32_t x[8][2], keeps[2][2];
    float2 bias[8];
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int k = 0; k < 2; k++) keeps[k][h] = p.s->keeps[upper + 8 * h][part * 2 + k] >> 2 * t;
#pragma unroll
    for (int n = 0; n < 8; n++) {
        bias[n] = p.pair_of(PRODUCT_BIAS, part * 8 + n);
#pragma unroll
        for (int h = 0; h < 2; h++) x[n][h] = *p.pair_at(Z, upper + 8 * h, part * 8 + n);
    }
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float *f = c[part * 8 + n] + 2 * h;
            const float2 old = unpack2(x[n][h]);
            const uint32_t bits = keeps[n / 4][h];
            const float f0 = bits & 1u << n % 4 * 8 ? (f[0] + bias[n].x) * of_f : 0.0f;
            const float f1 = bits & 2u << n % 4 * 8 ? (f[1] + bias[n].y) * of_f : 0.0f;
            x[n][h] = pack2(fmaf(old.x, of_x[h], f0), fmaf(old.y, of_x[h], f1));
            const float2 z = unpack2(x[n][h]);
            f[0] = z.x, f[1] = z.y;
            sum[h] += z.x + z.y;
        }
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int h = 0; h < 2; h++) *p.pair_at(Z, upper + 8 * h, part * 8 + n) = x[n][h];
}

/* Squares of a thread's distances to a mean. */
__device__ __forceinline__ float squares(const float (*c)[4], int h, float mean) {
    float sum[2] = {0.0f, 0.0f};
#pragma unroll
    for (int n = 0; n < ROWS_WIDE / 8; n++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            sum[i] = fmaf(c[n][2 * h + i] - mean, c[n][2 * h + i] - mean, sum[i]);
    return sum[0] + sum[1];
}

/* Of a whole row's to its mean: what each block has around its own, and how far that is off. */
template <int RANKS>
__device__ __forceinline__ float all_squares(const row_product<RANKS, false> &p, int r,
                                             float mean) {
    float sum = p.taken(1, r);
#pragma unroll
    for (int k = 0; k < RANKS; k++) {
        const float off = p.taken(0, k, r) / ROWS_WIDE - mean;
        sum = fmaf(off * ROWS_WIDE, off, sum);
    }
    return sum;
}

/* y of 64 columns. */
template <int RANKS>
__device__ __forceinline__ void norm_part(const row_product<RANKS, false> &p, int part, int upper,
                                          const bool is[2], const float mean[2],
                                          const float rstd[2], const float (*c)[4]) {
    float2 gain[8], bias[8];
#pragma unroll
    for (int n = 0; n < 8; n++) {
        gain[n] = p.pair_of(NORM_GAIN, part * 8 + n);
        bias[n] = p.pair_of(NORM_BIAS, part * 8 + n);
    }
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float *z = c[part * 8 + n] + 2 * h;
            const float y0 = normed(z[0], mean[h], rstd[h], gain[n].x, bias[n].x);
            const float y1 = normed(z[1], mean[h], rstd[h], gain[n].y, bias[n].y);
            *p.pair_at(Y, upper + 8 * h, part * 8 + n) = is[h] ? pack2(y0, y1) : 0u;
        }
}

/* The product itself, for who else reads it. */
template <int RANKS>
__device__ __forceinline__ void write_product(const row_product<RANKS, false> &p,
                                              const join_args<bf16> &j, const float (*c)[4]) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int64_t row = p.row + (int)threadIdx.x / 32 * ROWS_OF_WARP + lane / 4 + 8 * h;
        bf16 *f = const_cast<bf16 *>(j.f) + row * j.ld_f + p.rank * ROWS_WIDE + lane % 4 * 2;
        if (row >= j.rows.capacity) continue;
#pragma unroll
        for (int n = 0; n < ROWS_WIDE / 8; n++) {
            const float2 bias = p.pair_of(PRODUCT_BIAS, n);
            *reinterpret_cast<uint32_t *>(f + n * 8) =
                pack2(c[n][2 * h] + bias.x, c[n][2 * h + 1] + bias.y);
        }
    }
}

/* From the product to y. */
template <int RANKS>
__device__ __forceinline__ void join_rows(const fused_args &a, const row_product<RANKS, false> &p,
                                          float (*c)[4]) {
    const join_args<bf16> &j = a.join;
    const int lane = (int)threadIdx.x % 32, t = lane % 4;
    const int upper = (int)threadIdx.x / 32 * ROWS_OF_WARP + lane / 4; /* the other is 8 below */
    const int64_t rows = rows_now(j.step, j.rows);
    const bool is[2] = {p.row + upper < rows, p.row + upper + 8 < rows};
    const float r = coef_scalar(j.step, j.r), of_x[2] = {is[0] ? r : 0.0f, is[1] ? r : 0.0f};
    const float of_f = coef_scalar(j.step, j.a) * (j.drop.threshold == 0 ? 1.0f : j.drop.scale);
    float sum[2] = {0.0f, 0.0f}, mean[2], rstd[2];
#pragma unroll
    for (int part = 0; part < ROWS_PARTS; part++) join_part(p, part, upper, of_x, of_f, c, sum);
    p.rows_are_down();
    p.write(a.z, Z, 0);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        sum[h] = p.quad_sum(sum[h]);
        const float around = p.quad_sum(squares(c, h, sum[h] / ROWS_WIDE));
        if (t == 0) p.give(0, upper + 8 * h, sum[h]), p.give(1, upper + 8 * h, around);
    }
    p.take(0);
    p.take(1);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int64_t row = p.row + upper + 8 * h;
        mean[h] = p.taken(0, upper + 8 * h) / (float)j.width;
        rstd[h] = rsqrtf(all_squares(p, upper + 8 * h, mean[h]) / (float)j.width + j.eps);
        if (j.stats && p.rank == 0 && t == 0 && row < j.rows.capacity)
            *reinterpret_cast<float2 *>(j.stats + row * j.ld_stats) =
                is[h] ? make_float2(mean[h], rstd[h]) : make_float2(0.0f, 0.0f);
    }
#pragma unroll
    for (int part = 0; part < ROWS_PARTS; part++) norm_part(p, part, upper, is, mean, rstd, c);
    p.rows_are_down();
    p.write(a.y, Y, ROWS_PARTS);
    p.writes_wait(); /* before the block's memory is another's */
}

template <int RANKS>
__global__ void __cluster_dims__(RANKS, 1, 1) __launch_bounds__(ROWS_THREADS, 1)
    linear_join_kernel(const __grid_constant__ fused_args a) {
    extern __shared__ char memory[];
    row_shared *s = row_shared_of(memory);
    const row_product<RANKS, false> p(s, a.maps);
    if (p.multiplies()) {
        take_registers();
        draw(a.join, s, p.row, p.rank); /* until the first tiles come */
        __syncwarp();
        float c[ROWS_WIDE / 8][4];
        p.multiply(c);
        prepared_wait();
        if (a.join.f) write_product(p, a.join, c);
        join_rows(a, p, c);
    } else {
        give_registers();
        if (p.fetches()) p.fetch_all();
        if (p.preparer() >= 0) {
            load_vectors(a, s, p.preparer(), p.rank * ROWS_WIDE);
            prepared_arrive();
        }
    }
    __syncwarp();
    cluster_wait();
}

template <int RANKS> fth_err launch(const fth_cuda_call *c, const fth_linear_join *l) {
    fused_args a = {};
    const fth_tensor *z = out_of(c, JOIN_Z);
    a.join = join_arguments<bf16>(c);
    if (!l->keeps) a.join.f = nullptr;
    a.bias = data_of<float>(l->bias);
    a.maps.steps = l->w->width / TILE, a.maps.comes[0] = true;
    FTH_TRY(row_map_a(&a.maps.a, RANKS, data_of<bf16>(l->x), l->x->ld, l->x->rows, l->x->width));
    FTH_TRY(row_map_b(&a.maps.b, false, data_of<bf16>(l->w), l->w->ld, l->w->rows, l->w->width));
    FTH_TRY(row_map_tile(&a.maps.behind[0], a.join.x, a.join.ld_x, z->rows, z->width));
    FTH_TRY(row_map_tile(&a.z, a.join.z, a.join.ld_z, z->rows, z->width));
    FTH_TRY(row_map_tile(&a.y, a.join.y, a.join.ld_y, z->rows, z->width));
    return launch_rows(c->stream, linear_join_kernel<RANKS>, a, z->rows, z->width);
}
} // namespace

fth_err fth_cuda_linear_join_wgmma(const fth_cuda_call *c, const fth_linear_join *l) {
    switch (l->w->rows / ROWS_WIDE) {
    case 1: return launch<1>(c, l);
    case 2: return launch<2>(c, l);
    default: return launch<4>(c, l);
    }
}
