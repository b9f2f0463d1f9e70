/* attention_plain.cu: attention of any type and head size, with carried scores where a method has
 * them (doc/mathematics.md#realformer): S = scale q k^T + PREV, P = softmax(S / divisor), o = D(P)
 * v; backward as in ref. A warp does one head of one row: a lane for every key in turn, then a lane
 * for every column. Keys are read twice; bound by the L1 cache. For fp32, odd shapes and carried
 * scores. */
#include "backend/cuda/attention/attention.cuh"

namespace {
enum { WARPS = 4 };

template <class T> struct plain_args {
    attention_shape s;
    const T *q, *k, *v, *d_o, *o;
    int64_t ld_q, ld_k, ld_v, ld_do, ld_o;
    const float *prev; /* [pairs, heads], opt; backward: the stored scores */
    const float *dscores;
    float *scores;    /* [pairs, heads], opt; backward: dPREV */
    T *out, *dk, *dv; /* o or dq */
    int64_t ld_out, ld_dk, ld_dv;
    float *lse;
    int64_t ld_lse;
    float *delta; /* [q rows, heads] */
};

/* One head of one query. */
struct query {
    int head, first, count;   /* first column */
    int row, key, seen, keys; /* first key row; keys that it sees, keys of the sentence */
    int64_t pair;             /* of its first key */
};

__device__ query query_at(const attention_shape &s, int row, int head) {
    const int sentence = s.q_sentence[row], key = s.k_offsets[sentence];
    const int keys = s.k_offsets[sentence + 1] - key;
    const int seen = s.causal ? row - s.q_offsets[sentence] + 1 : keys;
    return {head,   head * s.head,
            s.head, row,
            key,    seen,
            keys,   s.pairs[sentence] + (int64_t)(row - s.q_offsets[sentence]) * keys};
}

__device__ float factor_of(const attention_shape &s, int row, int head, int index) {
    if (s.threshold == 0) return 1.0f;
    const uint64_t e = probability_element(s, row, head, index);
    return drop_keeps(s.step, s.threshold, s.site, e) ? s.kept : 0.0f;
}

/* x [n] in shared memory times a row. */
template <class T> __device__ float dot(const float *x, const T *row, int n) {
    float sum = 0.0f;
    for (int c = 0; c < n; c++) sum += x[c] * to_float(row[c]);
    return sum;
}

template <class T> __device__ void load_row(float *to, const T *from, int n) {
    for (int c = threadIdx.x % 32; c < n; c += 32) to[c] = to_float(from[c]);
}

/* sum [n] += weights [count] times rows. */
template <class T>
__device__ void add_rows(float *sum, const float *weights, int count, const T *rows, int64_t ld,
                         int n) {
    for (int c = threadIdx.x % 32; c < n; c += 32) {
        float x = sum[c];
        for (int j = 0; j < count; j++) x += weights[j] * to_float(rows[j * ld + c]);
        sum[c] = x;
    }
}

template <class T> __device__ void store_row(T *to, const float *from, int n) {
    for (int c = threadIdx.x % 32; c < n; c += 32) to[c] = from_float<T>(from ? from[c] : 0.0f);
}

__device__ void clear_row(float *x, int n) {
    for (int c = threadIdx.x % 32; c < n; c += 32) x[c] = 0.0f;
}

/* ---- forward ---- */

/* S of a key. */
template <class T>
__device__ float score(const plain_args<T> &a, const query &q, const float *x, int j) {
    const T *key = a.k + (q.key + j) * a.ld_k + q.first;
    const float s = a.s.carried * dot(x, key, q.count);
    return a.prev ? s + a.prev[(q.pair + j) * a.s.heads + q.head] : s;
}

template <class T> __global__ void __launch_bounds__(WARPS * 32) plain_forward(plain_args<T> a) {
    extern __shared__ float memory[];
    const attention_shape &s = a.s;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float *x = memory + warp * (2 * s.head + 32), *sum = x + s.head, *p = sum + s.head;
    const int64_t i = (int64_t)blockIdx.x * WARPS + warp, row = i / s.heads;
    const int head = (int)(i % s.heads);
    if (row >= s.q_rows.capacity) return;
    T *out = a.out + row * a.ld_out + head * s.head;
    if (row >= rows_now(s.step, s.q_rows)) {
        store_row(out, nullptr, s.head);
        if (a.lse && lane == 0) a.lse[row * a.ld_lse + head] = 0.0f;
        return;
    }
    const query q = query_at(s, (int)row, head);
    load_row(x, a.q + row * a.ld_q + q.first, s.head);
    clear_row(sum, s.head);
    __syncwarp();
    float highest = -INFINITY, total = 0.0f;
    for (int j = lane; j < q.keys; j += 32) {
        const bool sees = j < q.seen;
        const float value = sees ? score(a, q, x, j) : 0.0f;
        if (a.scores) a.scores[(q.pair + j) * s.heads + head] = value;
        if (!sees) continue;
        const float y = value * s.inverse, before = highest;
        highest = fmaxf(highest, y);
        total = total * expf(before - highest) + expf(y - highest);
    }
    const float all = warp_max(highest);
    total = warp_sum(highest == -INFINITY ? 0.0f : total * expf(highest - all));
    const float lse = total > 0.0f ? all + logf(total) : -INFINITY;
    if (a.lse && lane == 0) a.lse[row * a.ld_lse + head] = lse;
    for (int j0 = 0; j0 < q.seen; j0 += 32) {
        const int j = j0 + lane, count = min(32, q.seen - j0);
        if (j < q.seen) {
            const float value =
                a.scores ? a.scores[(q.pair + j) * s.heads + head] : score(a, q, x, j);
            p[lane] = expf(value * s.inverse - lse) * factor_of(s, (int)row, head, j);
        }
        __syncwarp();
        add_rows(sum, p, count, a.v + (int64_t)(q.key + j0) * a.ld_v + q.first, a.ld_v, s.head);
        __syncwarp();
    }
    store_row(out, sum, s.head);
}

/* ---- backward ---- */

/* p and ds of a pair; x and y [head]: q and do in dq blocks, k and v in dk blocks, `other` the rows
 * of the other side. */
struct slope {
    float p, ds; /* p after dropout */
};

template <class T>
__device__ slope slope_of(const plain_args<T> &a, const query &q, int j, const float *x,
                          const T *other_x, const float *y, const T *other_y, float lse,
                          float delta) {
    const attention_shape &s = a.s;
    const int64_t pair = (q.pair + j) * s.heads + q.head;
    const float value = a.prev ? a.prev[pair] : s.carried * dot(x, other_x, s.head);
    const float p = expf(value * s.inverse - lse), factor = factor_of(s, q.row, q.head, j);
    const float dp = dot(y, other_y, s.head) * factor;
    const float ds = p * (dp - delta) * s.inverse;
    return {p * factor, a.dscores ? ds + a.dscores[pair] : ds};
}

template <class T> __global__ void __launch_bounds__(WARPS * 32) plain_dq(plain_args<T> a) {
    extern __shared__ float memory[];
    const attention_shape &s = a.s;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float *x = memory + warp * (4 * s.head + 64), *y = x + s.head, *sum = y + s.head;
    float *weights = sum + s.head;
    const int64_t i = (int64_t)blockIdx.x * WARPS + warp, row = i / s.heads;
    const int head = (int)(i % s.heads);
    if (row >= s.q_rows.capacity) return;
    T *out = a.out + row * a.ld_out + head * s.head;
    if (row >= rows_now(s.step, s.q_rows)) {
        store_row(out, nullptr, s.head);
        return;
    }
    const query q = query_at(s, (int)row, head);
    load_row(x, a.q + row * a.ld_q + q.first, s.head);
    load_row(y, a.d_o + row * a.ld_do + q.first, s.head);
    clear_row(sum, s.head);
    __syncwarp();
    float delta = 0.0f;
    for (int c = lane; c < s.head; c += 32)
        delta += y[c] * to_float(a.o[row * a.ld_o + q.first + c]);
    delta = warp_sum(delta);
    if (lane == 0) a.delta[row * s.heads + head] = delta;
    const float lse = a.lse[row * a.ld_lse + head];
    for (int j0 = 0; j0 < q.keys; j0 += 32) {
        const int j = j0 + lane, count = min(32, q.seen - j0);
        float ds = 0.0f;
        if (j < q.seen)
            ds = slope_of(a, q, j, x, a.k + (q.key + j) * a.ld_k + q.first, y,
                          a.v + (q.key + j) * a.ld_v + q.first, lse, delta)
                     .ds;
        if (a.scores && j < q.keys) a.scores[(q.pair + j) * s.heads + head] = ds;
        weights[lane] = ds * s.carried;
        __syncwarp();
        add_rows(sum, weights, count, a.k + (int64_t)(q.key + j0) * a.ld_k + q.first, a.ld_k,
                 s.head);
        __syncwarp();
    }
    store_row(out, sum, s.head);
}

template <class T> __global__ void __launch_bounds__(WARPS * 32) plain_dk(plain_args<T> a) {
    extern __shared__ float memory[];
    const attention_shape &s = a.s;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float *x = memory + warp * (4 * s.head + 64), *y = x + s.head;
    float *dk = y + s.head, *dv = dk + s.head, *weights = dv + s.head, *kept = weights + 32;
    const int64_t i = (int64_t)blockIdx.x * WARPS + warp, row = i / s.heads;
    const int head = (int)(i % s.heads), first = head * s.head;
    if (row >= s.k_rows.capacity) return;
    T *out_k = a.dk + row * a.ld_dk + first, *out_v = a.dv + row * a.ld_dv + first;
    if (row >= rows_now(s.step, s.k_rows)) {
        store_row(out_k, nullptr, s.head);
        store_row(out_v, nullptr, s.head);
        return;
    }
    const int2 queries = queries_of(s, (int)row);
    load_row(x, a.k + row * a.ld_k + first, s.head);
    load_row(y, a.v + row * a.ld_v + first, s.head);
    clear_row(dk, s.head);
    clear_row(dv, s.head);
    __syncwarp();
    for (int i0 = queries.x; i0 < queries.y; i0 += 32) {
        const int query_row = i0 + lane, count = min(32, queries.y - i0);
        if (query_row < queries.y) {
            const query q = query_at(s, query_row, head);
            const slope d =
                slope_of(a, q, (int)row - q.key, x, a.q + query_row * a.ld_q + first, y,
                         a.d_o + query_row * a.ld_do + first, a.lse[query_row * a.ld_lse + head],
                         a.delta[query_row * s.heads + head]);
            weights[lane] = d.ds * s.carried;
            kept[lane] = d.p;
        }
        __syncwarp();
        add_rows(dk, weights, count, a.q + i0 * a.ld_q + first, a.ld_q, s.head);
        add_rows(dv, kept, count, a.d_o + i0 * a.ld_do + first, a.ld_do, s.head);
        __syncwarp();
    }
    store_row(out_k, dk, s.head);
    store_row(out_v, dv, s.head);
}

/* ---- launching ---- */

template <class T>
fth_err launch(const fth_cuda_call *c, void (*kernel)(plain_args<T>), const plain_args<T> &a,
               int64_t rows, int floats) {
    const int bytes = WARPS * floats * (int)sizeof(float),
              blocks = ceil_div(rows * a.s.heads, WARPS);
    if (blocks == 0) return FTH_OK;
    if (bytes > 160 << 10)
        return fth_fail(FTH_FAILED, "heads of %d columns: too wide for device cuda", a.s.head);
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "asking for shared memory");
    kernel<<<blocks, WARPS * 32, bytes, c->stream>>>(a);
    return fth_cuda_launched();
}

template <class T> const T *data_of(const fth_tensor *t) {
    return t ? (const T *)t->data : nullptr;
}

template <class T> fth_err forward(const fth_cuda_call *c, const attention_shape *s) {
    const fth_tensor *q = in_of(c, ATT_Q), *k = in_of(c, ATT_K), *v = in_of(c, ATT_V);
    const fth_tensor *o = out_of(c, ATT_O), *lse = out_of(c, ATT_LSE);
    plain_args<T> a = {};
    a.s = *s;
    a.q = data_of<T>(q), a.k = data_of<T>(k), a.v = data_of<T>(v);
    a.ld_q = q->ld, a.ld_k = k->ld, a.ld_v = v->ld;
    a.prev = data_of<float>(in_of(c, ATT_PREV));
    a.scores = (float *)data_of<float>(out_of(c, ATT_SCORES));
    a.out = (T *)o->data, a.ld_out = o->ld;
    a.lse = (float *)data_of<float>(lse), a.ld_lse = lse ? lse->ld : 0;
    return launch(c, plain_forward<T>, a, s->q_rows.capacity, 2 * s->head + 32);
}

template <class T> fth_err backward(const fth_cuda_call *c, const attention_shape *s) {
    const fth_tensor *q = in_of(c, ATT_BWD_Q), *k = in_of(c, ATT_BWD_K), *v = in_of(c, ATT_BWD_V);
    const fth_tensor *o = in_of(c, ATT_BWD_O), *d_o = in_of(c, ATT_BWD_DO);
    const fth_tensor *lse = in_of(c, ATT_BWD_LSE), *dq = out_of(c, ATT_BWD_DQ);
    const fth_tensor *dk = out_of(c, ATT_BWD_DK), *dv = out_of(c, ATT_BWD_DV);
    plain_args<T> a = {};
    a.s = *s;
    a.q = data_of<T>(q), a.k = data_of<T>(k), a.v = data_of<T>(v);
    a.ld_q = q->ld, a.ld_k = k->ld, a.ld_v = v->ld;
    a.o = data_of<T>(o), a.d_o = data_of<T>(d_o);
    a.ld_o = o->ld, a.ld_do = d_o->ld;
    a.prev = data_of<float>(in_of(c, ATT_BWD_SCORES));
    a.dscores = data_of<float>(in_of(c, ATT_BWD_DSCORES));
    a.scores = (float *)data_of<float>(out_of(c, ATT_BWD_DPREV));
    a.lse = (float *)lse->data, a.ld_lse = lse->ld;
    a.delta = (float *)c->scratch;
    a.out = (T *)dq->data, a.ld_out = dq->ld;
    a.dk = (T *)dk->data, a.ld_dk = dk->ld;
    a.dv = (T *)dv->data, a.ld_dv = dv->ld;
    FTH_TRY(launch(c, plain_dq<T>, a, s->q_rows.capacity, 4 * s->head + 64));
    return launch(c, plain_dk<T>, a, s->k_rows.capacity, 4 * s->head + 64);
}
} // namespace

fth_err fth_cuda_attention_plain(const fth_cuda_call *c, const attention_shape *s) {
    return is_bf16(in_of(c, ATT_Q)) ? forward<bf16>(c, s) : forward<float>(c, s);
}

fth_err fth_cuda_attention_plain_bwd(const fth_cuda_call *c, const attention_shape *s) {
    return is_bf16(in_of(c, ATT_BWD_Q)) ? backward<bf16>(c, s) : backward<float>(c, s);
}
