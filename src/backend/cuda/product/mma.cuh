/* mma.cuh: the tensor cores' m16n8k16 product of bf16, and how tiles come from memory to it. All of
 * it exists from compute capability 8.0 on.
 *
 * In a warp, group g = lane / 4 and t = lane % 4. A product's accumulator c[4] holds rows g and g +
 * 8 (c[0..1], c[2..3]), columns 2t and 2t + 1. Two neighbouring accumulators along the columns are,
 * rounded to bf16, the A operand of a product over these 16 columns. */
#ifndef FTH_BACKEND_CUDA_PRODUCT_MMA_CUH
#define FTH_BACKEND_CUDA_PRODUCT_MMA_CUH

#include "backend/cuda/vec.cuh"

/* c += a b: a 16 x 16, b 16 x 8. */
static __device__ __forceinline__ void mma(float c[4], const uint32_t a[4], uint32_t b0,
                                           uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* Four 8 x 8 matrices; lane l gives the address of row l % 8 of matrix l / 8. */
static __device__ __forceinline__ void load_matrices(uint32_t r[4], const bf16 *p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p)));
}

static __device__ __forceinline__ void load_matrices_turned(uint32_t r[4], const bf16 *p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p)));
}

/* 16 bytes to shared memory, zeros where they are not valid. */
static __device__ __forceinline__ void copy16(bf16 *to, const bf16 *from, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                 "l"(from), "r"(valid ? 16 : 0));
}

static __device__ __forceinline__ void copies_commit() {
    asm volatile("cp.async.commit_group;");
}

/* Waits until at most N groups of copies are under way. */
template <int N> __device__ __forceinline__ void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N));
}

/* Rows of COLUMNS bf16 in shared memory, 16 bytes apart from a power of two: eight rows that
 * ldmatrix reads lie in different banks. */
template <int COLUMNS> struct tile {
    static constexpr int PITCH = COLUMNS + 8;

    /* Starts to copy rows [row, row + ROWS) of x, those below `end`; `pieces` of 16 bytes each. */
    template <int ROWS, int THREADS>
    static __device__ __forceinline__ void fetch(bf16 *to, const bf16 *x, int64_t ld, int row,
                                                 int end, int pieces) {
        constexpr int PER_ROW = COLUMNS / 8;
#pragma unroll
        for (int i = 0; i < ROWS * PER_ROW / THREADS; i++) {
            const int k = i * THREADS + (int)threadIdx.x, r = k / PER_ROW, piece = k % PER_ROW;
            const bool valid = row + r < end && piece < pieces;
            const bf16 *from = valid ? x + (row + r) * ld + piece * 8 : x;
            copy16(to + r * PITCH + piece * 8, from, valid);
        }
    }

    /* A operand: rows [row, row + 16), columns [column, column + 16). */
    static __device__ __forceinline__ void load_a(uint32_t a[4], const bf16 *t, int row,
                                                  int column) {
        const int lane = (int)threadIdx.x % 32;
        load_matrices(a, t + (row + lane % 16) * PITCH + column + lane / 16 * 8);
    }

    /* B operands of the transpose: b[0..1] for rows [row, row + 8) of the tile, b[2..3] for the
     * next eight, over columns [column, column + 16): products with x^T. */
    static __device__ __forceinline__ void load_b_turned(uint32_t b[4], const bf16 *t, int row,
                                                         int column) {
        const int lane = (int)threadIdx.x % 32;
        load_matrices(b, t + (row + lane % 8 + lane / 16 * 8) * PITCH + column + lane / 8 % 2 * 8);
    }

    /* B operands: rows [row, row + 16) of the tile, columns [column, column + 8) in b[0..1] and the
     * next eight in b[2..3]: products with x. */
    static __device__ __forceinline__ void load_b(uint32_t b[4], const bf16 *t, int row,
                                                  int column) {
        const int lane = (int)threadIdx.x % 32;
        load_matrices_turned(b, t + (row + lane % 16) * PITCH + column + lane / 16 * 8);
    }
};

/* out[N / 8] += a tile's 16 rows, given as operands, times the transpose of N rows of `other`. */
template <int COLUMNS, int N>
__device__ __forceinline__ void times_turned(float (*out)[4], const bf16 *mine, int row,
                                             const bf16 *other) {
#pragma unroll
    for (int k = 0; k < COLUMNS; k += 16) {
        uint32_t a[4];
        tile<COLUMNS>::load_a(a, mine, row, k);
#pragma unroll
        for (int n = 0; n < N; n += 16) {
            uint32_t b[4];
            tile<COLUMNS>::load_b_turned(b, other, n, k);
            mma(out[n / 8], a, b[0], b[1]);
            mma(out[n / 8 + 1], a, b[2], b[3]);
        }
    }
}

/* out[COLUMNS / 8] += p times K rows of `other`; p [K / 8] are accumulators. */
template <int COLUMNS, int K>
__device__ __forceinline__ void times(float (*out)[4], const float (*p)[4], const bf16 *other) {
#pragma unroll
    for (int k = 0; k < K; k += 16) {
        const float *low = p[k / 8], *high = p[k / 8 + 1];
        const uint32_t a[4] = {pack2(low[0], low[1]), pack2(low[2], low[3]),
                               pack2(high[0], high[1]), pack2(high[2], high[3])};
#pragma unroll
        for (int n = 0; n < COLUMNS; n += 16) {
            uint32_t b[4];
            tile<COLUMNS>::load_b(b, other, k, n);
            mma(out[n / 8], a, b[0], b[1]);
            mma(out[n / 8 + 1], a, b[2], b[3]);
        }
    }
}

/* 2^x, good to 2 units in the last place; 0 for minus infinity. */
static __device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Writes a warp's 16 rows of accumulators as bf16: through its own 16 rows of a tile in shared
 * memory, then 16 bytes at a time to rows [row, end) of x. */
template <int COLUMNS>
__device__ __forceinline__ void write_rows(const float (*c)[4], const float scale[2], bf16 *rows,
                                           bf16 *x, int64_t ld, int64_t row, int64_t end,
                                           int pieces) {
    constexpr int PITCH = tile<COLUMNS>::PITCH, PER_ROW = COLUMNS / 8;
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++) {
        uint32_t *low = reinterpret_cast<uint32_t *>(rows + g * PITCH + n * 8 + t * 2);
        uint32_t *high = reinterpret_cast<uint32_t *>(rows + (g + 8) * PITCH + n * 8 + t * 2);
        *low = pack2(c[n][0] * scale[0], c[n][1] * scale[0]);
        *high = pack2(c[n][2] * scale[1], c[n][3] * scale[1]);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16 * PER_ROW / 32; i++) {
        const int k = i * 32 + lane, r = k / PER_ROW, piece = k % PER_ROW;
        if (row + r < end && piece < pieces)
            *reinterpret_cast<uint4 *>(x + (row + r) * ld + piece * 8) =
                *reinterpret_cast<const uint4 *>(rows + r * PITCH + piece * 8);
    }
}

#endif
