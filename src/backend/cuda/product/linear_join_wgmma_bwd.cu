/* linear_join_wgmma_bwd.cu: dy = g W + addend, dz = LN'(dy), dx = r dz, df = a D(dz) as one kernel,
 * for rows of bf16 that a cluster's blocks hold together (row_product.cuh). 2 R n k operations;
 * beside the product's operands it reads the addend, z and a bit of dropout for every element and
 * writes dx and df. Column sums are those of a block's rows: parts [quantity, block of rows,
 * width], added up as in join_norm_bwd.cu. */
#include "backend/cuda/join/join_bwd.cuh"
#include "backend/cuda/product/linear_join.cuh"
#include "backend/cuda/product/row_product.cuh"

namespace {
enum { DY, Z }; /* matrices behind the product; before dy, the addend is in its place */
enum { NORM_GAIN, OF_ROWS }; /* of row_shared.vector; OF_ROWS: four numbers each */
enum { SUMS = 3 };           /* of columns: GAIN, BIAS, BRANCH */

struct fused_args {
    row_maps maps;
    CUtensorMap dy; /* where the product goes; not set where it goes nowhere */
    bool writes_dy;
    bwd_args<bf16> join;
};

/* What belongs to a row. */
__device__ __forceinline__ float4 *of_row(row_shared *s, int r) {
    return reinterpret_cast<float4 *>(s->vector[OF_ROWS]) + r;
}

/* The gain, what dropout has kept of the block's rows, and 1 / sigma and -mean / sigma of each. */
__device__ __forceinline__ void prepare(const bwd_args<bf16> &j, row_shared *s, int self, int row,
                                        int rank) {
    enum { WORDS = ROWS_WIDE / 32 };
    for (int k = self; k < ROWS_WIDE; k += ROWS_PREPARERS)
        s->vector[NORM_GAIN][k] = j.gain[rank * ROWS_WIDE + k];
    for (int r = self; r < ROWS_HIGH; r += ROWS_PREPARERS) {
        const float *stats = j.stats + (int64_t)(row + r) * j.ld_stats;
        const bool is = row + r < rows_now(j.step, j.rows);
        const float mean = is ? stats[0] : 0.0f, rstd = is ? stats[1] : 0.0f;
        *of_row(s, r) = make_float4(rstd, -mean * rstd, 0.0f, 0.0f);
    }
#pragma unroll 4
    for (int k = self; k < ROWS_HIGH * WORDS; k += ROWS_PREPARERS) {
        const int64_t at = row + k / WORDS;
        const uint8_t *bits = j.kept + at * j.chunks + rank * ROWS_WIDE / 8 + k % WORDS * 4;
        const bool is = j.kept && at < j.rows.capacity;
        s->keeps[k / WORDS][k % WORDS] = is ? *reinterpret_cast<const uint32_t *>(bits) : ~0u;
    }
}

/* The product with its addend, rounded, to where the addend was. */
template <int RANKS>
__device__ __forceinline__ void put_down(const row_product<RANKS, true> &p, const float (*c)[4]) {
    const int lane = (int)threadIdx.x % 32;
    const int upper = (int)threadIdx.x / 32 * ROWS_OF_WARP + lane / 4;
#pragma unroll
    for (int part = 0; part < ROWS_PARTS; part++) {
        uint32_t old[8][2];
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                old[n][h] = p.m.comes[DY] ? *p.pair_at(DY, upper + 8 * h, part * 8 + n) : 0u;
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const float2 add = unpack2(old[n][h]);
                const float *x = c[part * 8 + n] + 2 * h;
                *p.pair_at(DY, upper + 8 * h, part * 8 + n) = pack2(x[0] + add.x, x[1] + add.y);
            }
    }
    __syncwarp();
}

/* Of numbers of 16 rows that each lane has some of, the sum of row lane / 2. */
__device__ __forceinline__ float sum_of_row(float v[ROWS_OF_WARP]) {
    fold<ROWS_OF_WARP / 2, 16, 2>(v);
    return v[0] + __shfl_xor_sync(~0u, v[0], 1);
}

/* A lane's columns of the sums over the warp's rows. */
struct column_sums {
    float of[SUMS][8];
};

/* What the rows add to the sums of gain and bias; gives the two sums of each row, those of u = gain
 * dy and of u with the normalised z. */
template <int RANKS>
__device__ __forceinline__ void first_pass(const row_product<RANKS, true> &p, int first,
                                           const float gain[8], column_sums *sums) {
    const int lane = (int)threadIdx.x % 32;
    float sum_u[ROWS_OF_WARP], sum_ux[ROWS_OF_WARP];
#pragma unroll
    for (int i = 0; i < ROWS_OF_WARP; i++) {
        const float4 row = *of_row(p.s, first + i);
        float dy[8], z[8];
        load8(p.piece_at(DY, first + i), true, 8, dy);
        load8(p.piece_at(Z, first + i), true, 8, z);
        sum_u[i] = sum_ux[i] = 0.0f;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const float xhat = fmaf(z[k], row.x, row.y), u = gain[k] * dy[k];
            sums->of[GAIN][k] = fmaf(dy[k], xhat, sums->of[GAIN][k]);
            sums->of[BIAS][k] += dy[k];
            sum_u[i] += u;
            sum_ux[i] = fmaf(u, xhat, sum_ux[i]);
        }
    }
    const float u = sum_of_row(sum_u), ux = sum_of_row(sum_ux);
    if (lane % 2 == 0) p.give(0, first + lane / 2, u), p.give(1, first + lane / 2, ux);
}

/* What makes dz = rstd (u - mean(u) - xhat mean(u xhat)) of u and z: x u + y z plus the third. */
template <int RANKS>
__device__ __forceinline__ void prepare_second(const row_product<RANKS, true> &p, int first,
                                               int width) {
    const int lane = (int)threadIdx.x % 32;
    p.take(0);
    p.take(1);
    if (lane < ROWS_OF_WARP) {
        const float4 row = *of_row(p.s, first + lane);
        const float mean_u = p.taken(0, first + lane) / (float)width;
        const float mean_ux = p.taken(1, first + lane) / (float)width;
        *of_row(p.s, first + lane) = make_float4(row.x, -row.x * row.x * mean_ux,
                                                 -row.x * fmaf(row.y, mean_ux, mean_u), 0.0f);
    }
    __syncwarp();
}

/* What goes to x and to the branch, several rows at a time. */
template <int RANKS>
__device__ __forceinline__ void second_pass(const bwd_args<bf16> &j,
                                            const row_product<RANKS, true> &p, int first,
                                            const float gain[8], column_sums *sums) {
    constexpr int TOGETHER = 4;
    const int lane = (int)threadIdx.x % 32, column = p.rank * ROWS_WIDE + lane * 8;
    const float r = coef_number(j.step, j.coef[0]), a = coef_number(j.step, j.coef[1]);
    const float kept = a * (j.drop.threshold == 0 ? 1.0f : j.drop.scale);
#pragma unroll 1
    for (int i = first; i < first + ROWS_OF_WARP; i += TOGETHER) {
        raw8<bf16> dy[TOGETHER], z[TOGETHER];
        float4 row[TOGETHER];
        uint32_t bits[TOGETHER];
#pragma unroll
        for (int q = 0; q < TOGETHER; q++) {
            dy[q].load(p.piece_at(DY, i + q), true, 8);
            z[q].load(p.piece_at(Z, i + q), true, 8);
            row[q] = *of_row(p.s, i + q);
            bits[q] = p.s->keeps[i + q][lane / 4] >> lane % 4 * 8;
        }
#pragma unroll
        for (int q = 0; q < TOGETHER; q++) {
            float u[8], x[8], df[8];
            dy[q].get(u), z[q].get(x);
#pragma unroll
            for (int k = 0; k < 8; k++) {
                const float dz = fmaf(u[k] * gain[k], row[q].x, fmaf(x[k], row[q].y, row[q].z));
                x[k] = dz * r;
                df[k] = bits[q] & 1u << k ? dz * kept : 0.0f;
                sums->of[BRANCH][k] += df[k]; /* where only dx is wanted, they are the same */
            }
            const int64_t at = p.row + i + q;
            if (at >= j.rows.capacity) continue;
            if (j.out[0]) store8(j.out[0] + at * j.ld_out[0] + column, true, 8, x);
            if (j.out[1]) store8(j.out[1] + at * j.ld_out[1] + column, true, 8, df);
        }
    }
}

/* A block's sums, warp by warp: in the place of the last step, behind which nothing came. */
template <int RANKS>
__device__ __forceinline__ float *sums_of(const row_product<RANKS, true> &p, int which, int warp) {
    float *all = reinterpret_cast<float *>(&p.s->slot[(p.m.steps + 3) % ROWS_SLOTS]);
    return all + (which * (ROWS_MULTIPLIERS / 32) + warp) * ROWS_WIDE;
}

template <int RANKS>
__device__ __forceinline__ void put_sums(const row_product<RANKS, true> &p,
                                         const column_sums &sums) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll
    for (int q = 0; q < SUMS; q++) store8(sums_of(p, q, warp) + lane * 8, true, 8, sums.of[q]);
}

/* Adds the sums of all warps and puts them into the block's row of parts. */
template <int RANKS>
__device__ __forceinline__ void write_sums(const bwd_args<bf16> &j,
                                           const row_product<RANKS, true> &p) {
    const int column = (int)threadIdx.x;
#pragma unroll
    for (int q = 0; q < SUMS; q++) {
        if (!j.parts[q]) continue;
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < ROWS_MULTIPLIERS / 32; w++) total += sums_of(p, q, w)[column];
        j.parts[q][(int64_t)blockIdx.y * j.width + p.rank * ROWS_WIDE + column] = total;
    }
}

/* From the product to the gradients. */
template <int RANKS>
__device__ __forceinline__ void join_rows(const fused_args &a, const row_product<RANKS, true> &p) {
    const int lane = (int)threadIdx.x % 32, first = (int)threadIdx.x / 32 * ROWS_OF_WARP;
    column_sums sums;
    float gain[8];
#pragma unroll
    for (int q = 0; q < SUMS; q++) fill8(sums.of[q], 0.0f);
    load8(&p.s->vector[NORM_GAIN][lane * 8], true, 8, gain);
    if (a.writes_dy) {
        p.rows_are_down();
        p.write(a.dy, DY, 0);
    }
    first_pass(p, first, gain, &sums);
    prepare_second(p, first, a.join.width);
    second_pass(a.join, p, first, gain, &sums);
    put_sums(p, sums);
    multipliers_wait();
    write_sums(a.join, p);
    if (a.writes_dy) p.writes_wait(); /* before the block's memory is another's */
}

template <int RANKS>
__global__ void __cluster_dims__(RANKS, 1, 1) __launch_bounds__(ROWS_THREADS, 1)
    linear_join_bwd_kernel(const __grid_constant__ fused_args a) {
    extern __shared__ char memory[];
    row_shared *s = row_shared_of(memory);
    const row_product<RANKS, true> p(s, a.maps);
    if (p.multiplies()) {
        take_registers();
        float c[ROWS_WIDE / 8][4];
        p.multiply(c);
        prepared_wait(); /* and sums may go to where the last step was */
        put_down(p, c);
        join_rows(a, p);
    } else {
        give_registers();
        if (p.fetches()) p.fetch_all();
        if (p.preparer() >= 0) {
            prepare(a.join, s, p.preparer(), p.row, p.rank);
            prepared_arrive();
        }
    }
    __syncwarp();
    cluster_wait();
}

template <int RANKS>
fth_err launch(const fth_cuda_call *c, const fth_linear_join *l, const bwd_args<bf16> &join) {
    fused_args a = {};
    const int64_t rows = l->x->rows;
    const int width = join.width;
    a.join = join;
    a.maps.steps = l->w->rows / TILE;
    a.maps.comes[DY] = l->addend != nullptr, a.maps.comes[Z] = true;
    FTH_TRY(row_map_a(&a.maps.a, RANKS, data_of<bf16>(l->x), l->x->ld, rows, l->x->width));
    FTH_TRY(row_map_b(&a.maps.b, true, data_of<bf16>(l->w), l->w->ld, l->w->rows, width));
    if (l->addend)
        FTH_TRY(
            row_map_tile(&a.maps.behind[DY], data_of<bf16>(l->addend), l->addend->ld, rows, width));
    FTH_TRY(row_map_tile(&a.maps.behind[Z], join.z, join.ld_z, rows, width));
    a.writes_dy = l->keeps;
    if (a.writes_dy) FTH_TRY(row_map_tile(&a.dy, join.dy, join.ld_dy, rows, width));
    return launch_rows(c->stream, linear_join_bwd_kernel<RANKS>, a, rows, width);
}
} // namespace

fth_err fth_cuda_linear_join_wgmma_bwd(const fth_cuda_call *c, const fth_linear_join *l,
                                       const bwd_args<bf16> &join) {
    switch (join.width / ROWS_WIDE) {
    case 1: return launch<1>(c, l, join);
    case 2: return launch<2>(c, l, join);
    default: return launch<4>(c, l, join);
    }
}
