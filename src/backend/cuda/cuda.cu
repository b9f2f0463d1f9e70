/* cuda.cu: the backend's table: opening a GPU, its memory. */
#include "backend/cuda/product/gemm.cuh"
#include "backend/cuda/product/tensor_map.cuh"

#include <stdlib.h>

extern "C" {
#include "backend/stream.h"
#include "base/launcher.h"
}

fth_err fth_cuda_failed(cudaError_t err, const char *what) {
    return fth_fail(err == cudaErrorMemoryAllocation ? FTH_NO_MEMORY : FTH_FAILED, "CUDA: %s: %s",
                    what, cudaGetErrorString(err));
}

#ifdef FATHOM_HAS_SM90A
static bool find_wgmma(void) {
    const char *asked = getenv("FATHOM_CUDA_WGMMA");
    int major = 0, minor = 0;
    return !(asked && strcmp(asked, "0") == 0) && fth_cuda_can_map() &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess &&
           cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0) == cudaSuccess &&
           major == 9 && minor == 0;
}

bool fth_cuda_has_wgmma(void) {
    static const bool found = find_wgmma();
    return found;
}
#else
bool fth_cuda_has_wgmma(void) {
    return false;
}
#endif

fth_err fth_cuda_launched(void) {
    const cudaError_t err = cudaGetLastError();
    return err == cudaSuccess ? FTH_OK : fth_cuda_failed(err, "launching a kernel");
}

static fth_cuda *gpu_of(fth_device *dev) {
    return reinterpret_cast<fth_cuda *>(dev);
}

/* ---- opening ---- */

/* The first GPU, or why it cannot be used; processes that a launcher has started here take them in
 * turn. */
static fth_err find_gpu(cudaDeviceProp *props) {
    int count = 0;
    const cudaError_t err = cudaGetDeviceCount(&count);
    if (err != cudaSuccess || count == 0) {
        (void)cudaGetLastError();
        return fth_fail(FTH_USAGE, "--device cuda: no NVIDIA GPU can be used here (%s)",
                        err == cudaSuccess ? "none found" : cudaGetErrorString(err));
    }
    const int mine = fth_launched_here() % count;
    CUDA_TRY(cudaSetDevice(mine), "choosing a GPU");
    CUDA_TRY(cudaGetDeviceProperties(props, mine), "asking for the properties of a GPU");
    if (props->major < 8)
        return fth_fail(FTH_USAGE,
                        "--device cuda: %s has compute capability %d.%d, must be 8.0 or newer",
                        props->name, props->major, props->minor);
    return FTH_OK;
}

static void cuda_close(fth_device *dev) {
    fth_cuda *gpu = gpu_of(dev);
    fth_cuda_products_fini(gpu);
    if (gpu->stream) cudaStreamSynchronize(gpu->stream);
    for (void *workspace : gpu->workspace) cudaFree(workspace);
    cudaFree(gpu->counters);
    cudaFree(gpu->sums);
    cudaFree(gpu->range);
    cudaFree(gpu->range_sums);
    if (gpu->blas) cublasLtDestroy(gpu->blas);
    if (gpu->stream) cudaStreamDestroy(gpu->stream);
    if (gpu->side_stream) cudaStreamDestroy(gpu->side_stream);
    if (gpu->updates) cudaStreamDestroy(gpu->updates);
    if (gpu->watching) cudaStreamDestroy(gpu->watching);
    if (gpu->forked) cudaEventDestroy(gpu->forked);
    for (cudaEvent_t event : gpu->done)
        if (event) cudaEventDestroy(event);
    free(gpu);
}

/* What others wait for goes first: what runs on the side stream fills the multiprocessors that are
 * left. */
static fth_err open_streams(fth_cuda *gpu) {
    int least = 0, greatest = 0;
    CUDA_TRY(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
    CUDA_TRY(cudaStreamCreateWithPriority(&gpu->stream, cudaStreamNonBlocking, greatest),
             "making a stream");
    for (cudaStream_t *stream : {&gpu->side_stream, &gpu->updates, &gpu->watching})
        CUDA_TRY(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, least),
                 "making a stream");
    CUDA_TRY(cudaEventCreateWithFlags(&gpu->forked, cudaEventDisableTiming), "making an event");
    for (cudaEvent_t &event : gpu->done)
        CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
    return FTH_OK;
}

static fth_err open_parts(fth_cuda *gpu) {
    FTH_TRY(open_streams(gpu));
    const cublasStatus_t status = cublasLtCreate(&gpu->blas);
    if (status != CUBLAS_STATUS_SUCCESS)
        return fth_fail(FTH_FAILED, "CUDA: starting cuBLASLt: %s", cublasLtGetStatusString(status));
    const size_t counters = sizeof *gpu->counters * FTH_CUDA_COUNTING * FTH_CUDA_COUNTERS;
    for (void *&workspace : gpu->workspace)
        CUDA_TRY(cudaMalloc(&workspace, FTH_CUDA_WORKSPACE), "memory for cuBLASLt");
    CUDA_TRY(cudaMalloc(&gpu->counters, counters), "memory for counters");
    CUDA_TRY(cudaMalloc(&gpu->sums, sizeof *gpu->sums * (FTH_CUDA_SUMS + 1)), "memory for sums");
    CUDA_TRY(cudaMemset(gpu->counters, 0, counters), "clearing counters");
    CUDA_TRY(cudaDeviceSynchronize(), "opening the GPU");
    return FTH_OK;
}

static fth_err cuda_open(const fth_backend *self, fth_precision precision, int threads,
                         fth_device **out) {
    cudaDeviceProp props;
    FTH_TRY(find_gpu(&props));
    fth_cuda *gpu = (fth_cuda *)calloc(1, sizeof *gpu);
    if (!gpu) return fth_fail(FTH_NO_MEMORY, "no memory for device cuda");
    gpu->device = {self, precision, threads, precision == FTH_PRECISION_FP32 ? FTH_F32 : FTH_BF16,
                   FTH_F32};
    gpu->processors = props.multiProcessorCount;
    const fth_err err = open_parts(gpu);
    if (err != FTH_OK) {
        cuda_close(&gpu->device);
        return err;
    }
    *out = &gpu->device;
    return FTH_OK;
}

/* ---- memory ---- */

static fth_err cuda_memory(fth_device *dev, int64_t *free_bytes, int64_t *total_bytes) {
    (void)dev;
    size_t available = 0, total = 0;
    CUDA_TRY(cudaMemGetInfo(&available, &total), "asking for free memory");
    *free_bytes = (int64_t)available;
    *total_bytes = (int64_t)total;
    return FTH_OK;
}

static fth_err cuda_zero(fth_device *dev, void *data, int64_t bytes) {
    if (bytes > 0)
        CUDA_TRY(cudaMemsetAsync(data, 0, (size_t)bytes, gpu_of(dev)->stream), "clearing memory");
    return FTH_OK;
}

static fth_err cuda_alloc(fth_device *dev, int64_t bytes, void **out) {
    const cudaError_t err = cudaMalloc(out, bytes > 0 ? (size_t)bytes : 256);
    if (err == cudaErrorMemoryAllocation) {
        int64_t available = 0, total = 0;
        (void)cudaGetLastError();
        FTH_TRY(cuda_memory(dev, &available, &total));
        return fth_fail(FTH_NO_MEMORY,
                        "%.2f GiB of GPU memory are needed, %.2f of %.2f GiB are free; a smaller "
                        "--memory-budget or --max-tokens needs less",
                        (double)bytes / 0x1p30, (double)available / 0x1p30, (double)total / 0x1p30);
    }
    if (err != cudaSuccess) return fth_cuda_failed(err, "taking memory");
    return cuda_zero(dev, *out, bytes);
}

static void cuda_release(fth_device *dev, void *data) {
    (void)dev;
    cudaFree(data); /* waits for the work that uses it */
}

static fth_err copy(fth_device *dev, void *to, const void *from, int64_t bytes,
                    cudaMemcpyKind kind) {
    cudaStream_t stream = gpu_of(dev)->stream;
    if (bytes > 0) CUDA_TRY(cudaMemcpyAsync(to, from, (size_t)bytes, kind, stream), "copying");
    CUDA_TRY(cudaStreamSynchronize(stream), "waiting for the GPU");
    return FTH_OK;
}

static fth_err cuda_upload(fth_device *dev, void *to, const void *from, int64_t bytes) {
    return copy(dev, to, from, bytes, cudaMemcpyHostToDevice);
}

static fth_err cuda_download(fth_device *dev, void *to, const void *from, int64_t bytes) {
    return copy(dev, to, from, bytes, cudaMemcpyDeviceToHost);
}

/* ---- the table ---- */

static fth_backend make_table(void) {
    fth_backend table = {};
    table.name = "cuda";
    table.open = cuda_open;
    table.close = cuda_close;
    table.alloc = cuda_alloc;
    table.release = cuda_release;
    table.upload = cuda_upload;
    table.download = cuda_download;
    table.zero = cuda_zero;
    table.memory = cuda_memory;
    table.run = fth_cuda_run;
    table.lag = FTH_CUDA_LAG;
    table.joined = true;
    table.update_together = FTH_CUDA_UPDATE;
    table.keep_bits = true;
    table.prepare = fth_cuda_prepare;
    table.unprepare = fth_cuda_unprepare;
    table.sum_squares = fth_cuda_sum_squares;
    table.square_sums = fth_cuda_square_sums;
    table.add_up = fth_cuda_add_up;
    table.adam = fth_cuda_adam;
    table.refresh_weights = fth_cuda_refresh_weights;
    table.range_sums = fth_cuda_range_sums;
    for (fth_kernel &kernel : table.kernel) kernel = fth_cuda_one;
    table.scratch[FTH_KIND_attention_bwd] = fth_cuda_attention_bwd_scratch;
    table.scratch[FTH_KIND_join_bwd] = fth_cuda_join_bwd_scratch;
    table.scratch[FTH_KIND_norm_bwd] = fth_cuda_join_bwd_scratch;
    table.scratch[FTH_KIND_join_norm_bwd] = fth_cuda_join_bwd_scratch;
    table.scratch[FTH_KIND_linear_dx] = fth_cuda_linear_dx_scratch;
    table.scratch[FTH_KIND_linear_dw] = fth_cuda_linear_dw_scratch;
    table.scratch[FTH_KIND_xent] = fth_cuda_xent_scratch;
    table.scratch[FTH_KIND_scale_shift_bwd] = fth_cuda_dots_scratch;
    table.scratch[FTH_KIND_head_scale_bwd] = fth_cuda_dots_scratch;
    table.scratch[FTH_KIND_mix_bwd] = fth_cuda_dots_scratch;
    table.scratch[FTH_KIND_gauge] = fth_cuda_gauge_scratch;
    table.scratch[FTH_KIND_gauge_positions] = fth_cuda_gauge_scratch;
    table.scratch[FTH_KIND_gauge_entropy] = fth_cuda_gauge_scratch;
    return table;
}

extern "C" const fth_backend *fth_backend_cuda(void) {
    static const fth_backend table = make_table();
    return &table;
}

extern "C" void *fth_gpu_stream(const fth_device *dev) {
    if (dev->backend != fth_backend_cuda()) return nullptr;
    return reinterpret_cast<const fth_cuda *>(dev)->stream;
}
