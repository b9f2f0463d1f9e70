/* gemm.cu: D = act(op(A) op(B) + C + bias): 2 m n k operations by cuBLASLt. The algorithm is chosen
 * once per shape, in such a way that runs have the same bits (gemm_tune.cu). Shapes that cuBLASLt
 * cannot do (odd alignments) go to a plain kernel. */
#include "backend/cuda/product/gemm.cuh"

#include <stdlib.h>

#include "backend/cuda/vec.cuh"

/* Algorithms that are tried. */
enum { TRIES = 32 };

static void product_fini(fth_cuda_product *p) {
    if (p->desc) cublasLtMatmulDescDestroy(p->desc);
    cublasLtMatrixLayout_t layouts[] = {p->a, p->b, p->c, p->d};
    for (cublasLtMatrixLayout_t layout : layouts)
        if (layout) cublasLtMatrixLayoutDestroy(layout);
}

void fth_cuda_products_fini(fth_cuda *gpu) {
    for (int i = 0; i < gpu->n_products; i++) product_fini(&gpu->products[i]);
    free(gpu->products);
    gpu->products = nullptr;
    gpu->n_products = gpu->cap_products = 0;
}

/* ---- descriptions ---- */

static int32_t alignment_of(const void *p) {
    const uintptr_t low = (uintptr_t)p & (0 - (uintptr_t)p);
    return p == nullptr || low > 16 ? 16 : (int32_t)low;
}

static fth_cuda_product_key key_of(const fth_cuda_gemm *g) {
    fth_cuda_product_key key;
    memset(&key, 0, sizeof key);
    key.m = g->m, key.n = g->n, key.k = g->k;
    key.lda = g->lda, key.ldb = g->ldb, key.ldc = g->c ? g->ldc : g->ldd, key.ldd = g->ldd;
    key.type = g->type, key.out_type = g->out_type;
    key.a_turned = g->a_turned, key.b_turned = g->b_turned;
    key.adds = g->c != nullptr, key.bias = g->bias != nullptr, key.relu = g->relu;
    const void *places[4] = {g->a, g->b, g->c, g->d};
    for (int i = 0; i < 4; i++) key.aligned[i] = alignment_of(places[i]);
    return key;
}

static cudaDataType_t type_of(int32_t type) {
    return type == FTH_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static fth_err blas_failed(cublasStatus_t status, const fth_cuda_product_key *k, const char *what) {
    return fth_fail(FTH_FAILED, "CUDA: %s of a product of %lld x %lld x %lld: %s", what,
                    (long long)k->m, (long long)k->n, (long long)k->k,
                    cublasLtGetStatusString(status));
}

template <class V>
static cublasStatus_t set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t name, V value) {
    return cublasLtMatmulDescSetAttribute(desc, name, &value, sizeof value);
}

/* cuBLASLt counts by columns: a row-major D is its transpose D' = op(B)' op(A)', so B comes first
 * and the rows of a layout are the columns of ours. */
static cublasStatus_t describe(const fth_cuda_product_key *k, fth_cuda_product *p) {
    const cudaDataType_t in = type_of(k->type), out = type_of(k->out_type);
    const int a_op = k->b_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int b_op = k->a_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int epilogue = k->bias && k->relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                         : k->bias          ? CUBLASLT_EPILOGUE_BIAS
                         : k->relu          ? CUBLASLT_EPILOGUE_RELU
                                            : CUBLASLT_EPILOGUE_DEFAULT;
    cublasStatus_t s = cublasLtMatmulDescCreate(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (!s) s = set(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, a_op);
    if (!s) s = set(p->desc, CUBLASLT_MATMUL_DESC_TRANSB, b_op);
    if (!s) s = set(p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    const int64_t b_rows = k->b_turned ? k->k : k->n, b_columns = k->b_turned ? k->n : k->k;
    const int64_t a_rows = k->a_turned ? k->m : k->k, a_columns = k->a_turned ? k->k : k->m;
    if (!s) s = cublasLtMatrixLayoutCreate(&p->a, in, b_rows, b_columns, k->ldb);
    if (!s) s = cublasLtMatrixLayoutCreate(&p->b, in, a_rows, a_columns, k->lda);
    if (!s) s = cublasLtMatrixLayoutCreate(&p->c, out, k->n, k->m, k->ldc);
    if (!s) s = cublasLtMatrixLayoutCreate(&p->d, out, k->n, k->m, k->ldd);
    return s;
}

static cublasStatus_t prefer(const fth_cuda_product_key *k, cublasLtMatmulPreference_t preference) {
    const uint64_t workspace = FTH_CUDA_WORKSPACE;
    cublasStatus_t s = cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    const cublasLtMatmulPreferenceAttributes_t names[4] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    for (int i = 0; i < 4 && !s; i++) {
        const uint32_t bytes = (uint32_t)k->aligned[i];
        s = cublasLtMatmulPreferenceSetAttribute(preference, names[i], &bytes, sizeof bytes);
    }
    return s;
}

/* The heuristic's choices, of which the fastest stays. */
static fth_err choose(const fth_cuda_call *c, const fth_cuda_gemm *g, fth_cuda_product *p) {
    const fth_cuda_product_key *k = &p->key;
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulHeuristicResult_t results[TRIES];
    int found = 0;
    cublasStatus_t s = describe(k, p);
    if (!s && g->bias) s = set(p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, g->bias);
    if (!s) s = cublasLtMatmulPreferenceCreate(&preference);
    if (!s) s = prefer(k, preference);
    if (s) {
        if (preference) cublasLtMatmulPreferenceDestroy(preference);
        return blas_failed(s, k, "the description");
    }
    s = cublasLtMatmulAlgoGetHeuristic(c->gpu->blas, p->desc, p->a, p->b, p->c, p->d, preference,
                                       TRIES, results, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    p->plain =
        s != CUBLAS_STATUS_SUCCESS || found == 0 || results[0].state != CUBLAS_STATUS_SUCCESS;
    if (p->plain) return FTH_OK;
    p->algo = results[0].algo;
    p->workspace = results[0].workspaceSize;
    fth_cuda_product_tune(c, g, p, results, found);
    return FTH_OK;
}

static fth_err product_for(const fth_cuda_call *c, const fth_cuda_gemm *g, fth_cuda_product **out) {
    fth_cuda *gpu = c->gpu;
    const fth_cuda_product_key key = key_of(g);
    for (int i = 0; i < gpu->n_products; i++)
        if (memcmp(&gpu->products[i].key, &key, sizeof key) == 0) {
            *out = &gpu->products[i];
            return FTH_OK;
        }
    if (gpu->n_products == gpu->cap_products) {
        const int capacity = gpu->cap_products ? gpu->cap_products * 2 : 32;
        void *more = realloc(gpu->products, sizeof(fth_cuda_product) * (size_t)capacity);
        if (!more) return fth_fail(FTH_NO_MEMORY, "no memory for %d products", capacity);
        gpu->products = (fth_cuda_product *)more;
        gpu->cap_products = capacity;
    }
    fth_cuda_product p;
    memset(&p, 0, sizeof p);
    p.key = key;
    const fth_err err = choose(c, g, &p);
    if (err != FTH_OK) {
        product_fini(&p);
        return err;
    }
    gpu->products[gpu->n_products] = p;
    *out = &gpu->products[gpu->n_products++];
    return FTH_OK;
}

/* ---- the plain kernel ---- */

enum { TILE = 16 };

template <class T, class D>
__global__ void __launch_bounds__(TILE *TILE) plain_product(fth_cuda_gemm g) {
    __shared__ float a_tile[TILE][TILE + 1], b_tile[TILE][TILE + 1];
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    const int64_t row0 = (int64_t)blockIdx.y * TILE, column0 = (int64_t)blockIdx.x * TILE;
    const T *a = (const T *)g.a, *b = (const T *)g.b;
    float sum = 0.0f;
    for (int64_t k0 = 0; k0 < g.k; k0 += TILE) {
        const int64_t row = row0 + y, column = column0 + y, k = k0 + x;
        float from_a = 0.0f, from_b = 0.0f;
        if (row < g.m && k < g.k)
            from_a = to_float(g.a_turned ? a[k * g.lda + row] : a[row * g.lda + k]);
        if (column < g.n && k < g.k)
            from_b = to_float(g.b_turned ? b[column * g.ldb + k] : b[k * g.ldb + column]);
        a_tile[y][x] = from_a; /* [row][k] */
        b_tile[y][x] = from_b; /* [column][k] */
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum += a_tile[y][i] * b_tile[x][i];
        __syncthreads();
    }
    const int64_t row = row0 + y, column = column0 + x;
    if (row >= g.m || column >= g.n) return;
    if (g.c) sum += to_float(((const D *)g.c)[row * g.ldc + column]);
    if (g.bias) sum += to_float(((const D *)g.bias)[column]);
    if (g.relu) sum = fmaxf(sum, 0.0f);
    ((D *)g.d)[row * g.ldd + column] = from_float<D>(sum);
}

static fth_err multiply_plainly(const fth_cuda_call *c, const fth_cuda_gemm *g) {
    const dim3 blocks(ceil_div(g->n, TILE), ceil_div(g->m, TILE));
    if (g->type == FTH_F32)
        plain_product<float, float><<<blocks, TILE * TILE, 0, c->stream>>>(*g);
    else if (g->out_type == FTH_BF16)
        plain_product<bf16, bf16><<<blocks, TILE * TILE, 0, c->stream>>>(*g);
    else
        plain_product<bf16, float><<<blocks, TILE * TILE, 0, c->stream>>>(*g);
    return fth_cuda_launched();
}

cublasStatus_t fth_cuda_product_run(const fth_cuda_call *c, const fth_cuda_gemm *g,
                                    const fth_cuda_product *p, void *d) {
    const float one = 1.0f, beta = g->c ? 1.0f : 0.0f;
    void *counter = fth_cuda_counters_take(&c->program->gemm_counters, p->workspace);
    return cublasLtMatmul(c->gpu->blas, p->desc, &one, g->b, p->a, g->a, p->b, &beta,
                          g->c ? g->c : d, p->c, d, p->d, &p->algo,
                          counter ? counter : c->workspace,
                          counter ? p->workspace : (size_t)FTH_CUDA_WORKSPACE, c->stream);
}

fth_err fth_cuda_multiply(const fth_cuda_call *c, const fth_cuda_gemm *g) {
    if (g->m == 0 || g->n == 0 || g->k == 0) return FTH_OK; /* no rows, no columns */
    fth_cuda_product *p;
    FTH_TRY(product_for(c, g, &p));
    if (p->plain) return multiply_plainly(c, g);
    if (g->bias) {
        const cublasStatus_t s = set(p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, g->bias);
        if (s) return blas_failed(s, &p->key, "the bias");
    }
    const cublasStatus_t s = fth_cuda_product_run(c, g, p, g->d);
    return s ? blas_failed(s, &p->key, "the launch") : FTH_OK;
}
