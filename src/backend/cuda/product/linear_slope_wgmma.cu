/* linear_slope_wgmma.cu: dx = (dy W) * relu'(saved) as one kernel (row_product.cuh), with the sums
 * of its columns for the bias of the linear operation before. 2 R n k operations; beside the
 * product's operands it reads what was saved and writes dx, so that dx need not be read and written
 * once more. */
#include "backend/cuda/product/linear_join.cuh"
#include "backend/cuda/product/row_product.cuh"

namespace {
enum { RANKS = 2 }; /* blocks that share rows of dy */

struct slope_args {
    row_maps maps; /* behind: what was saved, where dx takes its place */
    CUtensorMap dx;
    float *parts; /* [blocks of rows, width], opt */
    int width;
};

typedef row_product<RANKS, true> product;

/* Sums of a warp's rows, in the place of the last step: [warps, ROWS_WIDE]. */
__device__ __forceinline__ float *sums_of(const product &p, int warp) {
    return reinterpret_cast<float *>(&p.s->slot[(p.m.steps + 3) % ROWS_SLOTS]) + warp * ROWS_WIDE;
}

/* 64 columns. */
__device__ __forceinline__ void slope_part(const product &p, int part, const float (*c)[4]) {
    const int lane = (int)threadIdx.x % 32, t = lane % 4, warp = (int)threadIdx.x / 32;
    const int upper = warp * ROWS_OF_WARP + lane / 4; /* the other row is 8 below */
    uint32_t saved[8][2];
    float columns[16];
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int h = 0; h < 2; h++) saved[n][h] = *p.pair_at(0, upper + 8 * h, part * 8 + n);
#pragma unroll
    for (int n = 0; n < 8; n++) {
        columns[2 * n] = columns[2 * n + 1] = 0.0f;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float *x = c[part * 8 + n] + 2 * h;
            const float low = saved[n][h] & 0x7fffu ? x[0] : 0.0f; /* ReLU's output is 0 or more */
            const float high = saved[n][h] & 0x7fff0000u ? x[1] : 0.0f;
            saved[n][h] = pack2(low, high);
            columns[2 * n] += low, columns[2 * n + 1] += high;
        }
    }
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int h = 0; h < 2; h++) *p.pair_at(0, upper + 8 * h, part * 8 + n) = saved[n][h];
    fold<8, 16, 4>(columns); /* of the eight lanes with the same columns */
    const int n = (lane & 16 ? 4 : 0) + (lane & 8 ? 2 : 0) + (lane & 4 ? 1 : 0);
    *reinterpret_cast<float2 *>(sums_of(p, warp) + part * TILE + n * 8 + t * 2) =
        make_float2(columns[0], columns[1]);
}

__global__ void __cluster_dims__(RANKS, 1, 1) __launch_bounds__(ROWS_THREADS, 1)
    linear_slope_kernel(const __grid_constant__ slope_args a) {
    extern __shared__ char memory[];
    row_shared *s = row_shared_of(memory);
    const product p(s, a.maps);
    if (p.multiplies()) {
        take_registers();
        float c[ROWS_WIDE / 8][4];
        p.multiply(c);
        multipliers_wait(); /* sums go to where the last step was */
#pragma unroll
        for (int part = 0; part < ROWS_PARTS; part++) slope_part(p, part, c);
        p.rows_are_down();
        p.write(a.dx, 0, 0);
        if (a.parts) {
            float total = 0.0f;
#pragma unroll
            for (int w = 0; w < ROWS_MULTIPLIERS / 32; w++) total += sums_of(p, w)[threadIdx.x];
            a.parts[(int64_t)blockIdx.y * a.width + p.column + threadIdx.x] = total;
        }
        p.writes_wait(); /* before the block's memory is another's */
    } else {
        give_registers();
        if (p.fetches()) p.fetch_all();
    }
    __syncwarp();
    cluster_wait();
}
} // namespace

fth_err fth_cuda_linear_slope_wgmma(const fth_cuda_call *c, const fth_linear_join *l,
                                    const fth_tensor *saved, const fth_tensor *dx, float *parts) {
    slope_args a = {};
    a.parts = parts, a.width = dx->width;
    a.maps.steps = l->w->rows / TILE, a.maps.comes[0] = true;
    FTH_TRY(row_map_a(&a.maps.a, RANKS, data_of<bf16>(l->x), l->x->ld, l->x->rows, l->x->width));
    FTH_TRY(row_map_b(&a.maps.b, true, data_of<bf16>(l->w), l->w->ld, l->w->rows, l->w->width));
    FTH_TRY(row_map_tile(&a.maps.behind[0], data_of<bf16>(saved), saved->ld, dx->rows, dx->width));
    FTH_TRY(row_map_tile(&a.dx, data_of<bf16>(dx), dx->ld, dx->rows, dx->width));
    return launch_rows(c->stream, linear_slope_kernel, a, dx->rows, dx->width);
}
