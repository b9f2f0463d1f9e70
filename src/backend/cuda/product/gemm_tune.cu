/* gemm_tune.cu: which of cuBLASLt's algorithms for a product is the fastest here. Its heuristic's
 * first choice is up to a fifth slower than the best for some shapes. Which one wins may change
 * from run to run, but results may not: only algorithms that give the bits of the first choice on
 * the product's own operands take part, that is, those that sum in the same order. */
#include "backend/cuda/product/gemm.cuh"
#include "backend/cuda/vec.cuh"

namespace {
enum { LAUNCHES = 6, COMPARE_THREADS = 256 };

const double WORTH_TRYING = 0x1p26; /* m n k: below it the differences are lost in the launch */
const float CLEARLY_FASTER = 0.97f;

/* Memory and events of a trial. */
struct trial {
    void *first, *other; /* results */
    int64_t bytes;
    unsigned *differ; /* words */
    cudaEvent_t begin, end;
};

void trial_fini(trial *t) {
    cudaFree(t->first);
    cudaFree(t->other);
    cudaFree(t->differ);
    if (t->begin) cudaEventDestroy(t->begin);
    if (t->end) cudaEventDestroy(t->end);
}

bool trial_init(trial *t, const fth_cuda_product_key *k) {
    t->bytes = (k->m * k->ldd * (int64_t)fth_dtype_size((fth_dtype)k->out_type) + 3) / 4 * 4;
    const bool ok = cudaMalloc(&t->first, (size_t)t->bytes) == cudaSuccess &&
                    cudaMalloc(&t->other, (size_t)t->bytes) == cudaSuccess &&
                    cudaMalloc(&t->differ, sizeof *t->differ) == cudaSuccess &&
                    cudaEventCreate(&t->begin) == cudaSuccess &&
                    cudaEventCreate(&t->end) == cudaSuccess;
    if (!ok) (void)cudaGetLastError(); /* no memory to spare: the first choice will do */
    return ok;
}

__global__ void __launch_bounds__(COMPARE_THREADS)
    compare(const uint32_t *a, const uint32_t *b, int64_t n, unsigned *differ) {
    unsigned mine = 0;
    for (int64_t i = blockIdx.x * COMPARE_THREADS + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * COMPARE_THREADS)
        mine += a[i] != b[i];
    if (mine) atomicAdd(differ, mine);
}

/* A graph of LAUNCHES launches with p's algorithm into `to`; NULL if it cannot. */
cudaGraphExec_t graph_of(const fth_cuda_call *c, const fth_cuda_gemm *g, const fth_cuda_product *p,
                         void *to) {
    fth_cuda_counters *counters = &c->program->gemm_counters;
    const int32_t used = counters->used;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    if (cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal)) return nullptr;
    bool ok = fth_cuda_counters_begin(counters, LAUNCHES, c->stream) == FTH_OK;
    for (int i = 0; i < LAUNCHES && ok; i++) ok = !fth_cuda_product_run(c, g, p, to);
    counters->used = used;
    ok = cudaStreamEndCapture(c->stream, &graph) == cudaSuccess && ok &&
         fth_cuda_counters_end(counters, graph) == FTH_OK &&
         cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess;
    if (graph) cudaGraphDestroy(graph);
    return ok ? exec : nullptr;
}

/* Milliseconds of LAUNCHES launches with p's algorithm into `to`, in a graph, as they will run;
 * infinity if it cannot. */
float time_of(const fth_cuda_call *c, const fth_cuda_gemm *g, const fth_cuda_product *p, trial *t,
              void *to) {
    float ms = INFINITY;
    if (cudaMemsetAsync(to, 0, (size_t)t->bytes, c->stream)) return ms;
    cudaGraphExec_t graph = graph_of(c, g, p, to);
    if (!graph) return ms;
    bool ok = cudaGraphLaunch(graph, c->stream) == cudaSuccess; /* the first one warms up */
    cudaEventRecord(t->begin, c->stream);
    ok = ok && cudaGraphLaunch(graph, c->stream) == cudaSuccess;
    cudaEventRecord(t->end, c->stream);
    ok = ok && cudaEventSynchronize(t->end) == cudaSuccess &&
         cudaEventElapsedTime(&ms, t->begin, t->end) == cudaSuccess;
    cudaGraphExecDestroy(graph);
    return ok ? ms : INFINITY;
}

bool same_bits(const fth_cuda_call *c, trial *t) {
    unsigned differ = 1;
    cudaMemsetAsync(t->differ, 0, sizeof differ, c->stream);
    compare<<<256, COMPARE_THREADS, 0, c->stream>>>(
        (const uint32_t *)t->first, (const uint32_t *)t->other, t->bytes / 4, t->differ);
    cudaMemcpyAsync(&differ, t->differ, sizeof differ, cudaMemcpyDeviceToHost, c->stream);
    return cudaStreamSynchronize(c->stream) == cudaSuccess && differ == 0;
}

bool is_captured(const fth_cuda_call *c) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(c->stream, &status) != cudaSuccess ||
           status != cudaStreamCaptureStatusNone;
}
} // namespace

void fth_cuda_product_tune(const fth_cuda_call *c, const fth_cuda_gemm *g, fth_cuda_product *p,
                           const cublasLtMatmulHeuristicResult_t *found, int n) {
    const double work = (double)g->m * (double)g->n * (double)g->k;
    if (n < 2 || work < WORTH_TRYING || is_captured(c)) return;
    trial t = {};
    if (trial_init(&t, &p->key)) {
        float best = time_of(c, g, p, &t, t.first) * CLEARLY_FASTER;
        fth_cuda_product other = *p;
        for (int i = 1; i < n; i++) {
            if (found[i].state != CUBLAS_STATUS_SUCCESS) continue;
            other.algo = found[i].algo;
            other.workspace = found[i].workspaceSize;
            const float ms = time_of(c, g, &other, &t, t.other);
            if (!(ms < best) || !same_bits(c, &t)) continue;
            best = ms;
            p->algo = other.algo;
            p->workspace = other.workspace;
        }
    }
    trial_fini(&t);
    (void)cudaGetLastError(); /* of an algorithm that could not be launched */
}
