/* top.cu: the best words of every row of logits (op.h). Reads V logits a row once and those of k
 * threads twice, writes 2 k + 2 floats: bandwidth bound, or by the cache where the product has left
 * them there. A block does a row:
 *   1. every thread finds the best of its own words and its part of the sum of exponentials;
 *   2. the k-th best of these is a bound: k words are not below it, and other words that are not
 *      belong to the same k threads;
 *   3. those look through their words once more and put what is not below the bound into shared
 *      memory, where one warp sorts it.
 * No two keys are equal, so nothing depends on who comes first. */
#include "backend/cuda/vec.cuh"

#include <float.h>

namespace {
enum { TOP_THREADS = 1024, TOP_WARPS = TOP_THREADS / 32, STRIDE = TOP_THREADS * 8 };

/* A word as a number: the larger, the better; equal logits by the number of the word. 0: none. */
typedef unsigned long long word_key;

__device__ __forceinline__ word_key key_of(float logit, int word) {
    if (!(logit > -INFINITY)) return 0;                                  /* nor NaN */
    const uint32_t bits = __float_as_uint(logit == 0.0f ? 0.0f : logit); /* -0 is 0 */
    const uint32_t order = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (word_key)order << 32 | ~(uint32_t)word;
}

__device__ __forceinline__ float logit_of(word_key key) {
    const uint32_t order = (uint32_t)(key >> 32);
    return key ? __uint_as_float(order >> 31 ? order & 0x7fffffffu : ~order) : -INFINITY;
}

__device__ __forceinline__ int word_of(word_key key) {
    return key ? (int)~(uint32_t)key : -1;
}

/* ---- lists of 32 keys, one in every lane of a warp, best first ---- */

__device__ __forceinline__ word_key exchanged(word_key x, int distance, bool larger) {
    const word_key other = __shfl_xor_sync(~0u, x, distance);
    return (x > other) == larger ? x : other;
}

__device__ word_key sorted(word_key x) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int size = 2; size <= 32; size *= 2)
#pragma unroll
        for (int k = size / 2; k > 0; k /= 2)
            x = exchanged(x, k, ((lane & k) == 0) == ((lane & size) == 0));
    return x;
}

/* The best 32 of two lists; the other one comes worst first. */
__device__ word_key merged(word_key x, word_key other_turned) {
    const int lane = threadIdx.x % 32;
    if (other_turned > x) x = other_turned;
#pragma unroll
    for (int k = 16; k > 0; k /= 2) x = exchanged(x, k, (lane & k) == 0);
    return x;
}

/* The best 32 of the block's keys, in the first warp. shared [TOP_WARPS / 2, 32] */
__device__ word_key block_best(word_key x, word_key *shared) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x = sorted(x);
    for (int half = TOP_WARPS / 2; half > 0; half /= 2) {
        if (warp >= half && warp < 2 * half) shared[(warp - half) * 32 + lane] = x;
        __syncthreads();
        if (warp < half) x = merged(x, shared[warp * 32 + 31 - lane]);
        __syncthreads();
    }
    return x;
}

/* ---- a row ---- */

template <class T> struct top_args {
    const T *logits;
    int64_t ld;
    int vocab, k;
    bool wide;
    const int32_t *asked;
    float *out; /* [rows, ld_out] */
    int64_t ld_out;
    row_count rows;
    const fth_cuda_step *step;
};

/* Eight words from `first` on; those past the end are no candidates. */
template <class T>
__device__ __forceinline__ void get_words(const raw8<T> &raw, int n, float v[8]) {
    raw.get(v);
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i >= n) v[i] = -INFINITY;
}

/* What a thread finds among its words: the best one, and the sum of the exponentials of all less
 * base. The base is finite, so that neither -inf nor the first word is a special case. */
struct own_words {
    float best, base, sum;
    int word;

    __device__ __forceinline__ void add(const float v[8], int first) {
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (v[i] > best) best = v[i], word = first + i;
        if (best > base) {
            sum *= expf(base - best);
            base = best;
        }
#pragma unroll
        for (int i = 0; i < 8; i++) sum += expf(v[i] - base);
    }
};

template <class T> __device__ own_words look(const top_args<T> &a, const T *row) {
    enum { FETCH = 4 }; /* vectors on their way at a time */
    own_words own = {-INFINITY, -FLT_MAX, 0.0f, 0};
    float v[8];
    for (int first = threadIdx.x * 8; first < a.vocab; first += FETCH * STRIDE) {
        raw8<T> raw[FETCH];
#pragma unroll
        for (int j = 0; j < FETCH; j++) {
            const int at = first + j * STRIDE, n = min(8, a.vocab - at);
            if (n > 0) raw[j].load(row + at, a.wide, n);
        }
#pragma unroll
        for (int j = 0; j < FETCH; j++) {
            const int at = first + j * STRIDE, n = min(8, a.vocab - at);
            if (n <= 0) break;
            get_words(raw[j], n, v);
            own.add(v, at);
        }
    }
    return own;
}

/* Puts the thread's words that are not below the bound into found. */
template <class T>
__device__ void collect(const top_args<T> &a, const T *row, word_key bound, word_key *found,
                        int *count) {
    float v[8];
    for (int first = threadIdx.x * 8; first < a.vocab; first += STRIDE) {
        const int n = min(8, a.vocab - first);
        raw8<T> raw;
        raw.load(row + first, a.wide, n);
        get_words(raw, n, v);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const word_key key = key_of(v[i], first + i);
            if (key && key >= bound) found[atomicAdd(count, 1)] = key;
        }
    }
}

/* The best 32 of n keys, in the lanes of one warp. */
__device__ word_key best_of(const word_key *found, int n) {
    const int lane = threadIdx.x % 32;
    word_key best = 0;
    for (int first = 0; first < n; first += 32) {
        const word_key x = sorted(first + lane < n ? found[first + lane] : 0);
        best = merged(best, __shfl_sync(~0u, x, 31 - lane));
    }
    return best;
}

template <class T> __global__ void __launch_bounds__(TOP_THREADS) top_kernel(top_args<T> a) {
    extern __shared__ word_key found[]; /* [k, words of a thread] */
    __shared__ word_key lists[TOP_WARPS / 2 * 32], bound;
    __shared__ float sums[TOP_WARPS], highest;
    __shared__ int count;
    const int64_t index = blockIdx.x;
    if (index >= rows_now(a.step, a.rows)) return; /* nobody reads these rows */
    const T *row = a.logits + index * a.ld;
    float *out = a.out + index * a.ld_out;
    const own_words own = look(a, row);
    const word_key mine = key_of(own.best, own.word), best = block_best(mine, lists);
    if (threadIdx.x == 0) {
        count = 0;
        highest = fmaxf(logit_of(best), -FLT_MAX);
    }
    if (threadIdx.x == a.k - 1) bound = best;
    __syncthreads();
    const float sum = group_sum<TOP_THREADS>(own.sum * expf(own.base - highest), sums);
    if (mine && mine >= bound) collect(a, row, bound, found, &count);
    __syncthreads();
    if (threadIdx.x >= 32) return;
    const word_key chosen = best_of(found, count);
    if (threadIdx.x < a.k) {
        out[TOP_BEST + threadIdx.x] = logit_of(chosen);
        out[TOP_BEST + a.k + threadIdx.x] = (float)word_of(chosen);
    }
    if (threadIdx.x == 0) {
        const int asked = a.asked[index];
        out[TOP_LSE] = highest + logf(sum);
        out[TOP_ASKED] = asked < 0 ? 0.0f : to_float(row[asked]);
    }
}

template <class T> fth_err run(const fth_cuda_call *c) {
    const fth_tensor *x = in_of(c, TOP_X), *y = out_of(c, TOP_Y);
    top_args<T> a = {};
    a.logits = (const T *)x->data, a.ld = x->ld;
    a.vocab = x->width, a.k = (y->width - TOP_BEST) / 2;
    a.wide = is_wide(x);
    a.asked = c->batch->side[FTH_TGT].targets;
    a.out = (float *)y->data, a.ld_out = y->ld;
    a.rows = rows_of(x);
    a.step = c->step;
    if (x->rows == 0) return FTH_OK;
    const int bytes = a.k * ceil_div(a.vocab, STRIDE) * 8 * (int)sizeof(word_key);
    CUDA_TRY(
        cudaFuncSetAttribute(top_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "asking for shared memory");
    top_kernel<T><<<(unsigned)x->rows, TOP_THREADS, (size_t)bytes, c->stream>>>(a);
    return fth_cuda_launched();
}
} // namespace

fth_err fth_cuda_top(const fth_cuda_call *c) {
    return is_bf16(in_of(c, TOP_X)) ? run<bf16>(c) : run<float>(c);
}
