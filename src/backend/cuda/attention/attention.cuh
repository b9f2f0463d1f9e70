/* attention.cuh: what the kernels of attention share. Sentences are packed, so a tile of queries
 * may hold rows of several; every query sees the keys [begin, end) of its own sentence. */
#ifndef FTH_BACKEND_CUDA_ATTENTION_ATTENTION_CUH
#define FTH_BACKEND_CUDA_ATTENTION_ATTENTION_CUH

#include "backend/cuda/random.cuh"

struct attention_shape {
    const int32_t *q_sentence, *k_sentence; /* by row */
    const int32_t *q_offsets, *k_offsets;   /* by sentence */
    const int64_t *pairs;                   /* by sentence: its first pair */
    fth_cuda_tiles tiles;                   /* for the products of sm_90a */
    row_count q_rows, k_rows;
    int heads, head;          /* columns of a head */
    bool causal;              /* queries and keys are the same rows, and none looks ahead */
    float scale;              /* multiplies q k^T, the divisor included */
    float carried, inverse;   /* the two apart: S = carried q k^T + PREV, softmax of S inverse */
    uint32_t threshold, site; /* dropout of probabilities */
    float kept;
    int side; /* of the queries */
    const fth_cuda_step *step;
};

/* The keys that a query row sees. */
static __device__ __forceinline__ int2 keys_of(const attention_shape &s, int row) {
    const int sentence = s.q_sentence[row];
    return make_int2(s.k_offsets[sentence], s.causal ? row + 1 : s.k_offsets[sentence + 1]);
}

/* The queries that see a key row. */
static __device__ __forceinline__ int2 queries_of(const attention_shape &s, int row) {
    const int sentence = s.k_sentence[row];
    return make_int2(s.causal ? row : s.q_offsets[sentence], s.q_offsets[sentence + 1]);
}

/* Which of a thread's 4 N probabilities survive, bit 4 n + i for accumulator n's number i, whose
 * element is e[i / 2] + (8 n + i % 2) stride. Not inlined, so that the kernels stay small. */
static __device__ __noinline__ uint32_t keep_mask(const fth_cuda_step *step, uint32_t threshold,
                                                  uint32_t site, uint64_t e0, uint64_t e1,
                                                  uint64_t stride, int n) {
    uint32_t mask = 0;
    for (int k = 0; k < 4 * n; k++) {
        const uint64_t e = (k & 2 ? e1 : e0) + (uint64_t)(k / 4 * 8 + k % 2) * stride;
        mask |= (uint32_t)drop_keeps(step, threshold, site, e) << k;
    }
    return mask;
}

/* Element of the probability of a query row and key `index` of its sentence (graph/dropout.h). */
static __device__ __forceinline__ uint64_t probability_element(const attention_shape &s, int row,
                                                               int head, int index) {
    const int64_t r = s.step->row_base[s.side] + row;
    return ((uint64_t)(r * s.heads + head) << 16) + (uint64_t)(int64_t)index;
}

/* Operands of the kernels for bf16. */
struct attention_args {
    attention_shape s;
    const bf16 *q, *k, *v;
    int64_t ld_q, ld_k, ld_v;
    bf16 *o;
    int64_t ld_o;
    float *lse; /* opt */
    int64_t ld_lse;
};

struct attention_bwd_args {
    attention_shape s;
    const bf16 *q, *k, *v, *d_o, *o;
    int64_t ld_q, ld_k, ld_v, ld_do, ld_o;
    const float *lse;
    int64_t ld_lse;
    bf16 *dq, *dk, *dv;
    int64_t ld_dq, ld_dk, ld_dv;
};

attention_args fth_cuda_attention_args(const fth_cuda_call *c, const attention_shape *s);
attention_bwd_args fth_cuda_attention_bwd_args(const fth_cuda_call *c, const attention_shape *s);

attention_shape fth_cuda_attention_shape(const fth_cuda_call *c, const fth_tensor *q,
                                         const fth_tensor *k);

/* Whether the tensor-core kernels can do it: bf16, rows of heads that are multiples of 16 bytes. */
bool fth_cuda_attention_is_fast(const attention_shape *s, const fth_tensor *const *tensors, int n);

/* attention_fast.cu, attention_fast_bwd.cu: tensor cores, no carried scores. */
fth_err fth_cuda_attention_fast(const fth_cuda_call *c, const attention_shape *s);
fth_err fth_cuda_attention_fast_bwd(const fth_cuda_call *c, const attention_shape *s);

/* Whether the backward, operation `op` of a program, sums up the columns of its gradients for a
 * bias. */
bool fth_cuda_attention_sums(const fth_exec *ex, const fth_cuda_program *p, const fth_op *op);
/* Floats of the parts of these sums at most. */
int64_t fth_cuda_attention_sums_elements(const fth_device *dev, int64_t q_rows, int64_t k_rows,
                                         int heads);

/* attention_wgmma.cu, attention_wgmma_bwd.cu: the same on a GPU that has sm_90a's products, for
 * heads of 64 columns and no dropout; only in a build for sm_90a. */
fth_err fth_cuda_attention_wgmma(const fth_cuda_call *c, const attention_shape *s);
fth_err fth_cuda_attention_wgmma_bwd(const fth_cuda_call *c, const attention_shape *s);
int64_t fth_cuda_attention_wgmma_sums(const fth_cuda *gpu, int64_t q_rows, int64_t k_rows,
                                      int heads);

/* attention_plain.cu: everything else. */
fth_err fth_cuda_attention_plain(const fth_cuda_call *c, const attention_shape *s);
fth_err fth_cuda_attention_plain_bwd(const fth_cuda_call *c, const attention_shape *s);

#endif
