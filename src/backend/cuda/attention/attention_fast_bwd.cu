/* attention_fast_bwd.cu: dq, dk, dv for bf16 by tensor cores; scores are made again from q, k and
 * the stored log-sum (doc/mathematics.md#sub-layers): p = exp(s - lse), dp = do v^T,
 * ds = p (dp - <do, o>),
 * dq = scale ds k, dk = scale ds^T q, dv = p^T do.
 * One launch has two kinds of blocks: one per tile of keys walks over the queries that see them and
 * gives dk and dv; one per tile of queries walks over their keys and gives dq. Each output has one
 * writer and sums have a fixed order, so nothing is atomic; the price is 7 products instead of 5,
 * 14 Rq K d operations in all. */
#include "backend/cuda/attention/attention.cuh"
#include "backend/cuda/product/mma.cuh"

namespace {
enum { TILE = 64, THREADS = 128 };

struct fast_args : attention_bwd_args {
    float *delta; /* [q rows, heads] <do, o> of every query and head */
};

/* ---- <do, o> ---- */

/* Eight threads a query and head. */
__global__ void __launch_bounds__(256) delta_kernel(fast_args a) {
    const attention_shape &s = a.s;
    const uint32_t i = (blockIdx.x * 256 + threadIdx.x) / 8, lane = threadIdx.x % 8;
    const uint32_t row = i / (uint32_t)s.heads, head = i % (uint32_t)s.heads;
    const bool real = row < rows_now(s.step, s.q_rows);
    float sum = 0.0f;
    for (int piece = (int)lane; real && piece < s.head / 8; piece += 8) {
        float x[8], y[8];
        load8(a.d_o + row * a.ld_do + head * s.head + piece * 8, true, 8, x);
        load8(a.o + row * a.ld_o + head * s.head + piece * 8, true, 8, y);
#pragma unroll
        for (int k = 0; k < 8; k++) sum += x[k] * y[k];
    }
#pragma unroll
    for (int k = 4; k > 0; k >>= 1) sum += __shfl_xor_sync(~0u, sum, k);
    if (lane == 0 && row < s.q_rows.capacity) a.delta[row * s.heads + head] = sum;
}

/* ---- what both kinds of blocks share ---- */

/* Rows [row0, row0 + TILE) of a head of x become 0. */
__device__ void zero_rows(const attention_shape &s, bf16 *x, int64_t ld, int head, int64_t row0,
                          int64_t capacity) {
    const int pieces = s.head / 8;
    for (int k = threadIdx.x; k < TILE * pieces; k += THREADS) {
        const int64_t row = row0 + k / pieces;
        if (row < capacity)
            *reinterpret_cast<uint4 *>(x + row * ld + head * s.head + k % pieces * 8) =
                make_uint4(0, 0, 0, 0);
    }
}

/* From scores and dp of a 16 x N piece: p (dropped, for dv) and ds, in place. A row of the piece
 * sees columns [seen.x, seen.y); lse (in powers of 2) and delta belong to its queries: by row in dq
 * blocks, by column in dk blocks. */
template <int N, class Lse, class Delta>
__device__ __forceinline__ void differentiate(float (*p)[4], float (*dp)[4], float scale,
                                              int column0, const int2 seen[2], bool drops,
                                              uint32_t mask, float kept, Lse lse, Delta delta) {
    const int t = (int)threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int at = n * 8 + t * 2 + i % 2, column = column0 + at;
            const int2 range = seen[i / 2];
            const bool visible = column >= range.x && column < range.y;
            const float x = visible ? exp2_fast(p[n][i] * scale - lse(i / 2, at)) : 0.0f;
            const float factor = !drops ? 1.0f : mask >> (4 * n + i) & 1 ? kept : 0.0f;
            p[n][i] = x * factor;
            dp[n][i] = x * (dp[n][i] * factor - delta(i / 2, at));
        }
}

/* ---- dk and dv ---- */

/* STEP queries at a time. */
template <int COLUMNS, int STEP>
__device__ __forceinline__ void key_block(const fast_args &a, bf16 *memory) {
    constexpr int PITCH = tile<COLUMNS>::PITCH, SIZE = TILE * PITCH, HALF = STEP * PITCH;
    const attention_shape &s = a.s;
    bf16 *k = memory, *v = k + SIZE, *q = v + SIZE, *d_o = q + 2 * HALF; /* q, do: two of each */
    __shared__ float lse[2][STEP], delta[2][STEP];
    const int head = blockIdx.y, first = head * s.head, pieces = s.head / 8;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int row0 = (int)blockIdx.x * TILE, rows = (int)rows_now(s.step, s.k_rows);
    if (row0 >= rows) {
        zero_rows(s, a.dk, a.ld_dk, head, row0, s.k_rows.capacity);
        zero_rows(s, a.dv, a.ld_dv, head, row0, s.k_rows.capacity);
        return;
    }
    const int row1 = min(row0 + TILE, rows);
    const int begin = queries_of(s, row0).x, end = queries_of(s, row1 - 1).y;
    const int row[2] = {row0 + warp * 16 + lane / 4, row0 + warp * 16 + lane / 4 + 8};
    int2 seen[2];
    int index[2]; /* of the key in its sentence */
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const bool real = row[h] < row1;
        seen[h] = real ? queries_of(s, row[h]) : make_int2(0, 0);
        index[h] = real ? row[h] - s.k_offsets[s.k_sentence[row[h]]] : 0;
    }
    auto fetch_queries = [&](int query, int stage) {
        tile<COLUMNS>::template fetch<STEP, THREADS>(q + stage * HALF, a.q + first, a.ld_q, query,
                                                     end, pieces);
        tile<COLUMNS>::template fetch<STEP, THREADS>(d_o + stage * HALF, a.d_o + first, a.ld_do,
                                                     query, end, pieces);
        if (threadIdx.x < STEP) {
            const int64_t i = query + (int)threadIdx.x;
            lse[stage][threadIdx.x] = i < end ? a.lse[i * a.ld_lse + head] * 1.44269504f : 0.0f;
            delta[stage][threadIdx.x] = i < end ? a.delta[i * s.heads + head] : 0.0f;
        }
    };
    tile<COLUMNS>::template fetch<TILE, THREADS>(k, a.k + first, a.ld_k, row0, row1, pieces);
    tile<COLUMNS>::template fetch<TILE, THREADS>(v, a.v + first, a.ld_v, row0, row1, pieces);
    if (begin < end) fetch_queries(begin, 0);
    copies_commit();
    float dk[COLUMNS / 8][4] = {}, dv[COLUMNS / 8][4] = {};
    const float scale = s.scale * 1.44269504f;
    for (int query = begin, stage = 0; query < end; query += STEP, stage ^= 1) {
        if (query + STEP < end) fetch_queries(query + STEP, stage ^ 1);
        copies_commit();
        copies_wait<1>();
        __syncthreads();
        const bf16 *q_now = q + stage * HALF, *do_now = d_o + stage * HALF;
        float p[STEP / 8][4] = {}, dp[STEP / 8][4] = {};
        times_turned<COLUMNS, STEP>(p, k, warp * 16, q_now);
        times_turned<COLUMNS, STEP>(dp, v, warp * 16, do_now);
        uint32_t mask = 0;
        if (s.threshold) {
            const int at = query + lane % 4 * 2;
            mask = keep_mask(
                s.step, s.threshold, s.site, probability_element(s, at, head, index[0]),
                probability_element(s, at, head, index[1]), (uint64_t)s.heads << 16, STEP / 8);
        }
        differentiate<STEP>(
            p, dp, scale, query, seen, s.threshold != 0, mask, s.kept,
            [&](int, int column) { return lse[stage][column]; },
            [&](int, int column) { return delta[stage][column]; });
        times<COLUMNS, STEP>(dv, p, do_now);
        times<COLUMNS, STEP>(dk, dp, q_now);
        __syncthreads();
    }
    copies_wait<0>();
    __syncthreads();
    const float one[2] = {1.0f, 1.0f}, scales[2] = {s.scale, s.scale};
    write_rows<COLUMNS>(dk, scales, k + warp * 16 * PITCH, a.dk + first, a.ld_dk, row0 + warp * 16,
                        s.k_rows.capacity, pieces);
    write_rows<COLUMNS>(dv, one, v + warp * 16 * PITCH, a.dv + first, a.ld_dv, row0 + warp * 16,
                        s.k_rows.capacity, pieces);
}

/* ---- dq ---- */

/* STEP keys at a time. */
template <int COLUMNS, int STEP>
__device__ __forceinline__ void query_block(const fast_args &a, bf16 *memory) {
    constexpr int PITCH = tile<COLUMNS>::PITCH, SIZE = TILE * PITCH, HALF = STEP * PITCH;
    const attention_shape &s = a.s;
    bf16 *q = memory, *d_o = q + SIZE, *k = d_o + SIZE, *v = k + 2 * HALF; /* k, v: two of each */
    const int head = blockIdx.y, first = head * s.head, pieces = s.head / 8;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int row0 = (int)blockIdx.x * TILE, rows = (int)rows_now(s.step, s.q_rows);
    if (row0 >= rows) {
        zero_rows(s, a.dq, a.ld_dq, head, row0, s.q_rows.capacity);
        return;
    }
    const int row1 = min(row0 + TILE, rows);
    const int begin = keys_of(s, row0).x, end = keys_of(s, row1 - 1).y;
    const int row[2] = {row0 + warp * 16 + lane / 4, row0 + warp * 16 + lane / 4 + 8};
    int2 seen[2];
    float lse[2], delta[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const bool real = row[h] < row1;
        seen[h] = real ? keys_of(s, row[h]) : make_int2(0, 0);
        lse[h] = real ? a.lse[row[h] * a.ld_lse + head] * 1.44269504f : 0.0f;
        delta[h] = real ? a.delta[row[h] * s.heads + head] : 0.0f;
    }
    auto fetch_keys = [&](int key, int stage) {
        tile<COLUMNS>::template fetch<STEP, THREADS>(k + stage * HALF, a.k + first, a.ld_k, key,
                                                     end, pieces);
        tile<COLUMNS>::template fetch<STEP, THREADS>(v + stage * HALF, a.v + first, a.ld_v, key,
                                                     end, pieces);
    };
    tile<COLUMNS>::template fetch<TILE, THREADS>(q, a.q + first, a.ld_q, row0, row1, pieces);
    tile<COLUMNS>::template fetch<TILE, THREADS>(d_o, a.d_o + first, a.ld_do, row0, row1, pieces);
    if (begin < end) fetch_keys(begin, 0);
    copies_commit();
    float dq[COLUMNS / 8][4] = {};
    const float scale = s.scale * 1.44269504f;
    for (int key = begin, stage = 0; key < end; key += STEP, stage ^= 1) {
        if (key + STEP < end) fetch_keys(key + STEP, stage ^ 1);
        copies_commit();
        copies_wait<1>();
        __syncthreads();
        const bf16 *k_now = k + stage * HALF, *v_now = v + stage * HALF;
        float p[STEP / 8][4] = {}, dp[STEP / 8][4] = {};
        times_turned<COLUMNS, STEP>(p, q, warp * 16, k_now);
        times_turned<COLUMNS, STEP>(dp, d_o, warp * 16, v_now);
        uint32_t mask = 0;
        if (s.threshold) {
            const int at = key + lane % 4 * 2;
            mask = keep_mask(s.step, s.threshold, s.site,
                             probability_element(s, row[0], head, at - seen[0].x),
                             probability_element(s, row[1], head, at - seen[1].x), 1, STEP / 8);
        }
        differentiate<STEP>(
            p, dp, scale, key, seen, s.threshold != 0, mask, s.kept,
            [&](int h, int) { return lse[h]; }, [&](int h, int) { return delta[h]; });
        times<COLUMNS, STEP>(dq, dp, k_now);
        __syncthreads();
    }
    copies_wait<0>();
    __syncthreads();
    const float scales[2] = {s.scale, s.scale};
    write_rows<COLUMNS>(dq, scales, q + warp * 16 * PITCH, a.dq + first, a.ld_dq, row0 + warp * 16,
                        s.q_rows.capacity, pieces);
}

template <int COLUMNS, int STEP> __global__ void __launch_bounds__(THREADS) fast_bwd(fast_args a) {
    extern __shared__ __align__(16) char memory[];
    if (blockIdx.z == 0)
        key_block<COLUMNS, STEP>(a, reinterpret_cast<bf16 *>(memory));
    else
        query_block<COLUMNS, STEP>(a, reinterpret_cast<bf16 *>(memory));
}

template <int COLUMNS, int STEP> fth_err launch(const fth_cuda_call *c, const fast_args &a) {
    const int bytes = (2 * TILE + 4 * STEP) * tile<COLUMNS>::PITCH * (int)sizeof(bf16);
    const int64_t q = a.s.q_rows.capacity, k = a.s.k_rows.capacity, most = q > k ? q : k;
    if (most == 0) return FTH_OK;
    delta_kernel<<<ceil_div(q * a.s.heads * 8, 256), 256, 0, c->stream>>>(a);
    FTH_TRY(fth_cuda_launched());
    CUDA_TRY(cudaFuncSetAttribute(fast_bwd<COLUMNS, STEP>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "asking for shared memory");
    fast_bwd<COLUMNS, STEP>
        <<<dim3(ceil_div(most, TILE), a.s.heads, 2), THREADS, bytes, c->stream>>>(a);
    return fth_cuda_launched();
}
} // namespace

fth_err fth_cuda_attention_fast_bwd(const fth_cuda_call *c, const attention_shape *s) {
    const fast_args a = {fth_cuda_attention_bwd_args(c, s), (float *)c->scratch};
    return s->head <= 64 ? launch<64, 64>(c, a) : launch<128, 32>(c, a);
}
