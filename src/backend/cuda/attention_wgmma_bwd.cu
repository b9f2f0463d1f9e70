/* attention_wgmma_bwd.cu: dq, dk, dv for bf16, as attention_fast_bwd.cu, by the products of sm_90a.
 * A first kernel has a block per tile of queries, walks over their keys and gives dq. A second one
 * has a block per tile of keys, walks over the queries that see them and gives dk and dv. Each output
 * has one writer and sums have a fixed order; the price is 7 products instead of 5. Where the
 * sentences of a tile of queries are those of a tile of keys, the first kernel gives dk and dv too,
 * with 5 products. */
#include "backend/cuda/attention.cuh"
#include "backend/cuda/wgmma.cuh"

namespace {
enum { QUERY_BLOCKS = 4, KEY_BLOCKS = 3 }; /* on a multiprocessor */

struct wgmma_args : attention_bwd_args {
    float2 *stats; /* [heads, q rows] of every query and head: lse in powers of 2, <do, o> */
};

/* ---- what both kernels share ---- */

/* Whether the sentences of the tile of queries that begins at `row` lie in it whole, and their keys
 * are the tile of keys there; also of a tile behind all of them. */
__device__ __forceinline__ bool is_closed(const attention_shape &s, int row, int q_rows,
                                          int k_rows) {
    const int q_end = min(row + TILE, q_rows), k_end = min(row + TILE, k_rows);
    if (row >= s.q_rows.capacity) return false; /* there is no such tile of queries */
    if (row >= q_rows && row >= k_rows) return true;
    if (row >= q_rows || row >= k_rows) return false;
    const int low = s.q_sentence[row], high = s.q_sentence[q_end - 1];
    return s.q_offsets[low] == row && s.q_offsets[high + 1] == q_end && s.k_offsets[low] == row &&
           s.k_offsets[high + 1] == k_end;
}

/* Products of a tile's rows with another's: scores in s, dp when it has been waited for. */
__device__ __forceinline__ void begin_scores(float (*s)[4], float (*dp)[4], const bf16 *left_s,
                                             const bf16 *right_s, const bf16 *left_dp,
                                             const bf16 *right_dp) {
    products_begin();
    multiply_turned(s, left_s, right_s);
    products_commit();
    multiply_turned(dp, left_dp, right_dp);
    products_commit();
    products_wait<1>();
    settle(s);
}

/* From scores and dp of a tile's rows: p and ds, in place. A row of the tile sees columns
 * [seen.x, seen.y); stats(i, n) are those of the query of number i of accumulator n, which is its
 * row or its column. */
template <bool BORDER, class Stats>
__device__ __forceinline__ void differentiate(float (*p)[4], float (*dp)[4], float scale,
                                              int column0, const int2 seen[2], Stats stats) {
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            p[n][i] = exp2_fast(fmaf(p[n][i], scale, -stats(i, n).x));
            if (BORDER && !is_seen(seen[i / 2], column0, n, i)) p[n][i] = 0.0f;
        }
    products_wait<0>();
    settle(dp);
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) dp[n][i] = p[n][i] * (dp[n][i] - stats(i, n).y);
}

/* ---- dq ---- */

/* lse in powers of 2 and <do, o> of a query, made by four threads. */
__device__ __forceinline__ float2 stats_of(const wgmma_args &a, int64_t row, int head, bool real) {
    const int t = (int)threadIdx.x % 4, first = head * a.s.head;
    float sum = 0.0f;
    for (int piece = t; real && piece < a.s.head / 8; piece += 4) {
        float x[8], y[8];
        load8(a.d_o + row * a.ld_do + first + piece * 8, true, 8, x);
        load8(a.o + row * a.ld_o + first + piece * 8, true, 8, y);
#pragma unroll
        for (int i = 0; i < 8; i++) sum += x[i] * y[i];
    }
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    const float2 stats = make_float2(real ? a.lse[row * a.ld_lse + head] * 1.44269504f : 0.0f, sum);
    if (real && t == 0) a.stats[head * a.s.q_rows.capacity + row] = stats;
    return stats;
}

/* What a thread knows of its two queries. */
struct query_rows {
    int2 seen[2];
    float2 stats[2];
};

__device__ __forceinline__ query_rows query_rows_of(const wgmma_args &a, int row0, int rows,
                                                    int head) {
    query_rows r;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = row0 + warp * 16 + lane / 4 + h * 8;
        r.seen[h] = row < rows ? keys_of(a.s, row) : make_int2(0, 0);
        r.stats[h] = stats_of(a, row, head, row < rows);
    }
    return r;
}

/* p and ds of a block's queries and the keys of a tile that begins at `key`; full: all are seen. */
__device__ __forceinline__ void differentiate_rows(const attention_shape &s, const query_rows &r,
                                                   float (*p)[4], float (*dp)[4], const bf16 *q,
                                                   const bf16 *k, const bf16 *d_o, const bf16 *v,
                                                   int key, bool full) {
    begin_scores(p, dp, q, k, d_o, v);
    const float scale = s.scale * 1.44269504f;
    const auto of_row = [&](int i, int) { return r.stats[i / 2]; };
    if (full)
        differentiate<false>(p, dp, scale, key, r.seen, of_row);
    else
        differentiate<true>(p, dp, scale, key, r.seen, of_row);
}

/* All gradients of a closed tile. */
__device__ __forceinline__ void closed_tile(const wgmma_args &a, bf16 *q, int row0, int rows,
                                            int head) {
    const attention_shape &s = a.s;
    const int first = head * s.head, pieces = s.head / 8;
    const int k_rows = (int)rows_now(s.step, s.k_rows);
    bf16 *d_o = q + TILE_SIZE, *k = d_o + TILE_SIZE, *v = k + TILE_SIZE;
    feed(a.q + first, a.ld_q, row0, pieces).next(q, a.ld_q, rows - row0);
    feed(a.k + first, a.ld_k, row0, pieces).next(k, a.ld_k, k_rows - row0);
    feed(a.v + first, a.ld_v, row0, pieces).next(v, a.ld_v, k_rows - row0);
    feed(a.d_o + first, a.ld_do, row0, pieces).next(d_o, a.ld_do, rows - row0);
    copies_commit();
    const query_rows r = query_rows_of(a, row0, rows, head);
    receive();
    __syncthreads();
    float p[TILE / 8][4], dp[TILE / 8][4], sum[TILE / 8][4] = {}; /* sum: dq, dk, dv in turn */
    differentiate_rows(s, r, p, dp, q, k, d_o, v, row0, false);
    const left p_left = left_of(p), ds_left = left_of(dp);
    const float one[2] = {1.0f, 1.0f}, scales[2] = {s.scale, s.scale};
    products_begin();
    multiply(sum, ds_left, k);
    products_end(sum);
    __syncthreads(); /* k and v have been read */
    write_left(ds_left, v);
    write_tile(sum, scales, k, a.dq + first, a.ld_dq, row0, s.q_rows.capacity, pieces);
    write_left(p_left, k);
    publish();
    __syncthreads();
    products_begin();
    turned_multiply(sum, v, q);
    products_end(sum);
    __syncthreads(); /* q has been read */
    write_tile(sum, scales, q, a.dk + first, a.ld_dk, row0, s.k_rows.capacity, pieces);
    products_begin();
    turned_multiply(sum, k, d_o);
    products_end(sum);
    write_tile(sum, one, q, a.dv + first, a.ld_dv, row0, s.k_rows.capacity, pieces);
}

__global__ void __launch_bounds__(THREADS, QUERY_BLOCKS) query_kernel(wgmma_args a) {
    extern __shared__ __align__(1024) char memory[];
    const attention_shape &s = a.s;
    const int head = blockIdx.y, first = head * s.head, pieces = s.head / 8;
    bf16 *q = reinterpret_cast<bf16 *>(memory), *d_o = q + TILE_SIZE;
    bf16 *k = d_o + TILE_SIZE, *v = k + 2 * TILE_SIZE; /* two of each */
    /* The last first: they see the most keys where none looks ahead. */
    const int row0 = (int)(gridDim.x - 1 - blockIdx.x) * TILE;
    const int rows = (int)rows_now(s.step, s.q_rows);
    if (is_closed(s, row0, rows, (int)rows_now(s.step, s.k_rows))) {
        closed_tile(a, q, row0, rows, head);
        return;
    }
    const span mine = key_span(s, row0, min(row0 + TILE, rows));
    const int begin = mine.any.x, end = mine.any.y;
    feed keys(a.k + first, a.ld_k, begin, pieces), values(a.v + first, a.ld_v, begin, pieces);
    auto fetch_keys = [&](int key, int stage) {
        if (key < end) {
            keys.next(k + stage * TILE_SIZE, a.ld_k, end - key);
            values.next(v + stage * TILE_SIZE, a.ld_v, end - key);
        }
        copies_commit();
    };
    feed(a.q + first, a.ld_q, row0, pieces).next(q, a.ld_q, rows - row0);
    feed(a.d_o + first, a.ld_do, row0, pieces).next(d_o, a.ld_do, rows - row0);
    fetch_keys(begin, 0);
    const query_rows r = query_rows_of(a, row0, rows, head);
    float dq[TILE / 8][4] = {};
    for (int key = begin, stage = 0; key < end; key += TILE, stage ^= 1) {
        receive();
        __syncthreads(); /* these keys are there, and those before them are no longer needed */
        fetch_keys(key + TILE, stage ^ 1);
        const bf16 *k_now = k + stage * TILE_SIZE, *v_now = v + stage * TILE_SIZE;
        float p[TILE / 8][4], dp[TILE / 8][4];
        differentiate_rows(s, r, p, dp, q, k_now, d_o, v_now, key, covers(mine, key));
        const left ds = left_of(dp);
        products_begin();
        multiply(dq, ds, k_now);
        products_end(dq);
    }
    receive();
    __syncthreads();
    const float scales[2] = {s.scale, s.scale};
    write_tile(dq, scales, q, a.dq + first, a.ld_dq, row0, s.q_rows.capacity, pieces);
}

/* ---- dk and dv ---- */

__global__ void __launch_bounds__(THREADS, KEY_BLOCKS) key_kernel(wgmma_args a) {
    extern __shared__ __align__(1024) char memory[];
    const attention_shape &s = a.s;
    const int head = blockIdx.y, first = head * s.head, pieces = s.head / 8;
    const int thread = (int)threadIdx.x, lane = thread % 32;
    bf16 *k = reinterpret_cast<bf16 *>(memory), *v = k + TILE_SIZE;
    bf16 *q = v + TILE_SIZE, *d_o = q + 2 * TILE_SIZE;               /* two of each */
    float2 *stats = reinterpret_cast<float2 *>(d_o + 2 * TILE_SIZE); /* [2, TILE] */
    const int row0 = (int)blockIdx.x * TILE, rows = (int)rows_now(s.step, s.k_rows);
    if (is_closed(s, row0, (int)rows_now(s.step, s.q_rows), rows)) return; /* made already */
    const span mine = query_span(s, row0, min(row0 + TILE, rows));
    const int begin = mine.any.x, end = mine.any.y;
    int2 seen[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = row0 + thread / 32 * 16 + lane / 4 + h * 8;
        seen[h] = row < rows ? queries_of(s, row) : make_int2(0, 0);
    }
    feed queries(a.q + first, a.ld_q, begin, pieces);
    feed gradients(a.d_o + first, a.ld_do, begin, pieces);
    auto fetch_queries = [&](int query, int stage) {
        if (query < end) {
            queries.next(q + stage * TILE_SIZE, a.ld_q, end - query);
            gradients.next(d_o + stage * TILE_SIZE, a.ld_do, end - query);
            const bool valid = query + thread < end;
            if (thread < TILE)
                copy8(stats + stage * TILE + thread,
                      a.stats + head * s.q_rows.capacity + (valid ? query + thread : 0), valid);
        }
        copies_commit();
    };
    feed(a.k + first, a.ld_k, row0, pieces).next(k, a.ld_k, rows - row0);
    feed(a.v + first, a.ld_v, row0, pieces).next(v, a.ld_v, rows - row0);
    fetch_queries(begin, 0);
    float dk[TILE / 8][4] = {}, dv[TILE / 8][4] = {};
    const float scale = s.scale * 1.44269504f;
    for (int query = begin, stage = 0; query < end; query += TILE, stage ^= 1) {
        receive();
        __syncthreads(); /* these queries are there, and those before them no longer needed */
        fetch_queries(query + TILE, stage ^ 1);
        const bf16 *q_now = q + stage * TILE_SIZE, *do_now = d_o + stage * TILE_SIZE;
        float p[TILE / 8][4], dp[TILE / 8][4];
        begin_scores(p, dp, k, q_now, v, do_now);
        const float2 *now = stats + stage * TILE + lane % 4 * 2;
        const auto of_column = [&](int i, int n) { return now[n * 8 + i % 2]; };
        if (covers(mine, query))
            differentiate<false>(p, dp, scale, query, seen, of_column);
        else
            differentiate<true>(p, dp, scale, query, seen, of_column);
        const left p_left = left_of(p), ds_left = left_of(dp);
        products_begin();
        multiply(dv, p_left, do_now);
        multiply(dk, ds_left, q_now);
        products_end(dv);
        settle(dk);
    }
    receive();
    __syncthreads();
    const float one[2] = {1.0f, 1.0f}, scales[2] = {s.scale, s.scale};
    write_tile(dk, scales, k, a.dk + first, a.ld_dk, row0, s.k_rows.capacity, pieces);
    write_tile(dv, one, v, a.dv + first, a.ld_dv, row0, s.k_rows.capacity, pieces);
}
} // namespace

fth_err fth_cuda_attention_wgmma_bwd(const fth_cuda_call *c, const attention_shape *s) {
    const wgmma_args a = {fth_cuda_attention_bwd_args(c, s), (float2 *)c->scratch};
    const int bytes = 6 * TILE_SIZE * (int)sizeof(bf16);
    FTH_TRY(launch_tiles(c, query_kernel, a, s->q_rows.capacity, bytes));
    return launch_tiles(c, key_kernel, a, s->k_rows.capacity,
                        bytes + 2 * TILE * (int)sizeof(float2));
}
