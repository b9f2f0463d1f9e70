/* cuda.cuh: what the files of the CUDA backend share: the opened GPU, what a program keeps on it,
 * and how an operation is called.
 *
 * A program is walked once as it is (each operation waited for, so that an error names it), then
 * walked again under stream capture; from then on every run is one launch of that graph. Therefore
 * nothing that changes from run to run may be an argument of a kernel: rows, offsets, dropout
 * counters and coefficients are read from memory of the GPU (fth_cuda_step, fth_cuda_batch).
 *
 * Shapes are the capacity. Rows between the batch's and the capacity, the tail: every kernel writes
 * them; gradients are 0 there and activations finite, so products over the whole capacity are right
 * (a linear operation's output has the bias there, which meets a zero in every product). */
#ifndef FTH_BACKEND_CUDA_CUDA_CUH
#define FTH_BACKEND_CUDA_CUDA_CUH

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern "C" {
#define class class_ /* graph.h is C: a member of fth_value has this name */
#include "backend/backend.h"
#include "graph/plan.h"
#undef class
#include "graph/dropout.h"
}

#include "backend/cuda/attention/attention_tiles.cuh"

typedef __nv_bfloat16 bf16;

/* Of fth_adam, for updates inside of a program. */
struct fth_cuda_step_adam {
    int64_t update;
    float lr, corrected; /* lr; lr * sqrt(1 - beta2^t) / (1 - beta1^t) */
    float beta1, beta2, rest1, rest2, eps, weight_decay; /* rest = 1 - beta */
};

/* The numbers of a step as kernels read them. */
struct fth_cuda_step {
    uint64_t seed;
    int64_t row_base[FTH_ROW_EXTENTS];
    int64_t rows[FTH_N_EXTENTS];
    uint32_t update;
    int32_t n_sent;
    float slots[FTH_STEP_SLOTS];
    float loss_scale;
    fth_cuda_step_adam adam;
    float rate[FTH_STEP_RATES];
};

struct fth_cuda_side {
    int32_t *ids, *pos, *targets, *order; /* [capacity], as in fth_packed_side */
    int32_t *sentence;                    /* [capacity] which sentence a row belongs to */
    int32_t *offsets;                     /* [sentences + 1] */
};

/* The batch on the GPU. The addresses are fixed when the program is made. */
struct fth_cuda_batch {
    fth_cuda_step *step;
    fth_cuda_side side[2];
    int64_t *pairs[3]; /* [sentences + 1] first pair of a sentence: source, target, cross */
    fth_cuda_tiles tiles[FTH_CUDA_ATTENTIONS]; /* of the attentions that the program has */
    /* Of heads and fronts, where the program reads them: */
    int32_t *picked, *picked_ids; /* [capacity of picked rows] */
    int32_t *labels;              /* [sentences] -1: no loss */
    float *values;                /* [sentences] */
    float *numbers;               /* [capacity of rows of numbers, width] */
    int32_t *masked;              /* [capacity of rows of numbers] */
    int32_t *slot;                /* [target capacity] generation only, as these two */
    int32_t *begin;               /* [target capacity + 1] first entry of a row's history */
    int32_t *history;             /* all histories, one behind the other */
};

enum {
    FTH_CUDA_COUNTERS = 8192,
    FTH_CUDA_COUNTING = 3, /* streams whose kernels count */
    FTH_CUDA_SUMS = 1024,
    FTH_CUDA_WORKSPACE = 32 << 20,
    FTH_CUDA_LAG = 24,                /* operations: about two layers of a backward */
    FTH_CUDA_UPDATE = 8 << 20,        /* elements that are updated together */
    FTH_CUDA_SIDE_STREAM_ROWS = 6144, /* most rows of a side in a program that has a side stream */
    FTH_CUDA_LATE = 16                /* operations whose sums of columns are added together */
};

struct fth_cuda_product; /* gemm.cu: a product of one shape with the algorithm chosen for it */

struct fth_cuda {
    fth_device device;                /* first: an fth_device is an fth_cuda */
    int processors;                   /* multiprocessors */
    cudaStream_t stream, side_stream; /* side_stream: of what may end late (plan.h) */
    cudaStream_t updates;             /* of updates that run beside both */
    cudaStream_t watching;            /* of telemetry that does */
    cudaEvent_t forked; /* a stream has come to where something goes to the side stream */
    /* By number of the operation: it has ended on the side stream. */
    cudaEvent_t done[FTH_UPDATE_LAGS * FTH_CUDA_LAG];
    cublasLtHandle_t blas;
    void *workspace[2]; /* of cuBLASLt, for each stream */
    unsigned
        *counters; /* [FTH_CUDA_COUNTING, FTH_CUDA_COUNTERS] of stream, side_stream and watching, 0
                           between kernels */
    double *sums;  /* [FTH_CUDA_SUMS] parts of a sum over an arena */
    fth_adam_range *range; /* [cap_ranges] of Adam, on the GPU */
    int32_t cap_ranges;
    double *range_sums; /* [cap_range_sums] sums over ranges or pieces */
    int64_t cap_range_sums;
    fth_cuda_product *products; /* [n_products] */
    int n_products, cap_products;
};

/* Counters for products, a new one for every launch (gemm_counters.cu). */
struct fth_cuda_counters {
    char *memory;
    int32_t used, capacity;
};

/* What a program keeps beside its values (fth_exec.own). */
struct fth_cuda_program {
    char *staged, *block; /* pinned memory of the host, and its copy on the GPU */
    size_t block_bytes;
    fth_cuda_batch batch; /* addresses inside of block */
    int32_t capacity[2], cap_sentences;
    bool lists_tiles[FTH_CUDA_ATTENTIONS]; /* by fth_cuda_attention_number */
    int64_t cap_history;                   /* entries of all histories together; 0: no generation */
    int32_t cap_picked, cap_labels;        /* of the lists for heads and fronts; 0: not read */
    int32_t cap_numbers, width;
    cudaEvent_t copied; /* the staged memory may be written again */
    int64_t runs;
    cudaGraphExec_t graph;
    bf16 *bias;                 /* bf16 copies of the biases of linear operations */
    struct fth_cuda_cast *cast; /* [n_casts] on the GPU: which are to be made */
    int32_t n_casts;
    int64_t *bias_at;               /* [n_ops] where the copy of an operation's bias is */
    int32_t *bias_maker;            /* [n_ops] bias_sums.cu; -1: none */
    struct fth_cuda_joined *joined; /* [n_ops] linear_join.cu */
    void *late;                     /* block_sums.cu: sums of columns that are to be added */
    bool puts_off;                  /* whether they may be, now */
    char *side_scratch; /* [FTH_CUDA_LAG, side_bytes] of operations that run or end there: the
                            scratch of the rest would not be free for them */
    int64_t side_bytes;
    fth_cuda_counters gemm_counters;
    double *update_parts; /* of the updates that run together (update.cu) */
};

/* Whether a program has a side stream. With many rows every kernel fills the GPU by itself and two
 * at a time only disturb each other. */
static inline bool fth_cuda_has_side_stream(const fth_cuda_program *p) {
    return p->capacity[FTH_SRC] <= FTH_CUDA_SIDE_STREAM_ROWS &&
           p->capacity[FTH_TGT] <= FTH_CUDA_SIDE_STREAM_ROWS;
}

/* One operation, about to be launched. */
struct fth_cuda_call {
    fth_cuda *gpu;
    const fth_exec *ex;
    const fth_op *op;
    int32_t n_ops; /* 1; updates, gauges: so many from op on are done together */
    fth_cuda_program *program;
    const fth_cuda_batch *batch;
    const fth_cuda_step *step;
    cudaStream_t stream;
    cudaStream_t later; /* for what nothing waits for in the next FTH_CUDA_LAG operations */
    void *scratch, *workspace;
    unsigned *counters;
};

#define KIND(name, text) fth_err fth_cuda_##name(const fth_cuda_call *c);
#include "graph/kinds.def"
#undef KIND

typedef int64_t fth_cuda_scratch_fn(const fth_device *dev, const fth_graph *g, const fth_op *op,
                                    const int64_t capacity[FTH_N_EXTENTS]);
fth_cuda_scratch_fn fth_cuda_attention_bwd_scratch, fth_cuda_join_bwd_scratch,
    fth_cuda_linear_dx_scratch, fth_cuda_linear_dw_scratch, fth_cuda_xent_scratch,
    fth_cuda_dots_scratch, fth_cuda_gauge_scratch;

/* flat.cu */
fth_err fth_cuda_sum_squares(fth_device *dev, const void *full, int64_t n, double *out);
fth_err fth_cuda_square_sums(fth_device *dev, const void *full, int64_t n, int64_t piece,
                             double *out);
fth_err fth_cuda_add_up(fth_device *dev, void *to, const fth_addends *from, int64_t n);
fth_err fth_cuda_adam(fth_device *dev, const fth_arenas *a, const fth_adam *args);
/* The factor that corrects Adam's rate for moments that began as 0. */
double fth_cuda_adam_correction(const fth_adam *args);
fth_err fth_cuda_refresh_weights(fth_device *dev, const fth_arenas *a);
fth_err fth_cuda_range_sums(fth_device *dev, const fth_arenas *a, const fth_adam *args,
                            double *out);

/* gemm_counters.cu */
fth_err fth_cuda_counters_init(fth_cuda_counters *c, int32_t capacity);
void fth_cuda_counters_fini(fth_cuda_counters *c);
/* A workspace of its own for a launch that needs so many bytes; NULL: it needs none, or a larger
 * one. */
void *fth_cuda_counters_take(fth_cuda_counters *c, size_t bytes);
/* First in a captured graph: clears the next n counters. */
fth_err fth_cuda_counters_begin(const fth_cuda_counters *c, int32_t n, cudaStream_t stream);
/* When it has been captured: takes out the nodes that clear them one by one. */
fth_err fth_cuda_counters_end(const fth_cuda_counters *c, cudaGraph_t graph);

/* cuda.cu: whether this GPU has the products of sm_90a. FATHOM_CUDA_WGMMA=0: do without them, as
 * other GPUs do. */
bool fth_cuda_has_wgmma(void);

/* attention.cu: which of the lists of tiles belong to an attention. */
int fth_cuda_attention_number(const fth_op *op);

/* program.cu */
fth_err fth_cuda_prepare(fth_exec *ex);
void fth_cuda_unprepare(fth_exec *ex);
fth_err fth_cuda_run(fth_exec *ex);
fth_err fth_cuda_one(fth_exec *ex, const fth_op *op);

/* Lets c->later wait for what c->stream has been given so far. */
fth_err fth_cuda_fork_side_stream(const fth_cuda_call *c);

/* update.cu: memory for the parts of sums. */
fth_err fth_cuda_prepare_updates(const fth_graph *g, fth_cuda_program *p);
/* How many updates stand in a row from operation i on, which is one. */
int32_t fth_cuda_updates_at(const fth_graph *g, int32_t i);
/* gauge.cu: the same of gauge operations, of which few are launched together. */
int32_t fth_cuda_gauges_at(const fth_graph *g, int32_t i);

/* block_sums.cu: what is put off while the program is captured. */
fth_err fth_cuda_prepare_late(const fth_exec *ex, fth_cuda_program *p);
void fth_cuda_free_late(fth_cuda_program *p);
fth_err fth_cuda_add_late(fth_cuda_program *p, cudaStream_t stream); /* now */

/* bias_sums.cu: finds the operations that can sum up the gradient of a bias on the way: bias_maker
 * [n_ops] gets the number of the linear_dw whose bias it is, and in turn. */
fth_err fth_cuda_find_bias_makers(const fth_exec *ex, fth_cuda_program *p);
const fth_op *fth_cuda_bias_made_by(const fth_cuda_call *c); /* NULL: none */

/* cuda.cu: a failed call of CUDA as an fth_err; `what` was tried. */
fth_err fth_cuda_failed(cudaError_t err, const char *what);
fth_err fth_cuda_launched(void); /* the newest launch */
#define CUDA_TRY(call, what)                                                                       \
    do {                                                                                           \
        cudaError_t cuda_try_err_ = (call);                                                        \
        if (cuda_try_err_ != cudaSuccess) return fth_cuda_failed(cuda_try_err_, what);             \
    } while (0)

/* ---- operands ---- */

static inline const fth_tensor *in_of(const fth_cuda_call *c, int k) {
    return fth_arg(c->ex, c->op->in[k]);
}

static inline const fth_tensor *out_of(const fth_cuda_call *c, int k) {
    return fth_arg(c->ex, c->op->out[k]);
}

static inline int32_t ceil_div(int64_t a, int64_t b) {
    return (int32_t)((a + b - 1) / b);
}

/* Whether rows of t can be read in pieces of 16 bytes; an absent one does not hinder. */
static inline bool is_wide(const fth_tensor *t) {
    if (!t) return true;
    const int64_t size = (int64_t)fth_dtype_size(t->dtype);
    return (uintptr_t)t->data % 16 == 0 && t->ld * size % 16 == 0 && t->width % 8 == 0;
}

static inline bool is_bf16(const fth_tensor *t) {
    return t->dtype == FTH_BF16;
}

/* Rows of a value, as a kernel finds them: the batch's, or a fixed number. */
struct row_count {
    int64_t capacity;
    int extent;
};

static inline row_count rows_of(const fth_tensor *t) {
    return {t->rows, (int)t->extent};
}

static __device__ __forceinline__ int64_t rows_now(const fth_cuda_step *step, row_count r) {
    return r.extent == FTH_ROWS_FIXED ? r.capacity : step->rows[r.extent];
}

#endif
