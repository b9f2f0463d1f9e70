/* row_product.cuh: products of bf16 whose results stay where they are made until whole rows of them
 * have been used; for sm_90a alone. A cluster of RANKS blocks makes 128 rows of C = A B^T, or A B,
 * each block 256 columns of them. Of a block, eight warps multiply, 16 rows each, one lets the copy
 * engine fetch tiles, and three prepare small things and give their registers away. Of A, which all
 * blocks need, each fetches a part and gives it to all. Behind the last step come tiles as large as
 * C of one or two other matrices, 64 columns after the other, where results take their place. Sums
 * over rows go around the cluster (give, take).
 *
 * (Clusters with a second row of blocks could share B too, but an H200 holds 30 of such four and 66
 * of two. Other work beside the products takes four times as long as alone, in the same warps and
 * in others: better before them, until the first tiles come.) */
#ifndef FTH_BACKEND_CUDA_PRODUCT_ROW_PRODUCT_CUH
#define FTH_BACKEND_CUDA_PRODUCT_ROW_PRODUCT_CUH

#include "backend/cuda/product/wgmma.cuh"

enum {
    ROWS_HIGH = 128, /* of a block */
    ROWS_WIDE = 256,
    ROWS_SLOTS = 4,         /* steps of 64 columns of A that are there or on their way */
    ROWS_MULTIPLIERS = 256, /* threads that multiply: the first ones */
    ROWS_THREADS = ROWS_MULTIPLIERS + 128,
    ROWS_OF_WARP = 16,
    ROWS_SUMS = 2, /* that go around */
    ROWS_VECTORS = 3,
    ROWS_MOST_RANKS = 4,
    ROWS_PARTS = ROWS_WIDE / TILE, /* of a tile as large as C */
    ROWS_PART = ROWS_HIGH * TILE   /* elements of one */
};

/* What a step multiplies: pieces exchanged as in wgmma.cuh's tiles. Later, three parts. */
struct row_slot {
    bf16 a[ROWS_HIGH * TILE]; /* [128, 64] */
    bf16 b[ROWS_WIDE * TILE]; /* [256, 64]; turned: [4, 64 of k, 64 columns] */
};

struct row_shared {
    row_slot slot[ROWS_SLOTS];
    float sums[ROWS_SUMS][ROWS_MOST_RANKS][ROWS_HIGH]; /* from all blocks */
    float vector[ROWS_VECTORS][ROWS_WIDE];
    uint32_t keeps[ROWS_HIGH][ROWS_WIDE / 32]; /* bits of dropout */
    uint64_t full[ROWS_SLOTS], empty[ROWS_SLOTS];
    uint64_t given[ROWS_SUMS][ROWS_MULTIPLIERS / 32];
};

/* ---- barriers ---- */

static __device__ __forceinline__ void barrier_init(uint64_t *b, int count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count));
}

static __device__ __forceinline__ void barrier_expect(uint64_t *b, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(b)),
                 "r"(bytes)
                 : "memory");
}

/* Of another block of the cluster. */
static __device__ __forceinline__ void barrier_arrive_at(uint64_t *b, int rank) {
    asm volatile("{.reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];}" ::"r"(shared_address(b)),
                 "r"(rank)
                 : "memory");
}

static __device__ __forceinline__ void barrier_wait(uint64_t *b, int parity) {
    asm volatile("{.reg .pred there;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n"
                 "@!there bra again;}" ::"r"(shared_address(b)),
                 "r"(parity)
                 : "memory");
}

/* All blocks of the cluster have come here; nothing is said about what they have written. */
static __device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n"
                 "barrier.cluster.wait.aligned;" ::
                     : "memory");
}

/* The three warps that neither multiply nor fetch have prepared something, for those that
 * multiply. */
enum { ROWS_PREPARERS = ROWS_THREADS - ROWS_MULTIPLIERS - 32 };

static __device__ __forceinline__ void prepared_arrive() {
    asm volatile("bar.arrive 2, %0;" ::"n"(ROWS_MULTIPLIERS + ROWS_PREPARERS) : "memory");
}

static __device__ __forceinline__ void prepared_wait() {
    asm volatile("bar.sync 2, %0;" ::"n"(ROWS_MULTIPLIERS + ROWS_PREPARERS) : "memory");
}

/* The threads that multiply wait for each other. */
static __device__ __forceinline__ void multipliers_wait() {
    asm volatile("bar.sync 1, %0;" ::"n"((int)ROWS_MULTIPLIERS) : "memory");
}

/* Registers go to the warps that multiply from the others. */
static __device__ __forceinline__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
}

static __device__ __forceinline__ void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
}

/* ---- products of 64 x 256 ---- */

#define ROW_ACCUMULATORS(MODE, c)                                                                  \
    ACCUMULATORS(MODE, c), ACCUMULATORS(MODE, c + 8), ACCUMULATORS(MODE, c + 16),                  \
        ACCUMULATORS(MODE, c + 24)

/* c = a b^T or c += a b^T over 16 columns; TURNED: a b over 16 rows of b. */
template <bool TURNED>
__device__ __forceinline__ void row_wgmma(float (*c)[4], uint64_t a, uint64_t b, int add) {
    asm volatile(
        "{.reg .pred add; setp.ne.b32 add, %130, 0;"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, "
        "%111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, "
        "%126, %127}, %128, %129, add, 1, 1, 0, %131;}"
        : ROW_ACCUMULATORS("+f", c)
        : "l"(a), "l"(b), "r"(add), "n"(TURNED));
}

/* How the instruction finds b when it is turned: 64 columns every 8 KB, eight rows every 1024
 * bytes. */
static __device__ __forceinline__ uint64_t turned_operand(const bf16 *p) {
    return (uint64_t)(shared_address(p) >> 4 & 0x3fff) | 512ull << 16 | 64ull << 32 | 1ull << 62;
}

/* ---- a block of a product ---- */

struct row_maps {
    CUtensorMap a, b;
    CUtensorMap behind[2]; /* of matrices as large as C */
    bool comes[2];         /* which of them do */
    int steps;             /* k / 64 */
};

template <int RANKS, bool TURNED> struct row_product {
    static constexpr int A_ROWS = ROWS_HIGH / RANKS; /* that a block fetches */
    row_shared *s;
    const row_maps &m;
    int rank;   /* of the block in its cluster */
    int row;    /* its first */
    int column; /* its first */

    __device__ __forceinline__ row_product(row_shared *shared, const row_maps &maps)
        : s(shared), m(maps) {
        asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(rank));
        row = (int)blockIdx.y * ROWS_HIGH, column = (int)blockIdx.x * ROWS_WIDE;
        if (threadIdx.x == 0) {
            for (int k = 0; k < ROWS_SLOTS; k++) {
                barrier_init(&s->full[k], 1);
                barrier_init(&s->empty[k], RANKS * 2); /* by two groups of each block */
            }
            for (int k = 0; k < ROWS_SUMS * ROWS_MULTIPLIERS / 32; k++) {
                barrier_init(&s->given[0][k], 1);
                barrier_expect(&s->given[0][k], RANKS * ROWS_OF_WARP * (int)sizeof(float));
            }
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        publish();
        cluster_wait();
    }

    __device__ __forceinline__ static bool multiplies() {
        return threadIdx.x < ROWS_MULTIPLIERS;
    }

    /* Said so that the compiler sees that it is the same for all lanes of a warp. */
    __device__ __forceinline__ static bool fetches() {
        return __shfl_sync(~0u, (int)threadIdx.x / 32, 0) == ROWS_MULTIPLIERS / 32;
    }

    /* True in one lane of a warp, which the copy engine's instructions want to be told this way. */
    __device__ __forceinline__ static bool is_elected() {
        uint32_t elected;
        asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p;}"
                     : "=r"(elected));
        return elected;
    }

    /* The number of a thread among those that prepare, negative: it is none. */
    __device__ __forceinline__ static int preparer() {
        return (int)threadIdx.x - ROWS_MULTIPLIERS - 32;
    }

    /* ---- fetching ---- */

    /* Starts to copy a tile for all blocks. */
    __device__ __forceinline__ static void share(bf16 *to, const CUtensorMap &map, int at_row,
                                                 int column, uint64_t *barrier) {
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
            ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
            "l"(&map), "r"(column), "r"(at_row), "r"(shared_address(barrier)),
            "h"((uint16_t)((1u << RANKS) - 1))
            : "memory");
    }

    /* Starts to copy groups of 64 columns of 64 rows. */
    __device__ __forceinline__ static void fetch_groups(bf16 *to, const CUtensorMap &map,
                                                        int at_row, int group, uint64_t *barrier) {
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(to)),
                     "l"(&map), "r"(0), "r"(at_row), "r"(group), "r"(shared_address(barrier))
                     : "memory");
    }

    /* One step's part of A for all blocks, and this block's B. */
    __device__ __forceinline__ void fetch_step(int step) const {
        row_slot *slot = &s->slot[step % ROWS_SLOTS];
        uint64_t *there = &s->full[step % ROWS_SLOTS];
        barrier_expect(there, (int)sizeof *slot);
        share(slot->a + rank * A_ROWS * TILE, m.a, row + rank * A_ROWS, step * TILE, there);
        if constexpr (TURNED)
            fetch_groups(slot->b, m.b, step * TILE, column / TILE, there);
        else
            fetch_tile(slot->b, m.b, column, step * TILE, there);
    }

    /* Parts of matrices behind the product are numbered one matrix after the other; three lie in a
     * slot. */
    __device__ __forceinline__ bool part_comes(int part) const {
        return part < 2 * ROWS_PARTS && m.comes[part / ROWS_PARTS];
    }

    __device__ __forceinline__ int step_of(int part) const {
        return m.steps + part / 3;
    }

    __device__ __forceinline__ bf16 *part_at(int part) const {
        return s->slot[step_of(part) % ROWS_SLOTS].a + part % 3 * ROWS_PART;
    }

    __device__ __forceinline__ void fetch_parts(int step) const {
        const int first = (step - m.steps) * 3;
        uint64_t *there = &s->full[step % ROWS_SLOTS];
        int n = 0;
        for (int part = first; part < first + 3; part++) n += part_comes(part);
        barrier_expect(there, n * ROWS_PART * (int)sizeof(bf16));
        for (int part = first; part < first + 3; part++)
            if (part_comes(part))
                fetch_tile(part_at(part), m.behind[part / ROWS_PARTS], row,
                           column + part % ROWS_PARTS * TILE, there);
    }

    /* Brings the parts into the cache: they can be fetched at the end only. */
    __device__ __forceinline__ void announce_parts() const {
        for (int part = 0; part < 2 * ROWS_PARTS; part++)
            if (part_comes(part))
                asm volatile(
                    "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(
                        &m.behind[part / ROWS_PARTS]),
                    "r"(column + part % ROWS_PARTS * TILE), "r"(row)
                    : "memory");
    }

    /* All of a product; by one warp. */
    __device__ __forceinline__ void fetch_all() const {
        for (int k = 0; k <= step_of(2 * ROWS_PARTS - 1); k++) {
            if (k >= ROWS_SLOTS) barrier_wait(&s->empty[k % ROWS_SLOTS], (k / ROWS_SLOTS & 1) ^ 1);
            if (!is_elected()) continue;
            if (k == 1) announce_parts();
            if (k < m.steps)
                fetch_step(k);
            else
                fetch_parts(k);
        }
    }

    /* ---- multiplying; by the multipliers ---- */

    /* A slot is no longer needed here: says so to all blocks that fill it. */
    __device__ __forceinline__ void release(int step) const {
        const int k = (int)threadIdx.x % 128;
        if (k < RANKS) barrier_arrive_at(&s->empty[step % ROWS_SLOTS], k);
    }

    __device__ __forceinline__ void wait_for(int step) const {
        barrier_wait(&s->full[step % ROWS_SLOTS], step / ROWS_SLOTS & 1);
    }

    /* c = 64 rows of the product; when it ends, the parts behind it are there. */
    __device__ __forceinline__ void multiply(float (*c)[4]) const {
        const int group = (int)threadIdx.x / 128;
        for (int step = 0; step < m.steps; step++) {
            const row_slot *slot = &s->slot[step % ROWS_SLOTS];
            wait_for(step);
            const uint64_t a = operand(slot->a + group * TILE_SIZE);
            const uint64_t b = TURNED ? turned_operand(slot->b) : operand(slot->b);
            products_begin();
#pragma unroll
            for (int k = 0; k < TILE; k += 16)
                row_wgmma<TURNED>(c, a + k / PIECE, b + (TURNED ? k * TILE : k) / PIECE,
                                  step > 0 || k > 0);
            products_commit();
            products_wait<1>();
            if (step > 0) release(step - 1);
        }
        products_wait<0>();
#pragma unroll
        for (int n = 0; n < ROWS_WIDE / 8; n += 8) settle(c + n);
        for (int step = m.steps; step <= step_of(2 * ROWS_PARTS - 1); step++) wait_for(step);
    }

    /* Where a thread's pair of columns n * 8 of a row lies in a matrix behind. */
    __device__ __forceinline__ uint32_t *pair_at(int matrix, int r, int n) const {
        return reinterpret_cast<uint32_t *>(part_at(matrix * ROWS_PARTS + n / 8) +
                                            tile_at(r, n % 8 * 8) + threadIdx.x % 4 * 2);
    }

    /* The lane's eight columns of a row. */
    __device__ __forceinline__ bf16 *piece_at(int matrix, int r) const {
        const int lane = (int)threadIdx.x % 32;
        return part_at(matrix * ROWS_PARTS + lane / 8) + tile_at(r, lane % 8 * 8);
    }

    /* Its pair of columns of a vector. */
    __device__ __forceinline__ float2 pair_of(int vector, int n) const {
        return *reinterpret_cast<const float2 *>(&s->vector[vector][n * 8 + threadIdx.x % 4 * 2]);
    }

    /* Before a matrix behind is written to memory: all have put their rows down. */
    __device__ __forceinline__ static void rows_are_down() {
        publish();
        multipliers_wait();
    }

    /* Starts to write it; a warp does one part of it, the first of the four is warp `first`. */
    __device__ __forceinline__ void write(const CUtensorMap &map, int matrix, int first) const {
        const int part = __shfl_sync(~0u, (int)threadIdx.x / 32, 0) - first;
        if (part >= 0 && part < ROWS_PARTS && is_elected())
            asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group "
                         "[%0, {%1, %2}], [%3];\n"
                         "cp.async.bulk.commit_group;" ::"l"(&map),
                         "r"(column + part * TILE), "r"(row),
                         "r"(shared_address(part_at(matrix * ROWS_PARTS + part)))
                         : "memory");
    }

    /* Until what is to be written has been read. */
    __device__ __forceinline__ static void writes_wait() {
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        __syncwarp();
    }

    /* ---- sums ---- */

    /* Over the four threads that have a row of c. */
    __device__ __forceinline__ static float quad_sum(float x) {
        x += __shfl_xor_sync(~0u, x, 1);
        return x + __shfl_xor_sync(~0u, x, 2);
    }

    /* Gives a number of a row of the warp to all blocks. */
    __device__ __forceinline__ void give(int which, int r, float x) const {
#pragma unroll
        for (int k = 0; k < RANKS; k++)
            asm volatile("{.reg .b32 there, barrier;\n"
                         "mapa.shared::cluster.u32 there, %0, %2;\n"
                         "mapa.shared::cluster.u32 barrier, %1, %2;\n"
                         "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [there], %3, "
                         "[barrier];}" ::"r"(shared_address(&s->sums[which][rank][r])),
                         "r"(shared_address(&s->given[which][r / ROWS_OF_WARP])), "r"(k),
                         "r"(__float_as_uint(x))
                         : "memory");
    }

    /* Waits for what has been given of all the warp's rows. */
    __device__ __forceinline__ void take(int which) const {
        barrier_wait(&s->given[which][threadIdx.x / 32], 0);
    }

    /* What block k gave. */
    __device__ __forceinline__ float taken(int which, int k, int r) const {
        return s->sums[which][k][r];
    }

    /* The sum of all. */
    __device__ __forceinline__ float taken(int which, int r) const {
        float sum = taken(which, 0, r);
#pragma unroll
        for (int k = 1; k < RANKS; k++) sum += taken(which, k, r);
        return sum;
    }
};

/* Adds up 2 HALF numbers over the lanes that differ in the bits from BIT down to LAST. Each of a
 * lane's bits chooses a half of what is left: v[0], ... are then sums of all those lanes. */
template <int HALF, int BIT, int LAST> __device__ __forceinline__ void fold(float *v) {
    const bool later = threadIdx.x & BIT;
#pragma unroll
    for (int k = 0; k < HALF; k++) {
        const float low = v[k], high = v[k + HALF];
        v[k] = (later ? high : low) + __shfl_xor_sync(~0u, later ? low : high, BIT);
    }
    if constexpr (BIT > LAST) fold<HALF / 2, BIT / 2, LAST>(v);
}

/* ---- launching ---- */

/* Tiles as the blocks fetch them: x [rows, columns]. */
static inline fth_err row_map_a(CUtensorMap *map, int ranks, const bf16 *x, int64_t ld,
                                int64_t rows, int64_t columns) {
    return fth_cuda_map_tiles(map, x, ld, rows, columns, ROWS_HIGH / ranks);
}

static inline fth_err row_map_b(CUtensorMap *map, bool turned, const bf16 *x, int64_t ld,
                                int64_t rows, int64_t columns) {
    return turned ? fth_cuda_map_groups(map, x, ld, rows, columns, TILE, ROWS_PARTS)
                  : fth_cuda_map_tiles(map, x, ld, rows, columns, ROWS_WIDE);
}

static inline fth_err row_map_tile(CUtensorMap *map, const bf16 *x, int64_t ld, int64_t rows,
                                   int64_t columns) {
    return fth_cuda_map_tiles(map, x, ld, rows, columns, ROWS_HIGH);
}

/* A kernel for the blocks of a product [rows, columns]. */
template <class Args>
fth_err launch_rows(cudaStream_t stream, void (*kernel)(const Args), const Args &a, int64_t rows,
                    int64_t columns) {
    const int bytes = (int)sizeof(row_shared) + 1024;
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "asking for shared memory");
    const dim3 blocks((unsigned)(columns / ROWS_WIDE), (unsigned)ceil_div(rows, ROWS_HIGH));
    kernel<<<blocks, ROWS_THREADS, bytes, stream>>>(a);
    return fth_cuda_launched();
}

/* The shared memory of a block, at a multiple of 1024 bytes. */
static __device__ __forceinline__ row_shared *row_shared_of(char *memory) {
    return reinterpret_cast<row_shared *>(memory + (1024 - shared_address(memory) % 1024) % 1024);
}

#endif
