/* gemm_counters.cu: counters that must be 0 when a product begins. Some of cuBLASLt's algorithms
 * hand out their tiles through a counter in their workspace, and clear it by a node of its own: 4
 * bytes, but 5 to 7 us between two kernels. Here every launch of a graph gets its own counter, one
 * node at the graph's beginning clears them all, and the others are taken out. */
#include "backend/cuda/cuda.cuh"

#include <stdlib.h>

enum { COUNTER = 256 }; /* bytes of one, and how workspaces are aligned */

fth_err fth_cuda_counters_init(fth_cuda_counters *c, int32_t capacity) {
    CUDA_TRY(cudaMalloc(&c->memory, (size_t)capacity * COUNTER), "memory for counters");
    c->capacity = capacity;
    return FTH_OK;
}

void fth_cuda_counters_fini(fth_cuda_counters *c) {
    cudaFree(c->memory);
    *c = {};
}

void *fth_cuda_counters_take(fth_cuda_counters *c, size_t bytes) {
    if (bytes == 0 || bytes >= COUNTER || c->used == c->capacity) return nullptr;
    return c->memory + (size_t)c->used++ * COUNTER;
}

fth_err fth_cuda_counters_begin(const fth_cuda_counters *c, int32_t n, cudaStream_t stream) {
    if (n > c->capacity - c->used) n = c->capacity - c->used;
    CUDA_TRY(cudaMemsetAsync(c->memory + (size_t)c->used * COUNTER, 0, (size_t)n * COUNTER, stream),
             "clearing counters");
    return FTH_OK;
}

/* Whether a node does nothing but clear one counter. */
static bool clears_one(const fth_cuda_counters *c, cudaGraphNode_t node) {
    cudaGraphNodeType type;
    cudaMemsetParams m;
    if (cudaGraphNodeGetType(node, &type) || type != cudaGraphNodeTypeMemset) return false;
    if (cudaGraphMemsetNodeGetParams(node, &m)) return false;
    const char *at = static_cast<const char *>(m.dst);
    return at >= c->memory && at < c->memory + (size_t)c->capacity * COUNTER && m.height == 1 &&
           m.width * m.elementSize < COUNTER && m.value == 0;
}

enum { NEIGHBOURS = 8 };

struct neighbours {
    cudaGraphNode_t node[NEIGHBOURS];
    size_t n;
};

static bool contains(const neighbours *list, cudaGraphNode_t node) {
    for (size_t i = 0; i < list->n; i++)
        if (list->node[i] == node) return true;
    return false;
}

/* Lets what waits for the node wait for what the node waits for, and removes it. It stays where it
 * has too many neighbours. */
static cudaError_t take_out(cudaGraph_t graph, cudaGraphNode_t node) {
    neighbours before, after, known;
    before.n = after.n = known.n = NEIGHBOURS + 1;
    cudaError_t err = cudaGraphNodeGetDependencies(node, nullptr, nullptr, &before.n);
    if (!err) err = cudaGraphNodeGetDependentNodes(node, nullptr, nullptr, &after.n);
    if (err || before.n > NEIGHBOURS || after.n > NEIGHBOURS) return err;
    err = cudaGraphNodeGetDependencies(node, before.node, nullptr, &before.n);
    if (!err) err = cudaGraphNodeGetDependentNodes(node, after.node, nullptr, &after.n);
    for (size_t k = 0; k < after.n && !err; k++) {
        err = cudaGraphNodeGetDependencies(after.node[k], nullptr, nullptr, &known.n);
        if (err || known.n > NEIGHBOURS) return err;
        err = cudaGraphNodeGetDependencies(after.node[k], known.node, nullptr, &known.n);
        for (size_t i = 0; i < before.n && !err; i++)
            if (!contains(&known, before.node[i]))
                err = cudaGraphAddDependencies(graph, &before.node[i], &after.node[k], nullptr, 1);
    }
    return err ? err : cudaGraphDestroyNode(node);
}

fth_err fth_cuda_counters_end(const fth_cuda_counters *c, cudaGraph_t graph) {
    size_t n = 0;
    CUDA_TRY(cudaGraphGetNodes(graph, nullptr, &n), "looking through a graph");
    cudaGraphNode_t *node = (cudaGraphNode_t *)malloc(sizeof *node * (n + 1));
    if (!node) return fth_fail(FTH_NO_MEMORY, "no memory for %zu nodes of a graph", n);
    cudaError_t err = cudaGraphGetNodes(graph, node, &n);
    for (size_t i = 0; i < n && !err; i++)
        if (clears_one(c, node[i])) err = take_out(graph, node[i]);
    free(node);
    return err == cudaSuccess ? FTH_OK : fth_cuda_failed(err, "taking nodes out of a graph");
}
