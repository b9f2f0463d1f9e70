/* attention_cached.cu: attention of one new row per hypothesis over its history. The new keys and
 * values go to the cache first. Reads the keys and values of every history once per head; a warp
 * does one head of one row: a lane for every key in turn, then a lane for every column. */
#include "backend/cuda/vec.cuh"

namespace {
enum { WARPS = 4, WRITE_THREADS = 256 };

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
    int width;
    row_count rows;
    const fth_cuda_step *step;
};

template <class T> __global__ void __launch_bounds__(WRITE_THREADS) write_cache(cached_args<T> a) {
    const uint32_t i = blockIdx.x * WRITE_THREADS + threadIdx.x, row = i / (uint32_t)a.width;
    const uint32_t column = i - row * (uint32_t)a.width;
    if (row >= rows_now(a.step, a.rows)) return;
    const int64_t slot = a.slot[row];
    a.key_cache[slot * a.ld_keys + column] = a.k[row * a.ld_k + column];
    a.value_cache[slot * a.ld_values + column] = a.v[row * a.ld_v + column];
}

template <class T>
__device__ float score(const cached_args<T> &a, const float *q, int head, int entry) {
    const T *key = a.key_cache + a.history[entry] * a.ld_keys + head * a.head;
    float sum = 0.0f;
    for (int c = 0; c < a.head; c++) sum += q[c] * to_float(key[c]);
    sum *= a.scale;
    return a.prev ? sum + a.prev[(int64_t)entry * a.heads + head] : sum;
}

template <class T> __global__ void __launch_bounds__(WARPS * 32) attend(cached_args<T> a) {
    extern __shared__ float memory[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float *q = memory + warp * (2 * a.head + 32), *out = q + a.head, *p = out + a.head;
    const int64_t i = (int64_t)blockIdx.x * WARPS + warp, row = i / a.heads;
    const int head = (int)(i % a.heads), first = head * a.head;
    if (row >= a.rows.capacity) return;
    const bool real = row < rows_now(a.step, a.rows);
    const int begin = real ? a.begin[row] : 0, end = real ? a.begin[row + 1] : 0;
    for (int c = lane; c < a.head; c += 32) {
        q[c] = real ? to_float(a.q[row * a.ld_q + first + c]) : 0.0f;
        out[c] = 0.0f;
    }
    __syncwarp();
    float highest = -INFINITY, total = 0.0f;
    for (int entry = begin + lane; entry < end; entry += 32) {
        const float s = score(a, q, head, entry), y = s * a.inverse, before = highest;
        if (a.scores) a.scores[(int64_t)entry * a.heads + head] = s;
        highest = fmaxf(highest, y);
        total = total * expf(before - highest) + expf(y - highest);
    }
    const float all = warp_max(highest);
    total = warp_sum(highest == -INFINITY ? 0.0f : total * expf(highest - all));
    for (int from = begin; from < end; from += 32) {
        const int entry = from + lane, count = min(32, end - from);
        if (entry < end) p[lane] = expf(score(a, q, head, entry) * a.inverse - all) / total;
        __syncwarp();
        for (int c = lane; c < a.head; c += 32)
            for (int j = 0; j < count; j++)
                out[c] +=
                    p[j] * to_float(a.value_cache[a.history[from + j] * a.ld_values + first + c]);
        __syncwarp();
    }
    for (int c = lane; c < a.head; c += 32) a.o[row * a.ld_o + first + c] = from_float<T>(out[c]);
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
    a.width = q->width;
    a.rows = rows_of(q);
    a.step = c->step;
    if (q->rows == 0) return FTH_OK;
    write_cache<T><<<ceil_div(q->rows * q->width, WRITE_THREADS), WRITE_THREADS, 0, c->stream>>>(a);
    FTH_TRY(fth_cuda_launched());
    const int bytes = WARPS * (2 * a.head + 32) * (int)sizeof(float);
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
