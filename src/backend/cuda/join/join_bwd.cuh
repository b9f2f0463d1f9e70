/* join_bwd.cuh: what the two kernels of join_norm_bwd, norm_bwd and join_bwd share. */
#ifndef FTH_BACKEND_CUDA_JOIN_JOIN_BWD_CUH
#define FTH_BACKEND_CUDA_JOIN_JOIN_BWD_CUH

#include "backend/cuda/join/block_sums.cuh"

enum { BWD_THREADS = 256 };

static inline bool fth_is_join_bwd(const fth_op *op) {
    return op->kind == FTH_KIND_join_bwd || op->kind == FTH_KIND_norm_bwd ||
           op->kind == FTH_KIND_join_norm_bwd;
}

static inline bool fth_join_is_learned(const fth_op *op) {
    return op->in[JOIN_BWD_R] || op->in[JOIN_BWD_A] || op->in[JOIN_BWD_C];
}

template <class T> struct bwd_args {
    const T *dy, *dz, *z; /* dy absent: join_bwd; dz opt else */
    int64_t ld_dy, ld_dz, ld_z;
    const float *stats, *gain;
    int64_t ld_stats;
    const T *term[3]; /* x, f, e where their coefficient is learned */
    int64_t ld_term[3];
    T *out[3]; /* dx, df, de, each opt */
    int64_t ld_out[3];
    join_coef coef[3];
    int branch; /* which output BRANCH sums up */
    drop_place drop;
    const uint8_t *kept; /* [rows, chunks] of the forward; NULL: drawn again, if anything drops */
    float *parts[QUANTITIES]; /* [blocks, width]; NULL: not wanted */
    int width, chunks;
    bool wide;
    row_count rows;
    const fth_cuda_step *step;
};

template <class T>
static __device__ void zero_row(const bwd_args<T> &a, int64_t row, int lane, int step) {
    float zeros[8];
    fill8(zeros, 0.0f);
    for (int chunk = lane; chunk < a.chunks; chunk += step)
        for (int k = 0; k < 3; k++)
            if (a.out[k])
                store8(a.out[k] + row * a.ld_out[k] + chunk * 8, a.wide,
                       min(8, a.width - chunk * 8), zeros);
}

/* join_norm_bwd_fast.cu: a warp for a row, of at most JOIN_BWD_FAST_WIDTH columns, no coefficient
 * learned, and what dropout has kept is at hand: drawing it again takes registers that it needs. */
enum { JOIN_BWD_FAST_WIDTH = 1024 };

static inline bool fth_join_is_fast(const fth_op *op, int width) {
    const bool drops = op->kind != FTH_KIND_norm_bwd && op->u.join.drop.p > 0;
    return width <= JOIN_BWD_FAST_WIDTH && !fth_join_is_learned(op) &&
           (!drops || op->in[JOIN_BWD_KEPT]);
}

template <class T>
fth_err fth_cuda_join_bwd_fast(const fth_cuda_call *c, const bwd_args<T> &a, int blocks);

#endif
