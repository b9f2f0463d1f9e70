/* vec.cuh: eight neighbouring elements of a row at a time, as floats. Eight because that is 16
 * bytes of bf16 and one block of dropout's random numbers. */
#ifndef FTH_BACKEND_CUDA_VEC_CUH
#define FTH_BACKEND_CUDA_VEC_CUH

#include "backend/cuda/cuda.cuh"

static __device__ __forceinline__ float to_float(float x) {
    return x;
}

static __device__ __forceinline__ float to_float(bf16 x) {
    return __bfloat162float(x);
}

template <class T> __device__ __forceinline__ T from_float(float x);
template <> __device__ __forceinline__ float from_float<float>(float x) {
    return x;
}
template <> __device__ __forceinline__ bf16 from_float<bf16>(float x) {
    return __float2bfloat16_rn(x);
}

/* What x is once stored. */
template <class T> __device__ __forceinline__ float rounded(float x) {
    return to_float(from_float<T>(x));
}

static __device__ __forceinline__ uint32_t pack2(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t *>(&pair);
}

static __device__ __forceinline__ float2 unpack2(uint32_t word) {
    return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162 *>(&word));
}

/* n of the eight exist; wide: all do, and p is a multiple of 16 bytes. */
static __device__ __forceinline__ void load8(const float *p, bool wide, int n, float v[8]) {
    if (wide) {
        const float4 a = reinterpret_cast<const float4 *>(p)[0];
        const float4 b = reinterpret_cast<const float4 *>(p)[1];
        v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
        v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = i < n ? p[i] : 0.0f;
}

static __device__ __forceinline__ void load8(const bf16 *p, bool wide, int n, float v[8]) {
    if (wide) {
        const uint4 raw = *reinterpret_cast<const uint4 *>(p);
        const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float2 pair = unpack2(words[i]);
            v[2 * i] = pair.x, v[2 * i + 1] = pair.y;
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = i < n ? to_float(p[i]) : 0.0f;
}

static __device__ __forceinline__ void store8(float *p, bool wide, int n, const float v[8]) {
    if (wide) {
        reinterpret_cast<float4 *>(p)[0] = make_float4(v[0], v[1], v[2], v[3]);
        reinterpret_cast<float4 *>(p)[1] = make_float4(v[4], v[5], v[6], v[7]);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < n) p[i] = v[i];
}

static __device__ __forceinline__ void store8(bf16 *p, bool wide, int n, const float v[8]) {
    if (wide) {
        *reinterpret_cast<uint4 *>(p) =
            make_uint4(pack2(v[0], v[1]), pack2(v[2], v[3]), pack2(v[4], v[5]), pack2(v[6], v[7]));
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < n) p[i] = from_float<bf16>(v[i]);
}

/* Eight elements as they lie in memory: kernels fetch all that they need of a row before they use
 * any of it, so that the latencies of the memory overlap. */
template <class T> struct raw8;

template <> struct raw8<bf16> {
    uint4 words;
    __device__ __forceinline__ void load(const bf16 *p, bool wide, int n) {
        if (wide) {
            words = *reinterpret_cast<const uint4 *>(p);
            return;
        }
        float v[8];
        load8(p, false, n, v);
        words =
            make_uint4(pack2(v[0], v[1]), pack2(v[2], v[3]), pack2(v[4], v[5]), pack2(v[6], v[7]));
    }
    /* Of what nobody reads again soon: it leaves the cache first. */
    __device__ __forceinline__ void load_once(const bf16 *p, bool wide, int n) {
        if (wide)
            words = __ldcs(reinterpret_cast<const uint4 *>(p));
        else
            load(p, false, n);
    }
    __device__ __forceinline__ void zero() {
        words = make_uint4(0, 0, 0, 0);
    }
    __device__ __forceinline__ void get(float v[8]) const {
        const uint32_t all[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float2 pair = unpack2(all[i]);
            v[2 * i] = pair.x, v[2 * i + 1] = pair.y;
        }
    }
};

template <> struct raw8<float> {
    float v8[8];
    __device__ __forceinline__ void load(const float *p, bool wide, int n) {
        load8(p, wide, n, v8);
    }
    __device__ __forceinline__ void load_once(const float *p, bool wide, int n) {
        load(p, wide, n);
    }
    __device__ __forceinline__ void zero() {
#pragma unroll
        for (int i = 0; i < 8; i++) v8[i] = 0.0f;
    }
    __device__ __forceinline__ void get(float v[8]) const {
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] = v8[i];
    }
};

static __device__ __forceinline__ void fill8(float v[8], float x) {
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = x;
}

/* ---- sums ---- */

template <class V> __device__ __forceinline__ V warp_sum(V x) {
#pragma unroll
    for (int k = 16; k > 0; k >>= 1) x += __shfl_xor_sync(~0u, x, k);
    return x;
}

static __device__ __forceinline__ float warp_max(float x) {
#pragma unroll
    for (int k = 16; k > 0; k >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, k));
    return x;
}

/* Sum over a group of GROUP threads, in every thread of it. Groups of more than a warp are whole
 * blocks; shared [GROUP / 32]. */
template <int GROUP, class V> __device__ __forceinline__ V group_sum(V x, V *shared) {
    x = warp_sum(x);
    if (GROUP == 32) return x;
    __syncthreads(); /* the last sum has been read */
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    x = threadIdx.x % 32 < GROUP / 32 ? shared[threadIdx.x % 32] : (V)0;
    return warp_sum(x);
}

#endif
