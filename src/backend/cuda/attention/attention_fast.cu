/* attention_fast.cu: o = softmax(q k^T * scale) v for bf16 by tensor cores. Reads q, k, v once per
 * tile of queries, writes o and one number per query and head; 4 Rq K d operations (K: keys a query
 * sees). A block does TILE queries of one head, a warp 16 of them, and walks over the keys of all
 * sentences in its tile in steps of TILE, keeping softmax's running maximum and sum: no scores are
 * stored. The next keys and values are copied while these are worked on. */
#include "backend/cuda/attention/attention.cuh"
#include "backend/cuda/product/mma.cuh"

namespace {
enum { TILE = 64, THREADS = 128 };

/* The running softmax of a thread's two rows, in powers of 2. */
struct running {
    float highest[2], sum[2]; /* sum: of this thread's columns only */
};

/* Turns scores into probabilities before division by their sum, and o's scale along. */
template <int COLUMNS>
__device__ __forceinline__ void soften(float (*p)[4], float (*o)[4], running *r, float scale,
                                       int key, const int2 seen[2]) {
    const int t = (int)threadIdx.x % 4;
    float highest[2] = {r->highest[0], r->highest[1]};
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int column = key + n * 8 + t * 2 + i % 2;
            const int2 range = seen[i / 2];
            p[n][i] = column >= range.x && column < range.y ? p[n][i] * scale : -INFINITY;
            highest[i / 2] = fmaxf(highest[i / 2], p[n][i]);
        }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        highest[h] = fmaxf(highest[h], __shfl_xor_sync(~0u, highest[h], 1));
        highest[h] = fmaxf(highest[h], __shfl_xor_sync(~0u, highest[h], 2));
        /* A row that has seen no key yet: anything finite will do. */
        const float from = highest[h] == -INFINITY ? 0.0f : highest[h];
        const float factor = exp2_fast(r->highest[h] - from);
        r->highest[h] = highest[h];
        r->sum[h] *= factor;
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; n++) o[n][2 * h] *= factor, o[n][2 * h + 1] *= factor;
        highest[h] = from;
    }
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            p[n][i] = exp2_fast(p[n][i] - highest[i / 2]);
            r->sum[i / 2] += p[n][i];
        }
}

/* Dropout of the probabilities of a thread's rows. Columns that a row does not see have some
 * element too, but their probability is 0. */
__device__ __forceinline__ void drop_probabilities(const attention_shape &s, float (*p)[4],
                                                   int head, const int row[2], int key,
                                                   const int2 seen[2]) {
    const int column = key + (int)threadIdx.x % 4 * 2;
    const uint64_t e0 = probability_element(s, row[0], head, column - seen[0].x);
    const uint64_t e1 = probability_element(s, row[1], head, column - seen[1].x);
    const uint32_t mask = keep_mask(s.step, s.threshold, s.site, e0, e1, 1, TILE / 8);
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) p[n][i] *= mask >> (4 * n + i) & 1 ? s.kept : 0.0f;
}

template <int COLUMNS> __device__ void zero_tail(const attention_args &a, int head, int64_t row0) {
    const attention_shape &s = a.s;
    const int pieces = s.head / 8;
    for (int k = threadIdx.x; k < TILE * pieces; k += THREADS) {
        const int64_t row = row0 + k / pieces;
        if (row < s.q_rows.capacity)
            *reinterpret_cast<uint4 *>(a.o + row * a.ld_o + head * s.head + k % pieces * 8) =
                make_uint4(0, 0, 0, 0);
    }
    const int64_t row = row0 + threadIdx.x;
    if (a.lse && threadIdx.x < TILE && row < s.q_rows.capacity) a.lse[row * a.ld_lse + head] = 0.0f;
}

template <int COLUMNS> __global__ void __launch_bounds__(THREADS) fast_kernel(attention_args a) {
    extern __shared__ __align__(16) char memory[];
    constexpr int SIZE = TILE * tile<COLUMNS>::PITCH;                             /* of a tile */
    bf16 *q = reinterpret_cast<bf16 *>(memory), *k = q + SIZE, *v = k + 2 * SIZE; /* two of each */
    const attention_shape &s = a.s;
    const int head = blockIdx.y, first = head * s.head, pieces = s.head / 8;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int row0 = (int)blockIdx.x * TILE, rows = (int)rows_now(s.step, s.q_rows);
    if (row0 >= rows) {
        zero_tail<COLUMNS>(a, head, row0);
        return;
    }
    const int row1 = min(row0 + TILE, rows);
    const int begin = keys_of(s, row0).x, end = keys_of(s, row1 - 1).y;
    const int row[2] = {row0 + warp * 16 + lane / 4, row0 + warp * 16 + lane / 4 + 8};
    int2 seen[2];
#pragma unroll
    for (int h = 0; h < 2; h++) seen[h] = row[h] < row1 ? keys_of(s, row[h]) : make_int2(0, 0);

    tile<COLUMNS>::template fetch<TILE, THREADS>(q, a.q + first, a.ld_q, row0, row1, pieces);
    tile<COLUMNS>::template fetch<TILE, THREADS>(k, a.k + first, a.ld_k, begin, end, pieces);
    tile<COLUMNS>::template fetch<TILE, THREADS>(v, a.v + first, a.ld_v, begin, end, pieces);
    copies_commit();
    float o[COLUMNS / 8][4] = {};
    running r = {{-INFINITY, -INFINITY}, {0.0f, 0.0f}};
    const float scale = s.scale * 1.44269504f;
    for (int key = begin, stage = 0; key < end; key += TILE, stage ^= 1) {
        const int next = key + TILE;
        if (next < end) {
            bf16 *to_k = k + (stage ^ 1) * SIZE, *to_v = v + (stage ^ 1) * SIZE;
            tile<COLUMNS>::template fetch<TILE, THREADS>(to_k, a.k + first, a.ld_k, next, end,
                                                         pieces);
            tile<COLUMNS>::template fetch<TILE, THREADS>(to_v, a.v + first, a.ld_v, next, end,
                                                         pieces);
        }
        copies_commit();
        copies_wait<1>(); /* all but those of the next keys */
        __syncthreads();
        float p[TILE / 8][4] = {};
        times_turned<COLUMNS, TILE>(p, q, warp * 16, k + stage * SIZE);
        soften<COLUMNS>(p, o, &r, scale, key, seen);
        if (s.threshold) drop_probabilities(s, p, head, row, key, seen);
        times<COLUMNS, TILE>(o, p, v + stage * SIZE);
        __syncthreads(); /* the tiles may be overwritten */
    }
    copies_wait<0>();
    __syncthreads();
    float factor[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        r.sum[h] += __shfl_xor_sync(~0u, r.sum[h], 1);
        r.sum[h] += __shfl_xor_sync(~0u, r.sum[h], 2);
        factor[h] = r.sum[h] > 0.0f ? 1.0f / r.sum[h] : 0.0f;
        if (a.lse && lane % 4 == 0 && row[h] < s.q_rows.capacity)
            a.lse[row[h] * a.ld_lse + head] =
                row[h] < row1 ? 0.69314718f * (r.highest[h] + log2f(r.sum[h])) : 0.0f;
    }
    write_rows<COLUMNS>(o, factor, q + warp * 16 * tile<COLUMNS>::PITCH, a.o + first, a.ld_o,
                        row0 + warp * 16, s.q_rows.capacity, pieces);
}

template <int COLUMNS> fth_err launch(const fth_cuda_call *c, const attention_args &a) {
    const int bytes = 5 * TILE * tile<COLUMNS>::PITCH * (int)sizeof(bf16);
    const dim3 blocks(ceil_div(a.s.q_rows.capacity, TILE), a.s.heads);
    if (blocks.x == 0) return FTH_OK;
    CUDA_TRY(cudaFuncSetAttribute(fast_kernel<COLUMNS>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  bytes),
             "asking for shared memory");
    fast_kernel<COLUMNS><<<blocks, THREADS, bytes, c->stream>>>(a);
    return fth_cuda_launched();
}
} // namespace

fth_err fth_cuda_attention_fast(const fth_cuda_call *c, const attention_shape *s) {
    const attention_args a = fth_cuda_attention_args(c, s);
    return s->head <= 64 ? launch<64>(c, a) : launch<128>(c, a);
}
