/* attention_wgmma.cu: o = softmax(q k^T * scale) v for bf16, as attention_fast.cu, by the products of
 * sm_90a. A block makes a tile of o of one head and walks over the keys of all sentences in it in
 * tiles, keeping softmax's running maximum and sum. Five blocks share a multiprocessor: the tensor
 * cores work for one while another makes exponentials. */
#include "backend/cuda/attention.cuh"
#include "backend/cuda/wgmma.cuh"

namespace {
enum { BLOCKS = 5 }; /* on a multiprocessor */

/* The running softmax of a thread's two rows. */
struct running {
    float highest[2], sum[2]; /* of scores before scale; sum: of this thread's columns only */
};

/* Turns scores into probabilities before division by their sum, and o's scale along. scale is for
 * powers of 2 and positive. */
template <bool BORDER>
__device__ __forceinline__ void soften(float (*p)[4], float (*o)[4], running *r, float scale,
                                       int key, const int2 seen[2]) {
    float from[2], factor[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float highest = r->highest[h];
#pragma unroll
        for (int n = 0; n < TILE / 8; n++)
#pragma unroll
            for (int i = 2 * h; i < 2 * h + 2; i++) {
                if (BORDER && !is_seen(seen[h], key, n, i)) p[n][i] = -INFINITY;
                highest = fmaxf(highest, p[n][i]);
            }
        highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 1));
        highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 2));
        /* A row that has seen no key yet: anything finite will do. */
        from[h] = highest == -INFINITY ? 0.0f : highest * scale;
        factor[h] = exp2_fast(r->highest[h] * scale - from[h]);
        r->highest[h] = highest;
        r->sum[h] *= factor[h];
    }
    if (__any_sync(~0u, factor[0] != 1.0f || factor[1] != 1.0f)) {
#pragma unroll
        for (int n = 0; n < TILE / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) o[n][i] *= factor[i / 2];
    }
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            p[n][i] = exp2_fast(fmaf(p[n][i], scale, -from[i / 2]));
            r->sum[i / 2] += p[n][i];
        }
}

__global__ void __launch_bounds__(THREADS, BLOCKS) wgmma_kernel(attention_args a) {
    extern __shared__ __align__(1024) char memory[];
    const attention_shape &s = a.s;
    const int head = blockIdx.y, first = head * s.head, pieces = s.head / 8;
    const int thread = (int)threadIdx.x, lane = thread % 32;
    bf16 *q = reinterpret_cast<bf16 *>(memory);
    bf16 *k = q + TILE_SIZE, *v = k + 2 * TILE_SIZE; /* two of each */
    /* The last first: they see the most keys where none looks ahead. */
    const int row0 = (int)(gridDim.x - 1 - blockIdx.x) * TILE;
    const int rows = (int)rows_now(s.step, s.q_rows);
    const span mine = key_span(s, row0, min(row0 + TILE, rows));
    const int begin = mine.any.x, end = mine.any.y;
    const int at = row0 + thread / 32 * 16 + lane / 4, row[2] = {at, at + 8};
    int2 seen[2];
#pragma unroll
    for (int h = 0; h < 2; h++) seen[h] = row[h] < rows ? keys_of(s, row[h]) : make_int2(0, 0);

    feed keys(a.k + first, a.ld_k, begin, pieces), values(a.v + first, a.ld_v, begin, pieces);
    auto fetch_keys = [&](int key, int stage) {
        if (key < end) {
            keys.next(k + stage * TILE_SIZE, a.ld_k, end - key);
            values.next(v + stage * TILE_SIZE, a.ld_v, end - key);
        }
        copies_commit();
    };
    feed(a.q + first, a.ld_q, row0, pieces).next(q, a.ld_q, rows - row0);
    fetch_keys(begin, 0);
    float o[TILE / 8][4] = {};
    running r = {{-INFINITY, -INFINITY}, {0.0f, 0.0f}};
    const float scale = s.scale * 1.44269504f;
    for (int key = begin, stage = 0; key < end; key += TILE, stage ^= 1) {
        receive();
        __syncthreads(); /* these keys are there, and those before them are no longer needed */
        fetch_keys(key + TILE, stage ^ 1);
        float p[TILE / 8][4];
        products_begin();
        multiply_turned(p, q, k + stage * TILE_SIZE);
        products_end(p);
        if (covers(mine, key))
            soften<false>(p, o, &r, scale, key, seen);
        else
            soften<true>(p, o, &r, scale, key, seen);
        const left l = left_of(p);
        products_begin();
        multiply(o, l, v + stage * TILE_SIZE);
        products_end(o);
    }
    receive();
    __syncthreads();
    float factor[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        r.sum[h] += __shfl_xor_sync(~0u, r.sum[h], 1);
        r.sum[h] += __shfl_xor_sync(~0u, r.sum[h], 2);
        factor[h] = r.sum[h] > 0.0f ? 1.0f / r.sum[h] : 0.0f;
        if (a.lse && lane % 4 == 0 && row[h] < s.q_rows.capacity)
            a.lse[row[h] * a.ld_lse + head] =
                row[h] < rows ? 0.69314718f * (r.highest[h] * scale + log2f(r.sum[h])) : 0.0f;
    }
    write_tile(o, factor, q, a.o + first, a.ld_o, row0, s.q_rows.capacity, pieces);
}
} // namespace

fth_err fth_cuda_attention_wgmma(const fth_cuda_call *c, const attention_shape *s) {
    const attention_args a = fth_cuda_attention_args(c, s);
    return launch_tiles(c, wgmma_kernel, a, s->q_rows.capacity, 5 * TILE_SIZE * (int)sizeof(bf16));
}
