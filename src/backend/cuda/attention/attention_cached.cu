/* attention_cached.cu: attention of one new row per hypothesis over its history. A warp does one
 * head of one row: it puts the new key and value into the cache, then walks over the history, 32
 * entries at a time: a lane for every key, then a lane for every column of the values, keeping
 * softmax's running maximum and sum. Reads the keys and values of every history once per head; what
 * is read at a time is asked for at once, since a step of generation waits for memory and for
 * nothing else. */
#include "backend/cuda/vec.cuh"

namespace {
enum { WARPS = 4, ENTRIES = 32 /* of the history at a time */ };

template <class T> struct cached_args {
    const T *q, *k, *v;
    int64_t ld_q, ld_k, ld_v;
    T *key_cache, *value_cache, *o;
    int64_t ld_keys, ld_values, ld_o;
    const float *prev; /* [pairs, heads], opt */
    float *scores;     /* the same */
    const int32_t *slot, *begin, *history;
    int heads, head; /* columns of a head */
    float scale, inverse;
    bool wide; /* every head of a key begins at a multiple of 16 bytes and has eights of columns */
    row_count rows;
    const fth_cuda_step *step;
};

/* The row's own key and value, which are the newest of its history. */
template <class T> __device__ void extend_cache(const cached_args<T> &a, int64_t row, int first) {
    const int64_t slot = a.slot[row];
    for (int c = first + (int)threadIdx.x % 32; c < first + a.head; c += 32) {
        a.key_cache[slot * a.ld_keys + c] = a.k[row * a.ld_k + c];
        a.value_cache[slot * a.ld_values + c] = a.v[row * a.ld_v + c];
    }
}

/* q [head] in shared memory; key: one head of it. */
template <class T> __device__ float dot(const cached_args<T> &a, const float *q, const T *key) {
    float sum = 0.0f;
#pragma unroll 8
    for (int c = 0; c < a.head; c += 8) {
        float k[8];
        load8(key + c, a.wide, a.head - c, k);
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (c + i < a.head) sum += q[c + i] * k[i];
    }
    return sum * a.scale;
}

/* out [head] = out * factor + the values of `count` entries, each times its p. */
template <class T>
__device__ void add_values(const cached_args<T> &a, float *out, float factor, const float *p,
                           const int32_t *slots, int count, int first) {
    for (int c = (int)threadIdx.x % 32; c < a.head; c += 32) {
        const T *column = a.value_cache + first + c;
        float sum = out[c] * factor;
#pragma unroll 16
        for (int j = 0; j < count; j++) sum += p[j] * to_float(column[slots[j] * a.ld_values]);
        out[c] = sum;
    }
}

template <class T> __global__ void __launch_bounds__(WARPS * 32) attend(cached_args<T> a) {
    extern __shared__ float memory[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float *q = memory + warp * (2 * a.head + 2 * ENTRIES), *out = q + a.head, *p = out + a.head;
    int32_t *slots = (int32_t *)(p + ENTRIES);
    const int64_t i = (int64_t)blockIdx.x * WARPS + warp, row = i / a.heads;
    const int head = (int)(i % a.heads), first = head * a.head;
    if (row >= a.rows.capacity) return;
    const bool real = row < rows_now(a.step, a.rows);
    const int begin = real ? a.begin[row] : 0, end = real ? a.begin[row + 1] : 0;
    if (real) extend_cache(a, row, first);
    for (int c = lane; c < a.head; c += 32) {
        q[c] = real ? to_float(a.q[row * a.ld_q + first + c]) : 0.0f;
        out[c] = 0.0f;
    }
    float highest = -INFINITY, total = 0.0f;
    for (int from = begin; from < end; from += ENTRIES) {
        const int entry = from + lane;
        const bool there = entry < end;
        slots[lane] = there ? a.history[entry] : 0;
        __syncwarp(); /* q, the cache's newest entry and the slots are there */
        float score = -INFINITY;
        if (there) {
            score = dot(a, q, a.key_cache + slots[lane] * a.ld_keys + first);
            if (a.prev) score += a.prev[(int64_t)entry * a.heads + head];
            if (a.scores) a.scores[(int64_t)entry * a.heads + head] = score;
            score *= a.inverse;
        }
        const float before = highest;
        highest = fmaxf(highest, warp_max(score));
        const float factor = expf(before - highest);
        p[lane] = there ? expf(score - highest) : 0.0f;
        total = total * factor + warp_sum(p[lane]);
        __syncwarp();
        add_values(a, out, factor, p, slots, min((int)ENTRIES, end - from), first);
        __syncwarp(); /* p and slots have been read */
    }
    const float rest = total > 0.0f ? 1.0f / total : 0.0f;
    for (int c = lane; c < a.head; c += 32)
        a.o[row * a.ld_o + first + c] = from_float<T>(out[c] * rest);
}

template <class T> fth_err run(const fth_cuda_call *c) {
    const fth_tensor *q = in_of(c, ATT_CACHED_Q), *k = in_of(c, ATT_CACHED_K);
    const fth_tensor *v = in_of(c, ATT_CACHED_V), *o = out_of(c, ATT_CACHED_O);
    const fth_tensor *keys = in_of(c, ATT_CACHED_KCACHE), *values = in_of(c, ATT_CACHED_VCACHE);
    const fth_tensor *prev = in_of(c, ATT_CACHED_PREV), *scores = out_of(c, ATT_CACHED_SCORES);
    cached_args<T> a = {};
    a.q = (const T *)q->data, a.k = (const T *)k->data, a.v = (const T *)v->data;
    a.ld_q = q->ld, a.ld_k = k->ld, a.ld_v = v->ld;
    a.key_cache = (T *)keys->data, a.value_cache = (T *)values->data, a.o = (T *)o->data;
    a.ld_keys = keys->ld, a.ld_values = values->ld, a.ld_o = o->ld;
    a.prev = prev ? (const float *)prev->data : nullptr;
    a.scores = scores ? (float *)scores->data : nullptr;
    a.slot = c->batch->slot, a.begin = c->batch->begin, a.history = c->batch->history;
    a.heads = c->op->u.attention.heads, a.head = q->width / a.heads;
    a.scale = c->op->u.attention.scale, a.inverse = 1.0f / c->op->u.attention.divisor;
    a.wide = is_wide(keys) && a.head % 8 == 0;
    a.rows = rows_of(q);
    a.step = c->step;
    if (q->rows == 0) return FTH_OK;
    const int bytes = WARPS * (2 * a.head + 2 * ENTRIES) * (int)sizeof(float);
    if (bytes > 160 << 10)
        return fth_fail(FTH_FAILED, "heads of %d columns: too wide for device cuda", a.head);
    CUDA_TRY(cudaFuncSetAttribute(attend<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "asking for shared memory");
    attend<T><<<ceil_div(q->rows * a.heads, WARPS), WARPS * 32, bytes, c->stream>>>(a);
    return fth_cuda_launched();
}
} // namespace

fth_err fth_cuda_attention_cached(const fth_cuda_call *c) {
    return is_bf16(in_of(c, ATT_CACHED_Q)) ? run<bf16>(c) : run<float>(c);
}
