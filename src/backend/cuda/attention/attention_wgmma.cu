/* attention_wgmma.cu: o = softmax(q k^T * scale) v for bf16, as attention_fast.cu, by the products
 * of sm_90a. A block makes a tile of o of one head and walks over the keys of all sentences in it
 * in tiles, keeping softmax's running maximum and sum; then it goes on with its next tile, which
 * has been fetched meanwhile. Four blocks share a multiprocessor: the tensor cores work for one
 * while another makes exponentials. */
#include "backend/cuda/attention/attention.cuh"
#include "backend/cuda/product/wgmma.cuh"

namespace {
enum { BLOCKS = 4 }; /* on a multiprocessor */

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

struct forward_args : attention_args {
    CUtensorMap q_map, k_map, v_map;
};

/* Starts to fetch what the first step of a round needs. */
struct forward_feed {
    const forward_args &a;
    const walk &way;
    bf16 *q; /* [2, TILE_SIZE] of shared memory */
    const pair_feed &keys;

    __device__ __forceinline__ void first(int round) const {
        if (threadIdx.x != 0) return;
        const place p = way.at(round);
        const bool sees = p.begin < p.end;
        uint64_t *barrier = keys.to.expect(sees ? 3 : 1, way.bytes(round + 1));
        fetch_tile(q + round % 2 * TILE_SIZE, a.q_map, p.row, p.column, barrier);
        if (sees) keys.fetch(p.begin, p.column, barrier);
        way.fetch(round + 1, barrier);
    }
};

/* Writes lse and o of a tile. */
__device__ __forceinline__ void finish(const attention_args &a, const place &p, running r,
                                       const float (*o)[4], float scale, bf16 *through) {
    const int lane = (int)threadIdx.x % 32;
    const int row = p.row + (int)threadIdx.x / 32 * 16 + lane / 4;
    float factor[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        r.sum[h] += __shfl_xor_sync(~0u, r.sum[h], 1);
        r.sum[h] += __shfl_xor_sync(~0u, r.sum[h], 2);
        factor[h] = r.sum[h] > 0.0f ? 1.0f / r.sum[h] : 0.0f;
        const int at = row + h * 8;
        if (a.lse && lane % 4 == 0 && at < a.s.q_rows.capacity)
            a.lse[at * a.ld_lse + p.head] =
                at < p.row_end ? 0.69314718f * (r.highest[h] * scale + log2f(r.sum[h])) : 0.0f;
    }
    write_tile(o, factor, through, a.o + p.column, a.ld_o, p.row, a.s.q_rows.capacity);
}

__global__ void __launch_bounds__(THREADS, BLOCKS)
    wgmma_kernel(const __grid_constant__ forward_args a) {
    extern __shared__ __align__(1024) char memory[];
    __shared__ __align__(16) fth_cuda_tile record[2];
    __shared__ uint64_t barrier[2];
    const attention_shape &s = a.s;
    bf16 *q = reinterpret_cast<bf16 *>(memory), *k = q + 2 * TILE_SIZE, *v = k + 2 * TILE_SIZE;
    const int tiles = fth_cuda_n_tiles((int)s.q_rows.capacity);
    const int mine = (int)threadIdx.x / 32 * 16 + (int)threadIdx.x % 32 / 4; /* row in a tile */
    const float scale = s.scale * 1.44269504f;
    const walk way = {s.tiles.queries, tiles, record};
    way.begin();
    arrivals arrive(barrier);
    const pair_feed keys = {a.k_map, a.v_map, k, v, arrive};
    const forward_feed feed = {a, way, q, keys};
    feed.first(0);
    for (int round = 0; way.has(round); round++) {
        const fth_cuda_tile *about = way.about(round);
        const place now = way.at(round);
        const int2 all_see = make_int2(about->all_begin, about->all_end);
        const bf16 *q_now = q + round % 2 * TILE_SIZE;
        int2 seen[2];
        seen_rows<false>(s, now, about->flags & FTH_CUDA_ONE_SENTENCE, now.row + mine, seen);
        float o[TILE / 8][4] = {};
        running r = {{-INFINITY, -INFINITY}, {0.0f, 0.0f}};
        int key = now.begin;
        do { /* one step even where nothing is seen */
            arrive.next_step();
            const int stage = arrive.stage();
            if (key + TILE < now.end)
                keys.next(key + TILE, now.column);
            else if (way.has(round + 1))
                feed.first(round + 1);
            if (key >= now.end) break;
            float p[TILE / 8][4];
            products_begin();
            multiply_turned(p, q_now, k + stage * TILE_SIZE);
            products_end(p);
            if (covers(all_see, key))
                soften<false>(p, o, &r, scale, key, seen);
            else
                soften<true>(p, o, &r, scale, key, seen);
            const left l = left_of(p);
            products_begin();
            multiply(o, l, v + stage * TILE_SIZE);
            products_end(o);
            key += TILE;
        } while (key < now.end);
        __syncthreads(); /* q has been read */
        finish(a, now, r, o, scale, q + round % 2 * TILE_SIZE);
    }
}
} // namespace

fth_err fth_cuda_attention_wgmma(const fth_cuda_call *c, const attention_shape *s) {
    forward_args a = {};
    static_cast<attention_args &>(a) = fth_cuda_attention_args(c, s);
    const int64_t columns = (int64_t)s->heads * TILE;
    FTH_TRY(fth_cuda_map_tiles(&a.q_map, a.q, a.ld_q, s->q_rows.capacity, columns, TILE));
    FTH_TRY(fth_cuda_map_tiles(&a.k_map, a.k, a.ld_k, s->k_rows.capacity, columns, TILE));
    FTH_TRY(fth_cuda_map_tiles(&a.v_map, a.v, a.ld_v, s->k_rows.capacity, columns, TILE));
    return launch_tiles(c, wgmma_kernel, a, fth_cuda_n_tiles((int32_t)s->q_rows.capacity), BLOCKS,
                        6 * TILE_SIZE * (int)sizeof(bf16));
}
