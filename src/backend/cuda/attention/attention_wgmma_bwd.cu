/* attention_wgmma_bwd.cu: dq, dk, dv for bf16, as attention_fast_bwd.cu, by the products of sm_90a.
 * A first kernel has a block per tile of queries, walks over their keys and gives dq. A second one
 * has a block per tile of keys, walks over the queries that see them and gives dk and dv. Each
 * output has one writer and sums have a fixed order; the price is 7 products instead of 5. Where
 * the sentences of a tile of queries are those of a tile of keys, the first kernel gives dk and dv
 * too, with 5 products. Where dq, dk and dv are columns of one matrix, both kernels sum these up on
 * the way, for the gradient of a bias (bias_sums.cu). */
#include "backend/cuda/attention/attention.cuh"
#include "backend/cuda/join/block_sums.cuh"
#include "backend/cuda/product/wgmma.cuh"

namespace {
enum { QUERY_BLOCKS = 3, KEY_BLOCKS = 3 }; /* on a multiprocessor */
enum { DQ, DK, DV, GRADIENTS };

struct wgmma_args : attention_bwd_args {
    float2 *stats; /* [heads, q rows] of every query and head: lse in powers of 2, <do, o> */
    CUtensorMap q_map, k_map, v_map, do_map, o_map;
    float *sums; /* [blocks of a head, width] of columns, of the present kernel; NULL: not wanted */
    int sums_width, sums_column[GRADIENTS]; /* the first of each */
};

/* ---- what both kernels share ---- */

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

/* A thread's sums of two columns, 2 lane and the one behind it, over the rows of its warp. Those of
 * dk and dv lie in shared memory: registers are scarce. */
struct column_sums {
    float2 dq;
    float2 (*shared)[2][32]; /* [warp][dk, dv][lane] */

    __device__ __forceinline__ float2 *of(int which) {
        return which == DQ ? &dq : &shared[threadIdx.x / 32][which - DK][threadIdx.x % 32];
    }

    __device__ __forceinline__ void begin() {
        for (int k = 0; k < GRADIENTS; k++) *of(k) = make_float2(0.0f, 0.0f);
    }
};

enum { SUMS_BYTES = THREADS / 32 * 2 * TILE * (int)sizeof(float) };

/* The sums of a block, of all warps in order. room [warps][TILE]: nobody uses it any more. */
__device__ __forceinline__ void write_sums(const wgmma_args &a, const column_sums &sums,
                                           float *room) {
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    float *row = a.sums + (int64_t)blockIdx.y * a.sums_width + blockIdx.x * TILE;
    __syncthreads();
    reinterpret_cast<float2 *>(room)[threadIdx.x] = sums.dq;
    __syncthreads();
    if (lane >= TILE / 4) return; /* each warp has a quarter of the columns */
    const int column = warp * (TILE / 4) + lane;
    float sum[GRADIENTS] = {};
    for (int w = 0; w < THREADS / 32; w++) {
        sum[DQ] += room[w * TILE + column];
        for (int k = DK; k < GRADIENTS; k++)
            sum[k] += reinterpret_cast<const float *>(sums.shared[w][k - DK])[column];
    }
    for (int k = 0; k < GRADIENTS; k++) row[a.sums_column[k] + column] = sum[k];
}

/* ---- dq ---- */

/* Starts to fetch what the first step of a round needs. */
struct query_feed {
    const wgmma_args &a;
    const walk &way;
    bf16 *q, *d_o, *o; /* [2, TILE_SIZE] of shared memory each, o [TILE_SIZE] */
    float *lse;        /* [2, TILE] */
    const pair_feed &keys;

    __device__ __forceinline__ void first(int round) const {
        const place p = way.at(round);
        const int slot = round % 2, row = p.row + (int)threadIdx.x;
        if (threadIdx.x < TILE)
            copy_few<4>(lse + slot * TILE + threadIdx.x,
                        a.lse + (row < p.row_end ? row * a.ld_lse + p.head : 0), row < p.row_end);
        if (threadIdx.x != 0) return;
        const bool sees = p.begin < p.end;
        uint64_t *barrier = keys.to.expect(sees ? 5 : 3, way.bytes(round + 1));
        fetch_tile(q + slot * TILE_SIZE, a.q_map, p.row, p.column, barrier);
        fetch_tile(d_o + slot * TILE_SIZE, a.do_map, p.row, p.column, barrier);
        fetch_tile(o, a.o_map, p.row, p.column, barrier);
        if (sees) keys.fetch(p.begin, p.column, barrier);
        way.fetch(round + 1, barrier);
    }
};

/* What a thread knows of its two queries. */
struct query_rows {
    int2 seen[2];
    float2 stats[2];
};

/* lse in powers of 2 and <do, o> of a thread's two queries, made by four threads, from tiles; row:
 * of the first in its tile. */
__device__ __forceinline__ void find_stats(const wgmma_args &a, const place &p, const bf16 *d_o,
                                           const bf16 *o, const float *lse, int row,
                                           query_rows *r) {
    const int t = (int)threadIdx.x % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float sum = 0.0f;
#pragma unroll
        for (int piece = t; piece < TILE / 8; piece += 4) {
            float x[8], y[8];
            load8(d_o + tile_at(row + h * 8, piece * 8), true, 8, x);
            load8(o + tile_at(row + h * 8, piece * 8), true, 8, y);
#pragma unroll
            for (int i = 0; i < 8; i++) sum += x[i] * y[i];
        }
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        r->stats[h] = make_float2(lse[row + h * 8] * 1.44269504f, sum);
        const int at = p.row + row + h * 8;
        if (t == 0 && at < p.row_end) a.stats[p.head * a.s.q_rows.capacity + at] = r->stats[h];
    }
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

/* All gradients of a closed tile, whose dq, p and ds there are already. */
__device__ __forceinline__ void close_tile(const wgmma_args &a, const place &at, float (*sum)[4],
                                           const left &p, const left &ds, bf16 *q, const bf16 *d_o,
                                           bf16 *k, bf16 *v, column_sums *sums) {
    const int64_t end = a.s.k_rows.capacity;
    const float one[2] = {1.0f, 1.0f}, scales[2] = {a.s.scale, a.s.scale};
    __syncthreads(); /* k and v have been read */
    write_left(ds, v);
    write_tile(sum, scales, k, a.dq + at.column, a.ld_dq, at.row, a.s.q_rows.capacity);
    if (a.sums) add_column_sums(k, sums->of(DQ));
    write_left(p, k);
    publish();
    __syncthreads();
    products_begin();
    turned_multiply(sum, v, q);
    products_end(sum);
    __syncthreads(); /* q has been read */
    write_tile(sum, scales, q, a.dk + at.column, a.ld_dk, at.row, end);
    if (a.sums) add_column_sums(q, sums->of(DK));
    products_begin();
    turned_multiply(sum, k, d_o);
    products_end(sum);
    write_tile(sum, one, q, a.dv + at.column, a.ld_dv, at.row, end);
    if (a.sums) add_column_sums(q, sums->of(DV));
}

/* Those of a closed tile in the tail of a buffer, or of one that sees nothing: zeros. */
__device__ __forceinline__ void clear_tile(const wgmma_args &a, const place &at, bool closed,
                                           bf16 *through) {
    const float none[TILE / 8][4] = {}, one[2] = {1.0f, 1.0f};
    write_tile(none, one, through, a.dq + at.column, a.ld_dq, at.row, a.s.q_rows.capacity);
    if (!closed) return;
    write_tile(none, one, through, a.dk + at.column, a.ld_dk, at.row, a.s.k_rows.capacity);
    write_tile(none, one, through, a.dv + at.column, a.ld_dv, at.row, a.s.k_rows.capacity);
}

__global__ void __launch_bounds__(THREADS, QUERY_BLOCKS)
    query_kernel(const __grid_constant__ wgmma_args a) {
    extern __shared__ __align__(1024) char memory[];
    __shared__ __align__(16) fth_cuda_tile record[2];
    __shared__ uint64_t barrier[2];
    const attention_shape &s = a.s;
    bf16 *q = reinterpret_cast<bf16 *>(memory), *d_o = q + 2 * TILE_SIZE;
    bf16 *k = d_o + 2 * TILE_SIZE, *v = k + 2 * TILE_SIZE, *o = v + 2 * TILE_SIZE;
    __shared__ float lse[2 * TILE];
    const int tiles = fth_cuda_n_tiles((int)s.q_rows.capacity);
    const int mine = (int)threadIdx.x / 32 * 16 + (int)threadIdx.x % 32 / 4; /* row in a tile */
    const walk way = {s.tiles.queries, tiles, record};
    way.begin();
    arrivals arrive(barrier);
    const pair_feed keys = {a.k_map, a.v_map, k, v, arrive};
    const query_feed feed = {a, way, q, d_o, o, lse, keys};
    column_sums sums = {{}, reinterpret_cast<float2(*)[2][32]>(o + TILE_SIZE)};
    sums.begin();
    feed.first(0);
    for (int round = 0; way.has(round); round++) {
        const fth_cuda_tile *about = way.about(round);
        const place now = way.at(round);
        const int2 all_see = make_int2(about->all_begin, about->all_end);
        const bool closed = about->flags & FTH_CUDA_CLOSED;
        const int slot = round % 2;
        bf16 *q_now = q + slot * TILE_SIZE, *do_now = d_o + slot * TILE_SIZE;
        query_rows r;
        seen_rows<false>(s, now, about->flags & FTH_CUDA_ONE_SENTENCE, now.row + mine, r.seen);
        float dq[TILE / 8][4] = {};
        int key = now.begin;
        do { /* one step even where nothing is seen */
            arrive.next_step();
            if (key == now.begin) {
                find_stats(a, now, do_now, o, lse + slot * TILE, mine, &r);
                if (key + TILE >= now.end) __syncthreads(); /* o has been read */
            }
            if (key + TILE < now.end)
                keys.next(key + TILE, now.column);
            else if (way.has(round + 1))
                feed.first(round + 1);
            if (key >= now.end) break;
            bf16 *k_now = k + arrive.stage() * TILE_SIZE, *v_now = v + arrive.stage() * TILE_SIZE;
            float p[TILE / 8][4], dp[TILE / 8][4];
            differentiate_rows(s, r, p, dp, q_now, k_now, do_now, v_now, key, covers(all_see, key));
            const left ds = left_of(dp);
            products_begin();
            multiply(dq, ds, k_now);
            products_end(dq);
            if (closed) close_tile(a, now, dq, left_of(p), ds, q_now, do_now, k_now, v_now, &sums);
            key += TILE;
        } while (key < now.end);
        if (now.begin >= now.end) {
            clear_tile(a, now, closed, q_now);
        } else if (!closed) {
            const float scales[2] = {s.scale, s.scale};
            __syncthreads(); /* q has been read */
            write_tile(dq, scales, q_now, a.dq + now.column, a.ld_dq, now.row, s.q_rows.capacity);
            if (a.sums) add_column_sums(q_now, sums.of(DQ));
        }
    }
    if (a.sums) write_sums(a, sums, reinterpret_cast<float *>(memory));
}

/* ---- dk and dv ---- */

/* Starts to fetch what the first step of a round needs, and what is known of queries for the
 * others. */
struct key_feed {
    const wgmma_args &a;
    const walk &way;
    bf16 *k, *v;   /* [2, TILE_SIZE] of shared memory each */
    float2 *stats; /* [2, TILE] */
    const pair_feed &queries;

    __device__ __forceinline__ void statistics(const place &p, int query) const {
        const int thread = (int)threadIdx.x, stage = queries.to.stage() ^ 1;
        const bool valid = query + thread < p.end;
        if (thread < TILE)
            copy_few<8>(stats + stage * TILE + thread,
                        a.stats + p.head * a.s.q_rows.capacity + (valid ? query + thread : 0),
                        valid);
    }

    __device__ __forceinline__ void first(int round) const {
        const place p = way.at(round);
        const int slot = round % 2;
        const bool seen = p.begin < p.end;
        if (seen) statistics(p, p.begin);
        if (threadIdx.x != 0) return;
        uint64_t *barrier = queries.to.expect(seen ? 4 : 2, way.bytes(round + 1));
        fetch_tile(k + slot * TILE_SIZE, a.k_map, p.row, p.column, barrier);
        fetch_tile(v + slot * TILE_SIZE, a.v_map, p.row, p.column, barrier);
        if (seen) queries.fetch(p.begin, p.column, barrier);
        way.fetch(round + 1, barrier);
    }
};

__global__ void __launch_bounds__(THREADS, KEY_BLOCKS)
    key_kernel(const __grid_constant__ wgmma_args a) {
    extern __shared__ __align__(1024) char memory[];
    __shared__ __align__(16) fth_cuda_tile record[2];
    __shared__ uint64_t barrier[2];
    const attention_shape &s = a.s;
    const int lane = (int)threadIdx.x % 32, mine = (int)threadIdx.x / 32 * 16 + lane / 4;
    bf16 *k = reinterpret_cast<bf16 *>(memory), *v = k + 2 * TILE_SIZE;
    bf16 *q = v + 2 * TILE_SIZE, *d_o = q + 2 * TILE_SIZE;
    float2 *stats = reinterpret_cast<float2 *>(d_o + 2 * TILE_SIZE);
    const int tiles = *s.tiles.n_keys;
    const float scale = s.scale * 1.44269504f;
    const walk way = {s.tiles.keys, tiles, record};
    column_sums sums = {{}, reinterpret_cast<float2(*)[2][32]>(stats + 2 * TILE)};
    sums.begin();
    if (!way.has(0)) {
        if (a.sums) write_sums(a, sums, reinterpret_cast<float *>(memory));
        return;
    }
    way.begin();
    arrivals arrive(barrier);
    const pair_feed queries = {a.q_map, a.do_map, q, d_o, arrive};
    const key_feed feed = {a, way, k, v, stats, queries};
    feed.first(0);
    for (int round = 0; way.has(round); round++) {
        const fth_cuda_tile *about = way.about(round);
        const place now = way.at(round);
        const int2 all_see = make_int2(about->all_begin, about->all_end);
        const int slot = round % 2;
        bf16 *k_now = k + slot * TILE_SIZE, *v_now = v + slot * TILE_SIZE;
        int2 seen[2];
        seen_rows<true>(s, now, about->flags & FTH_CUDA_ONE_SENTENCE, now.row + mine, seen);
        float dk[TILE / 8][4] = {}, dv[TILE / 8][4] = {};
        int query = now.begin;
        do { /* one step even where nobody sees it */
            arrive.next_step();
            if (query + TILE < now.end) {
                queries.next(query + TILE, now.column);
                feed.statistics(now, query + TILE);
            } else if (way.has(round + 1)) {
                feed.first(round + 1);
            }
            if (query >= now.end) break;
            const int stage = arrive.stage();
            const bf16 *q_now = q + stage * TILE_SIZE, *do_now = d_o + stage * TILE_SIZE;
            float p[TILE / 8][4], dp[TILE / 8][4];
            begin_scores(p, dp, k_now, q_now, v_now, do_now);
            const float2 *of_queries = stats + stage * TILE + lane % 4 * 2;
            const auto of_column = [&](int i, int n) { return of_queries[n * 8 + i % 2]; };
            if (covers(all_see, query))
                differentiate<false>(p, dp, scale, query, seen, of_column);
            else
                differentiate<true>(p, dp, scale, query, seen, of_column);
            const left p_left = left_of(p), ds_left = left_of(dp);
            products_begin();
            multiply(dv, p_left, do_now);
            multiply(dk, ds_left, q_now);
            products_end(dv);
            settle(dk);
            query += TILE;
        } while (query < now.end);
        const float one[2] = {1.0f, 1.0f}, scales[2] = {s.scale, s.scale};
        __syncthreads(); /* k and v have been read */
        write_tile(dk, scales, k_now, a.dk + now.column, a.ld_dk, now.row, s.k_rows.capacity);
        write_tile(dv, one, v_now, a.dv + now.column, a.ld_dv, now.row, s.k_rows.capacity);
        if (a.sums) {
            add_column_sums(k_now, sums.of(DK));
            add_column_sums(v_now, sums.of(DV));
        }
    }
    if (a.sums) write_sums(a, sums, reinterpret_cast<float *>(memory));
}

/* Where the sums of columns go: parts of both kernels, one behind the other, then the bias's
 * gradient. */
finish_args sums_of(const fth_cuda_call *c, const fth_op *dw, wgmma_args *a, int64_t blocks) {
    const fth_tensor *db = fth_arg(c->ex, dw->out[LINEAR_DW_DB]);
    for (int k = 0; k < GRADIENTS; k++)
        a->sums_column[k] = c->ex->graph->value[c->op->out[ATT_BWD_DQ + k]].column;
    a->sums = fth_cuda_parts_place(c, false);
    a->sums_width = fth_arg(c->ex, dw->in[LINEAR_DW_DY])->width;
    return finish_bias(c, a->sums, (float *)db->data, blocks, a->sums_width);
}
} // namespace

int64_t fth_cuda_attention_wgmma_sums(const fth_cuda *gpu, int64_t q_rows, int64_t k_rows,
                                      int heads) {
    const int64_t of_queries =
        tile_blocks(gpu, fth_cuda_n_tiles((int32_t)q_rows), heads, QUERY_BLOCKS);
    const int64_t of_keys = tile_blocks(gpu, fth_cuda_n_tiles((int32_t)k_rows), heads, KEY_BLOCKS);
    return (of_queries + of_keys) * GRADIENTS * heads * TILE;
}

fth_err fth_cuda_attention_wgmma_bwd(const fth_cuda_call *c, const attention_shape *s) {
    wgmma_args a = {};
    static_cast<attention_bwd_args &>(a) = fth_cuda_attention_bwd_args(c, s);
    const int64_t columns = (int64_t)s->heads * TILE;
    const int64_t q_rows = s->q_rows.capacity, k_rows = s->k_rows.capacity;
    a.stats = (float2 *)((float *)c->scratch +
                         fth_cuda_attention_wgmma_sums(c->gpu, q_rows, k_rows, s->heads));
    const int bytes = TILE_SIZE * (int)sizeof(bf16);
    FTH_TRY(fth_cuda_map_tiles(&a.q_map, a.q, a.ld_q, q_rows, columns, TILE));
    FTH_TRY(fth_cuda_map_tiles(&a.k_map, a.k, a.ld_k, k_rows, columns, TILE));
    FTH_TRY(fth_cuda_map_tiles(&a.v_map, a.v, a.ld_v, k_rows, columns, TILE));
    FTH_TRY(fth_cuda_map_tiles(&a.do_map, a.d_o, a.ld_do, q_rows, columns, TILE));
    FTH_TRY(fth_cuda_map_tiles(&a.o_map, a.o, a.ld_o, q_rows, columns, TILE));
    const int32_t q_tiles = fth_cuda_n_tiles((int32_t)q_rows);
    const int32_t k_tiles = fth_cuda_n_tiles((int32_t)k_rows);
    const int64_t query_blocks = tile_blocks(c->gpu, q_tiles, s->heads, QUERY_BLOCKS);
    const fth_op *dw = fth_cuda_bias_made_by(c);
    finish_args f = {};
    if (dw)
        f = sums_of(c, dw, &a, query_blocks + tile_blocks(c->gpu, k_tiles, s->heads, KEY_BLOCKS));
    FTH_TRY(launch_tiles(c, query_kernel, a, q_tiles, QUERY_BLOCKS, 9 * bytes + SUMS_BYTES));
    if (dw) a.sums += query_blocks * a.sums_width;
    FTH_TRY(launch_tiles(c, key_kernel, a, k_tiles, KEY_BLOCKS,
                         8 * bytes + 2 * TILE * (int)sizeof(float2) + SUMS_BYTES));
    return dw ? fth_cuda_add_parts(c, f, false) : FTH_OK;
}
