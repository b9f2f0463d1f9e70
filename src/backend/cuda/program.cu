/* program.cu: running a program: the batch goes to the GPU, then the captured graph is launched. */
#include "backend/cuda/product/linear_join.cuh"
#include "backend/cuda/vec.cuh"

#include <stdlib.h>

struct fth_cuda_cast {
    const float *from;
    bf16 *to;
    int64_t n;
};

static fth_cuda *gpu_of(const fth_exec *ex) {
    return reinterpret_cast<fth_cuda *>(ex->device);
}

static fth_cuda_program *own_of(const fth_exec *ex) {
    return static_cast<fth_cuda_program *>(ex->own);
}

/* ---- memory of the batch ---- */

/* Cuts n elements from the block at *at; only counts when base is NULL. */
template <class T> static void cut(char *base, size_t *at, int64_t n, T **out) {
    *out = reinterpret_cast<T *>(base + *at);
    *at += (sizeof(T) * (size_t)n + 255) / 256 * 256;
}

/* Sides of the attention whose number is k. */
struct attention_sides {
    fth_side q, k;
    bool causal;
};

static attention_sides sides_of(int k) {
    return {k % 3 == 0 ? FTH_SRC : FTH_TGT, k % 3 == 1 ? FTH_TGT : FTH_SRC, k >= 3};
}

/* Where everything lies in a block; returns its bytes. Histories come last: of them only what a
 * step has is copied. */
static size_t lay_out(const fth_cuda_program *p, char *base, fth_cuda_batch *b) {
    size_t at = 0;
    cut(base, &at, 1, &b->step);
    for (int s = 0; s < 2; s++) {
        fth_cuda_side *side = &b->side[s];
        int32_t **arrays[] = {&side->ids, &side->pos, &side->targets, &side->order,
                              &side->sentence};
        for (int32_t **array : arrays) cut(base, &at, p->capacity[s], array);
        cut(base, &at, p->cap_sentences + 1, &side->offsets);
    }
    for (int64_t *&pairs : b->pairs) cut(base, &at, p->cap_sentences + 1, &pairs);
    for (int k = 0; k < FTH_CUDA_ATTENTIONS; k++) {
        if (!p->lists_tiles[k]) continue;
        const attention_sides sides = sides_of(k);
        cut(base, &at, fth_cuda_n_tiles(p->capacity[sides.q]), &b->tiles[k].queries);
        cut(base, &at, fth_cuda_n_tiles(p->capacity[sides.k]), &b->tiles[k].keys);
        cut(base, &at, 1, &b->tiles[k].n_keys);
    }
    cut(base, &at, p->cap_picked, &b->picked);
    cut(base, &at, p->cap_picked, &b->picked_ids);
    cut(base, &at, p->cap_labels, &b->labels);
    cut(base, &at, p->cap_labels, &b->values);
    cut(base, &at, (int64_t)p->cap_numbers * p->width, &b->numbers);
    cut(base, &at, p->cap_numbers, &b->masked);
    cut(base, &at, p->capacity[FTH_TGT], &b->slot);
    cut(base, &at, p->capacity[FTH_TGT] + 1, &b->begin);
    cut(base, &at, p->cap_history, &b->history);
    return at;
}

/* ---- the batch ---- */

static fth_cuda_step_adam adam_of(const fth_adam *from) {
    fth_cuda_step_adam a = {};
    if (from->update <= 0) return a;
    a.update = from->update;
    a.lr = (float)from->lr;
    a.corrected = (float)(from->lr * fth_cuda_adam_correction(from));
    a.beta1 = (float)from->beta1, a.rest1 = (float)(1 - from->beta1);
    a.beta2 = (float)from->beta2, a.rest2 = (float)(1 - from->beta2);
    a.eps = (float)from->eps;
    a.weight_decay = (float)from->weight_decay;
    return a;
}

static void fill_step(const fth_exec *ex, fth_cuda_step *s) {
    *s = {};
    s->seed = ex->step.seed;
    s->update = ex->step.update;
    s->n_sent = ex->batch.n_sent;
    s->loss_scale = (float)ex->step.loss_scale;
    s->adam = adam_of(&ex->step.adam);
    memcpy(s->rate, ex->step.rate, sizeof s->rate);
    for (int k = 0; k < FTH_STEP_SLOTS; k++) s->slots[k] = (float)ex->step.slots[k];
    for (int k = 0; k < FTH_ROW_EXTENTS; k++) s->row_base[k] = ex->step.row_base[k];
    for (int k = 0; k < FTH_N_EXTENTS; k++) s->rows[k] = ex->rows[k];
}

static void fill_side(const fth_batch *b, const fth_packed_side *from, fth_cuda_side *to) {
    const size_t bytes = sizeof(int32_t) * (size_t)from->rows;
    if (from->rows == 0) {
        memset(to->offsets, 0, sizeof(int32_t) * ((size_t)b->n_sent + 1));
        return;
    }
    memcpy(to->ids, from->ids, bytes);
    memcpy(to->pos, from->pos, bytes);
    if (from->order) memcpy(to->order, from->order, bytes);
    for (int32_t r = 0; r < from->rows; r++) to->targets[r] = from->targets ? from->targets[r] : -1;
    memcpy(to->offsets, from->offsets, sizeof(int32_t) * ((size_t)b->n_sent + 1));
    for (int32_t s = 0; s < b->n_sent; s++)
        for (int32_t r = from->offsets[s]; r < from->offsets[s + 1]; r++) to->sentence[r] = s;
}

/* What heads and fronts read. */
static void fill_lists(const fth_cuda_program *p, const fth_batch *b, fth_cuda_batch *to) {
    if (p->cap_picked) {
        memcpy(to->picked, b->picked, sizeof(int32_t) * (size_t)b->n_picked);
        memcpy(to->picked_ids, b->picked_ids, sizeof(int32_t) * (size_t)b->n_picked);
    }
    for (int32_t s = 0; p->cap_labels && s < b->n_sent; s++) {
        to->labels[s] = b->labels ? b->labels[s] : -1;
        to->values[s] = b->values ? b->values[s] : 0;
    }
    if (!p->cap_numbers) return;
    const fth_packed_numbers *in = &b->input;
    memcpy(to->numbers, in->data, sizeof(float) * (size_t)in->rows * (size_t)p->width);
    for (int32_t r = 0; r < in->rows; r++) to->masked[r] = in->masked ? in->masked[r] : 0;
}

/* First pair of every sentence: source, target and cross attention (op.h). */
static void fill_pairs(const fth_batch *b, fth_cuda_batch *to) {
    const int32_t *src = to->side[FTH_SRC].offsets, *tgt = to->side[FTH_TGT].offsets;
    int64_t at[3] = {0, 0, 0};
    for (int32_t s = 0; s <= b->n_sent; s++) {
        for (int k = 0; k < 3; k++) to->pairs[k][s] = at[k];
        if (s == b->n_sent) break;
        const int64_t n = src[s + 1] - src[s], m = tgt[s + 1] - tgt[s];
        at[0] += n * n, at[1] += m * m, at[2] += m * n;
    }
}

static fth_cuda_rows rows_of(const fth_cuda_program *p, const fth_exec *ex, const fth_cuda_batch *b,
                             fth_side side) {
    const fth_extent extent = side == FTH_SRC ? FTH_ROWS_SRC : FTH_ROWS_TGT;
    return {b->side[side].sentence, b->side[side].offsets, (int32_t)ex->rows[extent],
            p->capacity[side]};
}

static void fill_tiles(const fth_exec *ex, fth_cuda_batch *to) {
    const fth_cuda_program *p = own_of(ex);
    for (int k = 0; k < FTH_CUDA_ATTENTIONS; k++) {
        if (!p->lists_tiles[k]) continue;
        const attention_sides sides = sides_of(k);
        const fth_cuda_rows q = rows_of(p, ex, to, sides.q), keys = rows_of(p, ex, to, sides.k);
        fth_cuda_list_tiles(&q, &keys, sides.causal, &to->tiles[k]);
    }
}

/* *total: entries of all histories. */
static fth_err fill_histories(const fth_exec *ex, fth_cuda_batch *to, int64_t *total) {
    const fth_batch *b = &ex->batch;
    const int32_t rows = b->side[FTH_TGT].rows;
    for (int32_t r = 0; r < rows; r++) *total += b->length[r];
    if (*total > own_of(ex)->cap_history)
        return fth_fail(FTH_FAILED, "histories have %lld tokens, the program holds %lld",
                        (long long)*total, (long long)own_of(ex)->cap_history);
    to->begin[0] = 0;
    for (int32_t r = 0; r < rows; r++) {
        to->slot[r] = b->slot[r];
        to->begin[r + 1] = to->begin[r] + b->length[r];
        memcpy(to->history + to->begin[r], b->history + (int64_t)r * b->history_pitch,
               sizeof(int32_t) * (size_t)b->length[r]);
    }
    return FTH_OK;
}

/* The batch and the step to the GPU in one copy, behind everything that is under way there. */
static fth_err send_batch(const fth_exec *ex) {
    fth_cuda_program *p = own_of(ex);
    const fth_batch *b = &ex->batch;
    if (b->n_sent > p->cap_sentences)
        return fth_fail(FTH_FAILED, "a batch has %d sentences, the program holds %d", b->n_sent,
                        p->cap_sentences);
    CUDA_TRY(cudaEventSynchronize(p->copied), "waiting for the last batch");
    p->gemm_counters.used = 0;
    fth_cuda_batch host;
    lay_out(p, p->staged, &host);
    fill_step(ex, host.step);
    for (int s = 0; s < 2; s++) fill_side(b, &b->side[s], &host.side[s]);
    fill_lists(p, b, &host);
    fill_pairs(b, &host);
    fill_tiles(ex, &host);
    int64_t entries = 0;
    if (b->length && p->cap_history > 0) FTH_TRY(fill_histories(ex, &host, &entries));
    const size_t bytes = (size_t)(reinterpret_cast<char *>(host.history + entries) - p->staged);
    cudaStream_t stream = gpu_of(ex)->stream;
    CUDA_TRY(cudaMemcpyAsync(p->block, p->staged, bytes, cudaMemcpyHostToDevice, stream),
             "copying a batch");
    CUDA_TRY(cudaEventRecord(p->copied, stream), "copying a batch");
    return FTH_OK;
}

/* ---- biases in bf16 ---- */

enum { CAST_THREADS = 256 };

static __global__ void __launch_bounds__(CAST_THREADS) cast_biases(const fth_cuda_cast *casts) {
    const fth_cuda_cast cast = casts[blockIdx.x];
    for (int64_t i = threadIdx.x; i < cast.n; i += CAST_THREADS)
        cast.to[i] = from_float<bf16>(cast.from[i]);
}

static const fth_tensor *bias_of(const fth_exec *ex, int32_t i) {
    const fth_op *op = &ex->graph->op[i];
    return op->kind == FTH_KIND_linear ? fth_arg(ex, op->in[LINEAR_B])
           : op->kind == FTH_KIND_xent ? fth_arg(ex, op->in[XENT_B])
                                       : nullptr;
}

/* An epilogue wants the bias in the type of the product: places for such copies. */
static fth_err plan_biases(const fth_exec *ex, fth_cuda_program *p) {
    int64_t total = 0;
    p->bias_at = (int64_t *)calloc((size_t)ex->graph->n_ops + 1, sizeof *p->bias_at);
    if (!p->bias_at) return fth_fail(FTH_NO_MEMORY, "no memory for a program");
    for (int32_t i = 0; i < ex->graph->n_ops; i++) {
        const fth_tensor *b = bias_of(ex, i);
        if (!b) continue;
        p->bias_at[i] = total;
        total += (b->width + 63) / 64 * 64;
        p->n_casts++;
    }
    if (p->n_casts == 0) return FTH_OK;
    CUDA_TRY(cudaMalloc(&p->bias, sizeof(bf16) * (size_t)total), "memory for biases");
    const size_t bytes = sizeof *p->cast * (size_t)p->n_casts;
    fth_cuda_cast *casts = (fth_cuda_cast *)malloc(bytes);
    if (!casts) return fth_fail(FTH_NO_MEMORY, "no memory for a program");
    int32_t n = 0;
    for (int32_t i = 0; i < ex->graph->n_ops; i++) {
        const fth_tensor *b = bias_of(ex, i);
        if (b) casts[n++] = {(const float *)b->data, p->bias + p->bias_at[i], b->width};
    }
    const cudaError_t err = cudaMalloc(&p->cast, bytes);
    fth_err copied = err == cudaSuccess ? FTH_OK : fth_cuda_failed(err, "memory for biases");
    /* upload waits on the program's own stream: a copy on any other may come too late for it */
    if (copied == FTH_OK)
        copied = ex->device->backend->upload(ex->device, p->cast, casts, (int64_t)bytes);
    free(casts);
    return copied;
}

static fth_err refresh_biases(const fth_exec *ex) {
    const fth_cuda_program *p = own_of(ex);
    if (p->n_casts == 0) return FTH_OK;
    cast_biases<<<p->n_casts, CAST_THREADS, 0, gpu_of(ex)->stream>>>(p->cast);
    return fth_cuda_launched();
}

/* ---- making and freeing ---- */

/* A join's backward ends on the side stream: its sums of columns are added up there. */
static bool uses_side_stream(const fth_cuda_program *p, const fth_op *op) {
    return fth_cuda_has_side_stream(p) && (fth_is_deferrable(op) || fth_is_join_bwd(op));
}

static fth_err take_side_scratch(const fth_exec *ex, fth_cuda_program *p) {
    for (int32_t i = 0; i < ex->graph->n_ops; i++) {
        const fth_op *op = &ex->graph->op[i];
        const fth_scratch need = ex->device->backend->scratch[op->kind];
        if (!uses_side_stream(p, op) || !need) continue;
        const int64_t bytes = need(ex->device, ex->graph, op, ex->capacity);
        if (bytes > p->side_bytes) p->side_bytes = (bytes + 255) / 256 * 256;
    }
    if (p->side_bytes)
        CUDA_TRY(cudaMalloc(&p->side_scratch, (size_t)p->side_bytes * FTH_CUDA_LAG),
                 "memory for scratch");
    return FTH_OK;
}

/* Entries of the histories that a step of generation has at most. */
static int64_t most_history(const fth_exec *ex) {
    for (int32_t i = 0; i < ex->graph->n_ops; i++)
        if (ex->graph->op[i].kind == FTH_KIND_attention_cached)
            return ex->capacity[FTH_ROWS_TGT_PAIRS];
    return 0;
}

/* The attentions whose tiles are to be listed: those that the kernels for bf16 make. */
static void find_attentions(const fth_exec *ex, fth_cuda_program *p) {
    for (int32_t i = 0; i < ex->graph->n_ops && ex->device->real == FTH_BF16; i++) {
        const fth_op *op = &ex->graph->op[i];
        if (op->kind == FTH_KIND_attention || op->kind == FTH_KIND_attention_bwd)
            p->lists_tiles[fth_cuda_attention_number(op)] = true;
    }
}

/* The lists of heads and fronts that the program reads, and how long they may be. */
static void find_lists(const fth_exec *ex, fth_cuda_program *p) {
    for (int32_t i = 0; i < ex->graph->n_ops; i++) {
        const fth_op *op = &ex->graph->op[i];
        const bool loss = op->kind == FTH_KIND_xent || op->kind == FTH_KIND_square;
        const fth_tensor *x = loss ? fth_arg(ex, op->in[0]) : nullptr;
        if (op->kind == FTH_KIND_pick || op->kind == FTH_KIND_pick_bwd ||
            (x && x->extent == FTH_ROWS_PICKED))
            p->cap_picked = (int32_t)ex->capacity[FTH_ROWS_PICKED];
        if (x && x->extent == FTH_ROWS_SENTENCES)
            p->cap_labels = (int32_t)ex->capacity[FTH_ROWS_SENTENCES];
        if (op->kind == FTH_KIND_numbers) p->width = fth_arg(ex, op->out[NUMBERS_X])->width;
        if (op->kind == FTH_KIND_numbers || op->kind == FTH_KIND_patches ||
            op->kind == FTH_KIND_patches_bwd || op->kind == FTH_KIND_glu ||
            op->kind == FTH_KIND_glu_bwd)
            p->cap_numbers = (int32_t)ex->capacity[FTH_ROWS_INPUT];
    }
}

/* How many products may want a counter. Those of the vocabulary go by parts, but not by so many. */
static int32_t most_products(const fth_graph *g) {
    int32_t n = 256;
    for (int32_t i = 0; i < g->n_ops; i++) {
        const fth_kind kind = g->op[i].kind;
        n += kind == FTH_KIND_linear || kind == FTH_KIND_linear_dx || kind == FTH_KIND_linear_dw;
    }
    return n;
}

static fth_err prepare_parts(const fth_exec *ex, fth_cuda_program *p) {
    for (int s = 0; s < 2; s++)
        p->capacity[s] = (int32_t)ex->capacity[s == FTH_SRC ? FTH_ROWS_SRC : FTH_ROWS_TGT];
    p->cap_sentences = p->capacity[0] + p->capacity[1] + 1;
    p->cap_history = most_history(ex);
    find_attentions(ex, p);
    find_lists(ex, p);
    p->block_bytes = lay_out(p, nullptr, &p->batch);
    CUDA_TRY(cudaMalloc(&p->block, p->block_bytes), "memory for a batch");
    CUDA_TRY(cudaMallocHost(&p->staged, p->block_bytes), "pinned memory for a batch");
    CUDA_TRY(cudaEventCreateWithFlags(&p->copied, cudaEventDisableTiming), "making an event");
    memset(p->staged, 0, p->block_bytes);
    lay_out(p, p->block, &p->batch);
    FTH_TRY(fth_cuda_find_bias_makers(ex, p));
    FTH_TRY(fth_cuda_find_joined(ex, p->bias_maker, &p->joined));
    FTH_TRY(fth_cuda_prepare_late(ex, p));
    FTH_TRY(take_side_scratch(ex, p));
    FTH_TRY(fth_cuda_prepare_updates(ex->graph, p));
    FTH_TRY(fth_cuda_counters_init(&p->gemm_counters, most_products(ex->graph)));
    return ex->device->real == FTH_BF16 ? plan_biases(ex, p) : FTH_OK;
}

fth_err fth_cuda_prepare(fth_exec *ex) {
    ex->own = calloc(1, sizeof(fth_cuda_program));
    if (!ex->own) return fth_fail(FTH_NO_MEMORY, "no memory for a program");
    return prepare_parts(ex, own_of(ex));
}

void fth_cuda_unprepare(fth_exec *ex) {
    fth_cuda_program *p = own_of(ex);
    if (!p) return;
    cudaStreamSynchronize(gpu_of(ex)->stream);
    if (p->graph) cudaGraphExecDestroy(p->graph);
    cudaFree(p->block);
    cudaFreeHost(p->staged);
    if (p->copied) cudaEventDestroy(p->copied);
    cudaFree(p->side_scratch);
    cudaFree(p->update_parts);
    fth_cuda_counters_fini(&p->gemm_counters);
    cudaFree(p->bias);
    cudaFree(p->cast);
    free(p->bias_at);
    free(p->bias_maker);
    free(p->joined);
    fth_cuda_free_late(p);
    free(p);
    ex->own = nullptr;
}

/* ---- running ---- */

typedef fth_err launcher(const fth_cuda_call *c);

static bool is_watching(const fth_op *op) {
    return op->kind == FTH_KIND_gauge || op->kind == FTH_KIND_gauge_positions ||
           op->kind == FTH_KIND_gauge_entropy;
}

/* Where an operation runs that goes to the side stream, or ends. */
static cudaStream_t stream_of(const fth_cuda *gpu, const fth_op *op) {
    return op->kind == FTH_KIND_update ? gpu->updates
           : is_watching(op)           ? gpu->watching
                                       : gpu->side_stream;
}

static fth_err launch(const fth_exec *ex, const fth_op *op, int32_t n_ops, bool side) {
    static launcher *const kinds[FTH_N_KINDS] = {
#define KIND(name, text) fth_cuda_##name,
#include "graph/kinds.def"
#undef KIND
    };
    fth_cuda *gpu = gpu_of(ex);
    fth_cuda_program *p = own_of(ex);
    const bool runs = side && fth_is_deferrable(op);
    const int64_t slot = (op - ex->graph->op) % FTH_CUDA_LAG;
    fth_cuda_call call = {};
    call.gpu = gpu, call.ex = ex, call.op = op, call.n_ops = n_ops;
    call.program = p, call.batch = &p->batch, call.step = p->batch.step;
    call.stream = runs ? stream_of(gpu, op) : gpu->stream;
    call.later = side ? gpu->side_stream : gpu->stream;
    call.scratch = side ? p->side_scratch + slot * p->side_bytes : ex->scratch;
    call.workspace = gpu->workspace[runs];
    call.counters = gpu->counters + (!runs ? 0 : is_watching(op) ? 2 : 1) * FTH_CUDA_COUNTERS;
    return kinds[op->kind](&call);
}

/* Says in the message which operation failed. */
static fth_err name_operation(fth_err err, const fth_op *op) {
    if (op->layer < 0) return fth_fail_in(err, "operation %s", fth_kind_name(op->kind));
    return fth_fail_in(err, "operation %s of %s layer %d", fth_kind_name(op->kind),
                       op->stack == FTH_ENCODER ? "encoder" : "decoder", op->layer + 1);
}

/* All operations, in order, each waited for, so that an error belongs to it. */
static fth_err walk_waiting(const fth_exec *ex) {
    FTH_TRY(refresh_biases(ex));
    for (int32_t i = 0; i < ex->graph->n_ops; i++) {
        const fth_op *op = &ex->graph->op[i];
        fth_err err = launch(ex, op, 1, false);
        const cudaError_t waiting = cudaStreamSynchronize(gpu_of(ex)->stream);
        if (err == FTH_OK && waiting != cudaSuccess)
            err = fth_cuda_failed(waiting, "running a kernel");
        if (err != FTH_OK) return name_operation(err, op);
    }
    return FTH_OK;
}

/* What `to` is given from now on waits for what `from` has been given so far. */
static fth_err fork(fth_cuda *gpu, cudaStream_t from, cudaStream_t to) {
    CUDA_TRY(cudaEventRecord(gpu->forked, from), "forking a stream");
    CUDA_TRY(cudaStreamWaitEvent(to, gpu->forked, 0), "forking a stream");
    return FTH_OK;
}

fth_err fth_cuda_fork_side_stream(const fth_cuda_call *c) {
    return c->later == c->stream ? FTH_OK : fork(c->gpu, c->stream, c->later);
}

static bool forks(const fth_exec *ex, int32_t i) {
    return uses_side_stream(own_of(ex), &ex->graph->op[i]);
}

static cudaEvent_t *done_of(fth_cuda *gpu, int32_t i) {
    return &gpu->done[i % (FTH_UPDATE_LAGS * FTH_CUDA_LAG)];
}

/* n operations from i on, or their ends, on another stream, behind all that came before them:
 * updates wait for gradients, which are made on the side stream too, and for readers of the
 * matrices. */
static fth_err launch_on_side_stream(const fth_exec *ex, int32_t i, int32_t n) {
    fth_cuda *gpu = gpu_of(ex);
    const fth_op *op = &ex->graph->op[i];
    cudaStream_t to = stream_of(gpu, op);
    if (fth_is_deferrable(op)) FTH_TRY(fork(gpu, gpu->stream, to));
    if (op->kind == FTH_KIND_update) FTH_TRY(fork(gpu, gpu->side_stream, to));
    FTH_TRY(launch(ex, op, n, true));
    for (int32_t k = i; k < i + n; k++)
        CUDA_TRY(cudaEventRecord(*done_of(gpu, k), to), "forking a stream");
    return FTH_OK;
}

/* Waits on the first stream for operation i if it went to the side stream and may end `lag`
 * operations late. */
static fth_err wait_for(const fth_exec *ex, int32_t i, int32_t lag) {
    if (i < 0 || i >= ex->graph->n_ops || !forks(ex, i)) return FTH_OK;
    const bool updates = ex->graph->op[i].kind == FTH_KIND_update;
    if (lag != (updates ? FTH_UPDATE_LAGS * FTH_CUDA_LAG : FTH_CUDA_LAG)) return FTH_OK;
    CUDA_TRY(cudaStreamWaitEvent(gpu_of(ex)->stream, *done_of(gpu_of(ex), i), 0),
             "joining a stream");
    return FTH_OK;
}

/* Before operation i: what went to the side stream and must have ended now. The plan keeps what it
 * reads so long. */
static fth_err wait_for_late(const fth_exec *ex, int32_t i) {
    FTH_TRY(wait_for(ex, i - FTH_CUDA_LAG, FTH_CUDA_LAG));
    return wait_for(ex, i - FTH_UPDATE_LAGS * FTH_CUDA_LAG, FTH_UPDATE_LAGS * FTH_CUDA_LAG);
}

/* How many operations from i on are launched together. */
static int32_t together_at(const fth_graph *g, int32_t i) {
    switch (g->op[i].kind) {
    case FTH_KIND_update: return fth_cuda_updates_at(g, i);
    case FTH_KIND_gauge: return fth_cuda_gauges_at(g, i);
    default: return 1;
    }
}

/* All operations, on four streams. */
static fth_err walk(const fth_exec *ex) {
    const int32_t n = ex->graph->n_ops;
    own_of(ex)->puts_off = true;
    FTH_TRY(refresh_biases(ex));
    for (int32_t i = 0; i < n;) {
        const fth_op *op = &ex->graph->op[i];
        const int32_t together = together_at(ex->graph, i);
        fth_err err = FTH_OK;
        for (int32_t k = i; k < i + together && err == FTH_OK; k++) err = wait_for_late(ex, k);
        if (err == FTH_OK)
            err = forks(ex, i) ? launch_on_side_stream(ex, i, together)
                               : launch(ex, op, together, false);
        if (err != FTH_OK) return name_operation(err, op);
        i += together;
    }
    own_of(ex)->puts_off = false;
    FTH_TRY(fth_cuda_add_late(own_of(ex), gpu_of(ex)->stream));
    for (int32_t i = n; i < n + FTH_UPDATE_LAGS * FTH_CUDA_LAG; i++) FTH_TRY(wait_for_late(ex, i));
    return FTH_OK;
}

static fth_err capture(const fth_exec *ex) {
    cudaStream_t stream = gpu_of(ex)->stream;
    cudaGraph_t graph = nullptr;
    CUDA_TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
             "beginning a capture");
    const fth_cuda_counters *counters = &own_of(ex)->gemm_counters;
    fth_err err = fth_cuda_counters_begin(counters, counters->capacity, stream);
    if (err == FTH_OK) err = walk(ex);
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    if (err == FTH_OK && ended == cudaSuccess) err = fth_cuda_counters_end(counters, graph);
    if (err != FTH_OK) {
        if (graph) cudaGraphDestroy(graph);
        return err;
    }
    CUDA_TRY(ended, "ending a capture");
    const cudaError_t made = cudaGraphInstantiate(&own_of(ex)->graph, graph, 0);
    cudaGraphDestroy(graph);
    return made == cudaSuccess ? FTH_OK : fth_cuda_failed(made, "making a graph of the program");
}

fth_err fth_cuda_run(fth_exec *ex) {
    fth_cuda_program *p = own_of(ex);
    FTH_TRY(send_batch(ex));
    if (p->runs++ == 0) return walk_waiting(ex);
    if (!p->graph) FTH_TRY(capture(ex));
    CUDA_TRY(cudaGraphLaunch(p->graph, gpu_of(ex)->stream), "launching the program");
    return FTH_OK;
}

/* One operation on its own: profiling, and the search for the first bad value. */
fth_err fth_cuda_one(fth_exec *ex, const fth_op *op) {
    if (op == ex->graph->op) {
        FTH_TRY(send_batch(ex));
        FTH_TRY(refresh_biases(ex));
    }
    FTH_TRY(launch(ex, op, 1, false));
    CUDA_TRY(cudaStreamSynchronize(gpu_of(ex)->stream), "running a kernel");
    return FTH_OK;
}
