/* block_sums.cu: adding up sums of columns (block_sums.cuh). While a program is captured,
 * operations that do not end on the side stream put it off until FTH_CUDA_LATE of them have come:
 * by itself it takes as long to begin and end as to add. */
#include "backend/cuda/join/block_sums.cuh"

#include <stdlib.h>

#include "backend/cuda/attention/attention.cuh"
#include "backend/cuda/join/join_bwd.cuh"
#include "backend/cuda/product/linear_join.cuh"

namespace {
enum { COLUMNS = 32, LANES = 8, SCALAR_THREADS = 256 };

struct finish_all {
    finish_args of[FTH_CUDA_LATE];
};

__global__ void __launch_bounds__(COLUMNS *LANES)
    finish_columns(const __grid_constant__ finish_all all) {
    __shared__ float shared[LANES][COLUMNS];
    const finish_args &a = all.of[blockIdx.z];
    const int q = blockIdx.y, x = threadIdx.x % COLUMNS, y = threadIdx.x / COLUMNS;
    const int column = blockIdx.x * COLUMNS + x;
    if (!a.grad[q] || a.scalar[q]) return;
    float sum = 0.0f;
    if (column < a.width)
        for (int b = y; b < a.blocks; b += LANES) sum += a.parts[q][(int64_t)b * a.width + column];
    shared[y][x] = sum;
    __syncthreads();
    if (y != 0 || column >= a.width) return;
    for (int k = 1; k < LANES; k++) sum += shared[k][x];
    a.grad[q][column] += sum * coef_number(a.step, a.coef[q]);
}

__global__ void __launch_bounds__(SCALAR_THREADS) finish_scalars(finish_args a) {
    __shared__ double shared[SCALAR_THREADS / 32];
    const int q = blockIdx.x;
    if (!a.grad[q] || !a.scalar[q]) return;
    double sum = 0; /* it cancels */
    for (int64_t i = threadIdx.x; i < (int64_t)a.blocks * a.width; i += SCALAR_THREADS)
        sum += a.parts[q][i];
    sum = group_sum<SCALAR_THREADS>(sum, shared);
    if (threadIdx.x == 0) *a.grad[q] += (float)(sum * coef_number(a.step, a.coef[q]));
}

fth_err add_columns(const finish_args *of, int n, int quantities, cudaStream_t stream) {
    finish_all all = {};
    int width = 0;
    for (int k = 0; k < n; k++) {
        all.of[k] = of[k];
        if (of[k].width > width) width = of[k].width;
    }
    const dim3 grid(ceil_div(width, COLUMNS), quantities, n);
    finish_columns<<<grid, COLUMNS * LANES, 0, stream>>>(all);
    return fth_cuda_launched();
}

/* At once, on the side stream beside what follows. */
fth_err finish(const fth_cuda_call *c, const finish_args &f, bool learned) {
    bool columns = false, scalars = false;
    for (int q = 0; q < QUANTITIES; q++) {
        columns = columns || (f.grad[q] && !f.scalar[q]);
        scalars = scalars || f.scalar[q];
    }
    FTH_TRY(fth_cuda_fork_side_stream(c));
    if (columns) FTH_TRY(add_columns(&f, 1, learned ? QUANTITIES : BRANCH + 1, c->later));
    if (!scalars) return FTH_OK;
    finish_scalars<<<QUANTITIES, SCALAR_THREADS, 0, c->later>>>(f);
    return fth_cuda_launched();
}

/* What has been put off. */
struct late_sums {
    finish_args of[FTH_CUDA_LATE];
    int n;
    float *parts; /* [FTH_CUDA_LATE, most]: of each, in turn */
    int64_t most; /* elements of the parts of an operation */
};

late_sums *late_of(const fth_cuda_call *c) {
    return (late_sums *)c->program->late;
}

bool puts_off(const fth_cuda_call *c, bool learned) {
    return c->program->puts_off && c->later == c->stream && !learned;
}

bool shares_gradients(const finish_args &a, const finish_args &b) {
    for (int q = 0; q <= BRANCH; q++)
        for (int k = 0; k <= BRANCH; k++)
            if (a.grad[q] && a.grad[q] == b.grad[k]) return true;
    return false;
}

/* Elements of the parts of an operation that may put them off. */
int64_t elements_of(const fth_exec *ex, const fth_cuda_program *p, const fth_op *op) {
    const bool join =
        fth_is_join_bwd(op) && !fth_join_is_learned(op) && !fth_cuda_has_side_stream(p);
    if (join)
        return fth_cuda_join_bwd_scratch(ex->device, ex->graph, op, ex->capacity) /
               (int64_t)sizeof(float);
    if (op->kind == FTH_KIND_attention_bwd && p->bias_maker[op - ex->graph->op] >= 0)
        return fth_cuda_attention_sums_elements(ex->device, fth_arg(ex, op->in[ATT_BWD_Q])->rows,
                                                fth_arg(ex, op->in[ATT_BWD_K])->rows,
                                                op->u.attention.heads);
    if (op->kind != FTH_KIND_linear_dx || !op->in[LINEAR_DX_SAVED]) return 0;
    const fth_tensor *dx = fth_arg(ex, op->out[LINEAR_DX_DX]);
    return (int64_t)ceil_div(dx->rows, FTH_CUDA_JOINED_ROWS) * dx->width;
}
} // namespace

float *fth_cuda_parts_place(const fth_cuda_call *c, bool learned) {
    const late_sums *late = late_of(c);
    return puts_off(c, learned) ? late->parts + late->n * late->most : (float *)c->scratch;
}

fth_err fth_cuda_add_parts(const fth_cuda_call *c, const finish_args &f, bool learned) {
    if (!puts_off(c, learned)) return finish(c, f, learned);
    late_sums *late = late_of(c);
    for (int k = 0; k < late->n; k++) {
        if (!shares_gradients(f, late->of[k])) continue;
        FTH_TRY(fth_cuda_add_late(c->program, c->stream)); /* one after the other */
        return add_columns(&f, 1, BRANCH + 1, c->stream);
    }
    late->of[late->n++] = f;
    return late->n == FTH_CUDA_LATE ? fth_cuda_add_late(c->program, c->stream) : FTH_OK;
}

fth_err fth_cuda_add_late(fth_cuda_program *p, cudaStream_t stream) {
    late_sums *late = (late_sums *)p->late;
    const int n = late->n;
    late->n = 0;
    return n ? add_columns(late->of, n, BRANCH + 1, stream) : FTH_OK;
}

fth_err fth_cuda_prepare_late(const fth_exec *ex, fth_cuda_program *p) {
    late_sums *late = (late_sums *)calloc(1, sizeof *late);
    p->late = late;
    if (!late) return fth_fail(FTH_NO_MEMORY, "no memory for a program");
    for (int32_t i = 0; i < ex->graph->n_ops; i++) {
        const int64_t elements = elements_of(ex, p, &ex->graph->op[i]);
        if (elements > late->most) late->most = elements;
    }
    if (late->most)
        CUDA_TRY(cudaMalloc(&late->parts, sizeof(float) * (size_t)(late->most * FTH_CUDA_LATE)),
                 "memory for sums");
    return FTH_OK;
}

void fth_cuda_free_late(fth_cuda_program *p) {
    if (p->late) cudaFree(((late_sums *)p->late)->parts);
    free(p->late);
}
