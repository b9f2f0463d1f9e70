/* wgmma.cuh: products of bf16 tiles by Hopper's tensor cores, and how tiles come from memory to
 * them; for sm_90a alone. A block is four warps and makes products of 64 rows, each warp 16 of
 * them. The instruction reads tiles from shared memory itself and runs beside the rest: a product
 * begins, is committed, and is waited for.
 *
 * A tile is 64 rows of 64 columns, those of a head: rows of 128 bytes whose pieces of 16 bytes are
 * exchanged (piece ^ row % 8), so that eight rows of a column lie in different banks. It begins at
 * a multiple of 1024 bytes. Accumulators c [8][4] are those of mma.cuh, 64 columns of them. */
#ifndef FTH_BACKEND_CUDA_PRODUCT_WGMMA_CUH
#define FTH_BACKEND_CUDA_PRODUCT_WGMMA_CUH

#include "backend/cuda/attention/attention.cuh"
#include "backend/cuda/product/mma.cuh"
#include "backend/cuda/product/tensor_map.cuh"

enum {
    TILE = 64,           /* rows and columns of a tile */
    TILE_SIZE = 64 * 64, /* its elements */
    PIECE = 8,           /* elements of 16 bytes */
    THREADS = 128        /* of a block */
};

/* Where (row, column) is in a tile, in elements; column is a multiple of 8. */
static __device__ __forceinline__ int tile_at(int row, int column) {
    return row * TILE + ((column / 8) ^ (row % 8)) * 8;
}

/* ---- copies to shared memory ---- */

/* BYTES, 4 or 8, zeros where they are not valid. */
template <int BYTES>
__device__ __forceinline__ void copy_few(void *to, const void *from, bool valid) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)),
                 "l"(from), "n"(BYTES), "r"(valid ? BYTES : 0));
}

/* Waits for all copies of this thread but those of the copy engine. */
static __device__ __forceinline__ void copies_wait_all() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* What this thread has written to shared memory, or read there, comes before what products and the
 * copy engine do after the next barrier. */
static __device__ __forceinline__ void publish() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* What arrives for a block's steps. Everything that is fetched in one step is for the next one; two
 * barriers in shared memory take turns in counting its bytes. */
struct arrivals {
    uint64_t *barrier; /* [2] */
    int step;          /* -1 before the first */

    __device__ __forceinline__ arrivals(uint64_t *shared) : barrier(shared), step(-1) {
        if (threadIdx.x == 0) {
            for (int k = 0; k < 2; k++)
                asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(shared + k)));
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        publish();
        __syncthreads();
    }

    /* Which of two buffers belongs to the step. */
    __device__ __forceinline__ int stage() const {
        return step & 1;
    }

    /* So many tiles and other bytes are going to be fetched; one thread says it. */
    __device__ __forceinline__ uint64_t *expect(int tiles, int more = 0) const {
        uint64_t *next = barrier + ((step + 1) & 1);
        asm volatile(
            "mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(next)),
            "r"(tiles * TILE_SIZE * (int)sizeof(bf16) + more)
            : "memory");
        return next;
    }

    /* The next step, when all that has been fetched for it is there and all threads have done the
     * one before. */
    __device__ __forceinline__ void next_step() {
        step++;
        copies_wait_all();
        asm volatile("{.reg .pred there;\n"
                     "again: mbarrier.try_wait.parity.shared.b64 there, [%0], %1;\n"
                     "@!there bra again;}" ::"r"(shared_address(barrier + stage())),
                     "r"(step >> 1 & 1)
                     : "memory");
        publish();
        __syncthreads();
    }
};

/* Starts to copy the tile at (row, column); by one thread. */
static __device__ __forceinline__ void fetch_tile(bf16 *to, const CUtensorMap &map, int row,
                                                  int column, uint64_t *barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
                 "l"(&map), "r"(column), "r"(row), "r"(shared_address(barrier))
                 : "memory");
}

/* Tiles of two matrices that a block walks over in pairs: keys and values, or queries and do. */
struct pair_feed {
    const CUtensorMap &first_map, &second_map;
    bf16 *first, *second; /* [2, TILE_SIZE] of shared memory each */
    const arrivals &to;

    /* For the next step; by one thread. */
    __device__ __forceinline__ void fetch(int row, int column, uint64_t *barrier) const {
        const int stage = to.stage() ^ 1;
        fetch_tile(first + stage * TILE_SIZE, first_map, row, column, barrier);
        fetch_tile(second + stage * TILE_SIZE, second_map, row, column, barrier);
    }

    /* The same where nothing else is fetched; by all threads. */
    __device__ __forceinline__ void next(int row, int column) const {
        if (threadIdx.x == 0) fetch(row, column, to.expect(2));
    }
};

/* ---- products ---- */

#define ACCUMULATORS(MODE, c)                                                                      \
    MODE((c)[0][0]), MODE((c)[0][1]), MODE((c)[0][2]), MODE((c)[0][3]), MODE((c)[1][0]),           \
        MODE((c)[1][1]), MODE((c)[1][2]), MODE((c)[1][3]), MODE((c)[2][0]), MODE((c)[2][1]),       \
        MODE((c)[2][2]), MODE((c)[2][3]), MODE((c)[3][0]), MODE((c)[3][1]), MODE((c)[3][2]),       \
        MODE((c)[3][3]), MODE((c)[4][0]), MODE((c)[4][1]), MODE((c)[4][2]), MODE((c)[4][3]),       \
        MODE((c)[5][0]), MODE((c)[5][1]), MODE((c)[5][2]), MODE((c)[5][3]), MODE((c)[6][0]),       \
        MODE((c)[6][1]), MODE((c)[6][2]), MODE((c)[6][3]), MODE((c)[7][0]), MODE((c)[7][1]),       \
        MODE((c)[7][2]), MODE((c)[7][3])
#define WGMMA(ADD)                                                                                 \
    "{.reg .pred add; setp.ne.b32 add, " ADD ", 0;"                                                \
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "                                        \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "  \
    "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "

/* How the instruction finds an operand: rows of 128 bytes with exchanged pieces, eight rows every
 * 1024 bytes. PIECE elements further the number is one higher. */
static __device__ __forceinline__ uint64_t operand(const bf16 *p) {
    return (uint64_t)(shared_address(p) >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

/* c = a b^T (FIRST) or c += a b^T over 16 columns; TURNED: of a^T and b, over 16 rows. */
template <bool FIRST, bool TURNED>
__device__ __forceinline__ void wgmma(float (*c)[4], uint64_t a, uint64_t b) {
    if (FIRST)
        asm volatile(WGMMA("0") "%32, %33, add, 1, 1, %34, %34;}"
                     : ACCUMULATORS("=f", c)
                     : "l"(a), "l"(b), "n"(TURNED));
    else
        asm volatile(WGMMA("1") "%32, %33, add, 1, 1, %34, %34;}"
                     : ACCUMULATORS("+f", c)
                     : "l"(a), "l"(b), "n"(TURNED));
}

/* c += a b over 16 rows of b. */
static __device__ __forceinline__ void wgmma(float (*c)[4], const uint32_t a[4], uint64_t b) {
    asm volatile(WGMMA("1") "{%32, %33, %34, %35}, %36, add, 1, 1, 1;}"
                 : ACCUMULATORS("+f", c)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

static __device__ __forceinline__ void products_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void products_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most PENDING of the committed are under way. */
template <int PENDING> __device__ __forceinline__ void products_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* Keeps the compiler from using c before the wait above. */
static __device__ __forceinline__ void settle(float (*c)[4]) {
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) asm volatile("" : "+f"(c[n][i])::"memory");
}

/* Commits, waits for all, and c may be used. */
static __device__ __forceinline__ void products_end(float (*c)[4]) {
    products_commit();
    products_wait<0>();
    settle(c);
}

/* out = a b^T. */
static __device__ __forceinline__ void multiply_turned(float (*out)[4], const bf16 *a,
                                                       const bf16 *b) {
    const uint64_t left = operand(a), right = operand(b);
    wgmma<true, false>(out, left, right);
#pragma unroll
    for (int k = 16; k < TILE; k += 16)
        wgmma<false, false>(out, left + k / PIECE, right + k / PIECE);
}

/* out = a^T b. */
static __device__ __forceinline__ void turned_multiply(float (*out)[4], const bf16 *a,
                                                       const bf16 *b) {
    const uint64_t left = operand(a), right = operand(b);
    wgmma<true, true>(out, left, right);
#pragma unroll
    for (int k = 16; k < TILE; k += 16)
        wgmma<false, true>(out, left + k * TILE / PIECE, right + k * TILE / PIECE);
}

/* Accumulators as left operands, 16 columns each. */
struct left {
    uint32_t a[TILE / 16][4];
};

static __device__ __forceinline__ left left_of(const float (*p)[4]) {
    left l;
#pragma unroll
    for (int k = 0; k < TILE / 16; k++) {
        const float *low = p[2 * k], *high = p[2 * k + 1];
        l.a[k][0] = pack2(low[0], low[1]), l.a[k][1] = pack2(low[2], low[3]);
        l.a[k][2] = pack2(high[0], high[1]), l.a[k][3] = pack2(high[2], high[3]);
    }
    return l;
}

/* out += a b. */
static __device__ __forceinline__ void multiply(float (*out)[4], const left &a, const bf16 *b) {
    const uint64_t right = operand(b);
#pragma unroll
    for (int k = 0; k < TILE; k += 16) wgmma(out, a.a[k / 16], right + k * TILE / PIECE);
}

/* ---- from accumulators ---- */

/* Writes a warp's 16 rows of left operands to its rows of a tile. */
static __device__ __forceinline__ void write_left(const left &p, bf16 *to) {
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int row = (int)threadIdx.x / 32 * 16 + g;
#pragma unroll
    for (int k = 0; k < TILE / 16; k++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            *reinterpret_cast<uint32_t *>(to + tile_at(row + i % 2 * 8, k * 16 + i / 2 * 8) +
                                          t * 2) = p.a[k][i];
}

/* Writes a block's 64 rows of accumulators as bf16, each warp through its own rows of a tile in
 * shared memory, then 16 bytes at a time to rows [row, end) of x. */
static __device__ __forceinline__ void write_tile(const float (*c)[4], const float scale[2],
                                                  bf16 *through, bf16 *x, int64_t ld, int64_t row,
                                                  int64_t end) {
    constexpr int PER_ROW = TILE / 8;
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int first = (int)threadIdx.x / 32 * 16; /* of the warp */
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            *reinterpret_cast<uint32_t *>(through + tile_at(first + g + h * 8, n * 8) + t * 2) =
                pack2(c[n][2 * h] * scale[h], c[n][2 * h + 1] * scale[h]);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16 * PER_ROW / 32; i++) {
        const int k = i * 32 + lane, r = first + k / PER_ROW, piece = k % PER_ROW;
        if (row + r < end)
            *reinterpret_cast<uint4 *>(x + (row + r) * ld + piece * 8) =
                *reinterpret_cast<const uint4 *>(through + tile_at(r, piece * 8));
    }
    __syncwarp();
}

/* Adds sums over the warp's 16 rows of a tile that it has written to those of two columns, 2 lane
 * and the one behind it. */
static __device__ __forceinline__ void add_column_sums(const bf16 *tile, float2 *sums) {
    int thread; /* asked for here, or addresses would be kept in registers all the time */
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    const int lane = thread % 32, first = thread / 32 * 16;
    float2 sum = *sums;
#pragma unroll
    for (int r = 0; r < 16; r++) {
        const float2 x = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162 *>(
            tile + tile_at(first + r, lane / 4 * 8) + lane % 4 * 2));
        sum.x += x.x, sum.y += x.y;
    }
    *sums = sum;
    __syncwarp();
}

/* ---- the walk over a list of tiles ---- */

/* A tile of a head that a block is to do. */
struct place {
    int head, column; /* its first column */
    int row, row_end; /* as in fth_cuda_tile */
    int begin, end;   /* as there */
};

/* A block's way through a list of tiles, for the head blockIdx.x: one of them in each round. Rounds
 * go forth and back, so that who had the most to do in one has the least in the next. What the list
 * says about a tile is fetched together with the rows of the one before. */
struct walk {
    const fth_cuda_tile *list;
    int tiles;             /* of the list */
    fth_cuda_tile *record; /* [2] in shared memory, by rounds in turn */

    __device__ __forceinline__ int tile_in(int round) const {
        const int blocks = (int)gridDim.y, block = (int)blockIdx.y;
        return round * blocks + (round % 2 ? blocks - 1 - block : block);
    }

    __device__ __forceinline__ bool has(int round) const {
        return tile_in(round) < tiles;
    }

    __device__ __forceinline__ const fth_cuda_tile *about(int round) const {
        return record + round % 2;
    }

    __device__ __forceinline__ place at(int round) const {
        const fth_cuda_tile *t = about(round);
        const int head = (int)blockIdx.x;
        return {head, head * TILE, t->row, t->row_end, t->begin, t->end};
    }

    /* The first record; all threads have it after their next barrier. */
    __device__ __forceinline__ void begin() const {
        const int part = (int)threadIdx.x * 8; /* of 16 bytes */
        if (part < 16)
            copy16(reinterpret_cast<bf16 *>(record) + part,
                   reinterpret_cast<const bf16 *>(list + tile_in(0)) + part, true);
        copies_wait_all();
    }

    /* Bytes of the record of a round, 0: there is none. */
    __device__ __forceinline__ int bytes(int round) const {
        return has(round) ? (int)sizeof *record : 0;
    }

    /* Starts to copy it; by one thread. */
    __device__ __forceinline__ void fetch(int round, uint64_t *barrier) const {
        if (!has(round)) return;
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1], %2, [%3];" ::"r"(shared_address(about(round))),
                     "l"(list + tile_in(round)), "r"((int)sizeof *record),
                     "r"(shared_address(barrier))
                     : "memory");
    }
};

/* What a thread's two rows have to do with the other side: the keys that they see, or the queries
 * that see them (AHEAD). one: the tile is of one sentence; row: of the first, the other is 8
 * below. */
template <bool AHEAD>
__device__ __forceinline__ void seen_rows(const attention_shape &s, const place &p, bool one,
                                          int row, int2 seen[2]) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int r = row + h * 8;
        if (r >= p.row_end)
            seen[h] = make_int2(0, 0);
        else if (!one)
            seen[h] = AHEAD ? queries_of(s, r) : keys_of(s, r);
        else if (AHEAD)
            seen[h] = make_int2(s.causal ? r : p.begin, p.end);
        else
            seen[h] = make_int2(p.begin, s.causal ? r + 1 : p.end);
    }
}

/* Whether all pairs with columns [column, column + 64) count; all: the columns that all rows
 * see. */
static __device__ __forceinline__ bool covers(int2 all, int column) {
    return column >= all.x && column + TILE <= all.y;
}

/* Whether a thread's number i of accumulator n is seen; the tile's first column is `column`. */
static __device__ __forceinline__ bool is_seen(int2 seen, int column, int n, int i) {
    const int at = column + n * 8 + (int)threadIdx.x % 4 * 2 + i % 2;
    return at >= seen.x && at < seen.y;
}

/* Blocks of each head for so many tiles: together as many as the GPU holds at once, `per_processor`
 * on a multiprocessor. */
static inline int64_t tile_blocks(const fth_cuda *gpu, int64_t tiles, int heads,
                                  int per_processor) {
    const int64_t most = (int64_t)gpu->processors * per_processor / heads;
    return tiles < most ? tiles : most > 0 ? most : 1;
}

/* Blocks with `bytes` of shared memory each, for `tiles` of all heads. */
template <class Args>
fth_err launch_tiles(const fth_cuda_call *c, void (*kernel)(const Args), const Args &a,
                     int64_t tiles, int per_processor, int bytes) {
    const dim3 blocks((unsigned)a.s.heads,
                      (unsigned)tile_blocks(c->gpu, tiles, a.s.heads, per_processor));
    if (tiles == 0) return FTH_OK;
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "asking for shared memory");
    kernel<<<blocks, THREADS, bytes, c->stream>>>(a);
    return fth_cuda_launched();
}

#endif
