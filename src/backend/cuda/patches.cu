/* patches.cu: the rows of numbers that the batch brings, and rows of the source from rows of
 * patches: y = D(row + P[position]), where the row is a patch's, the class token in a sentence's
 * first row, or the mask token where the patch is hidden. Reads n and the positions, writes n.
 * Backward: dx = D(dy), and the sums of D(dy) over sentences for every position, over first rows
 * and hidden rows for the tokens: each by one block, in a fixed order. */
#include "backend/cuda/random.cuh"

namespace {
enum { PATCH_THREADS = 256, PATCH_LANES = 4 };

struct place { /* what forward and backward share */
    const int32_t *pos, *sentence, *offsets;
    const int32_t *masked; /* NULL: nothing is hidden */
    int cls;               /* 1: first rows are the class token's */
    int width;
    uint32_t chunks;
    drop_place drop;
    row_count rows;
    const fth_cuda_step *step;
};

/* The row of numbers that stands in a row of the source; -1: the class token's. */
__device__ int64_t patch_of(const place &p, int64_t row) {
    if (!p.cls) return row;
    return p.pos[row] == 0 ? -1 : row - (p.sentence[row] + 1);
}

__device__ bool is_hidden(const place &p, int64_t patch) {
    return p.masked && patch >= 0 && p.masked[patch];
}

template <class T, class P>
__global__ void __launch_bounds__(PATCH_THREADS)
    patches_kernel(place p, const T *x, int64_t ld_x, const P *positions, int64_t ld_positions,
                   const float *cls, const float *mask, T *y, int64_t ld_y, bool wide) {
    const uint32_t i = blockIdx.x * PATCH_THREADS + threadIdx.x, row = i / p.chunks;
    if (row >= p.rows.capacity) return;
    const int column = (int)(i - row * p.chunks) * 8, n = min(8, p.width - column);
    float out[8];
    fill8(out, 0.0f);
    if (row < rows_now(p.step, p.rows)) {
        float shown[8], position[8], kept[8];
        const int64_t patch = patch_of(p, row);
        const float *token = patch < 0 ? cls : is_hidden(p, patch) ? mask : nullptr;
        if (token)
            load8(token + column, false, n, shown);
        else
            load8(x + patch * ld_x + column, wide, n, shown);
        load8(positions + p.pos[row] * ld_positions + column, wide, n, position);
        drop_factors(p.step, p.drop, row, column, false, kept);
#pragma unroll
        for (int k = 0; k < 8; k++) out[k] = kept[k] * (shown[k] + position[k]);
    }
    store8(y + row * ld_y + column, wide, n, out);
}

/* D(dy) of a row, eight columns. */
template <class T>
__device__ void gradient(const place &p, const T *dy, int64_t ld, bool wide, int64_t row,
                         int column, int n, float g[8]) {
    float kept[8];
    load8(dy + row * ld + column, wide, n, g);
    drop_factors(p.step, p.drop, row, column, false, kept);
#pragma unroll
    for (int k = 0; k < 8; k++) g[k] *= kept[k];
}

/* Number i is a row of the source, whose patch gets its gradient, and, past the batch's rows of
 * numbers, a row of dx that gets zeros. */
template <class T>
__global__ void __launch_bounds__(PATCH_THREADS)
    patches_dx(place p, const T *dy, int64_t ld_dy, T *dx, int64_t ld_dx, row_count numbers,
               bool wide) {
    const uint32_t i = blockIdx.x * PATCH_THREADS + threadIdx.x, row = i / p.chunks;
    const int column = (int)(i - row * p.chunks) * 8, n = min(8, p.width - column);
    float g[8];
    if (row < numbers.capacity && row >= rows_now(p.step, numbers)) {
        fill8(g, 0.0f);
        store8(dx + row * ld_dx + column, wide, n, g);
    }
    if (row >= rows_now(p.step, p.rows)) return;
    const int64_t patch = patch_of(p, row);
    if (patch < 0) return;
    fill8(g, 0.0f);
    if (!is_hidden(p, patch)) gradient(p, dy, ld_dy, wide, row, column, n, g);
    store8(dx + patch * ld_dx + column, wide, n, g);
}

/* A block for every position. */
template <class T>
__global__ void __launch_bounds__(PATCH_THREADS)
    positions_bwd(place p, const T *dy, int64_t ld_dy, float *dpos, int64_t ld_pos, bool wide) {
    __shared__ float shared[PATCH_LANES][PATCH_THREADS / PATCH_LANES][8];
    const int lane = threadIdx.x % PATCH_LANES, piece = threadIdx.x / PATCH_LANES;
    for (uint32_t chunk = 0; chunk < p.chunks; chunk += PATCH_THREADS / PATCH_LANES) {
        const bool active = chunk + piece < p.chunks;
        const int column = (int)(chunk + piece) * 8, n = min(8, p.width - column);
        float sum[8];
        fill8(sum, 0.0f);
        for (int s = lane; active && s < p.step->n_sent; s += PATCH_LANES) {
            const int64_t row = p.offsets[s] + blockIdx.x;
            float g[8];
            if (row >= p.offsets[s + 1]) continue;
            gradient(p, dy, ld_dy, wide, row, column, n, g);
#pragma unroll
            for (int k = 0; k < 8; k++) sum[k] += g[k];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; k++) shared[lane][piece][k] = sum[k];
        __syncthreads();
        float *out = dpos + blockIdx.x * ld_pos + column;
        for (int k = 0; k < n && active && lane == 0; k++) {
            float total = shared[0][piece][k];
            for (int l = 1; l < PATCH_LANES; l++) total += shared[l][piece][k];
            out[k] += total;
        }
    }
}

/* A block for eight columns of a token: of the class token (hidden false) or the mask token. */
template <class T>
__global__ void __launch_bounds__(PATCH_THREADS)
    token_bwd(place p, const T *dy, int64_t ld_dy, float *token, bool hidden, bool wide) {
    __shared__ float shared[PATCH_THREADS][8];
    const int column = (int)blockIdx.x * 8, n = min(8, p.width - column);
    const int64_t end = hidden ? rows_now(p.step, p.rows) : p.step->n_sent;
    float sum[8];
    fill8(sum, 0.0f);
    for (int64_t i = threadIdx.x; i < end; i += PATCH_THREADS) {
        const int64_t row = hidden ? i : p.offsets[i];
        float g[8];
        if (hidden && !is_hidden(p, patch_of(p, row))) continue;
        gradient(p, dy, ld_dy, wide, row, column, n, g);
#pragma unroll
        for (int k = 0; k < 8; k++) sum[k] += g[k];
    }
#pragma unroll
    for (int k = 0; k < 8; k++) shared[threadIdx.x][k] = sum[k];
    __syncthreads();
    for (int half = PATCH_THREADS / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half)
            for (int k = 0; k < 8; k++) shared[threadIdx.x][k] += shared[threadIdx.x + half][k];
        __syncthreads();
    }
    if (threadIdx.x < n) token[column + threadIdx.x] += shared[0][threadIdx.x];
}

/* t: the value with rows of the source. */
place place_of(const fth_cuda_call *c, const fth_tensor *t, bool masks) {
    const fth_cuda_side *side = &c->batch->side[c->op->u.patches.side];
    place p = {};
    p.pos = side->pos, p.sentence = side->sentence, p.offsets = side->offsets;
    p.masked = masks ? c->batch->masked : nullptr;
    p.cls = c->op->u.patches.cls;
    p.width = t->width;
    p.chunks = (uint32_t)ceil_div(t->width, 8);
    p.drop = drop_at(&c->op->u.patches.drop, t);
    p.rows = rows_of(t);
    p.step = c->step;
    return p;
}

float *vector_of(const fth_tensor *t) {
    return t ? (float *)t->data : nullptr;
}

template <class T, class P> fth_err forward(const fth_cuda_call *c) {
    const fth_tensor *x = in_of(c, PATCHES_X), *positions = in_of(c, PATCHES_POS);
    const fth_tensor *mask = in_of(c, PATCHES_MASK), *y = out_of(c, PATCHES_Y);
    const place p = place_of(c, y, mask != nullptr);
    const int blocks = ceil_div(y->rows * p.chunks, PATCH_THREADS);
    if (blocks == 0) return FTH_OK;
    patches_kernel<T, P><<<blocks, PATCH_THREADS, 0, c->stream>>>(
        p, (const T *)x->data, x->ld, (const P *)positions->data, positions->ld,
        vector_of(in_of(c, PATCHES_CLS)), vector_of(mask), (T *)y->data, y->ld,
        is_wide(x) && is_wide(positions) && is_wide(y));
    return fth_cuda_launched();
}

template <class T> fth_err backward(const fth_cuda_call *c) {
    const fth_tensor *dy = in_of(c, PATCHES_BWD_DY), *dx = out_of(c, PATCHES_BWD_DX);
    const fth_tensor *dpos = out_of(c, PATCHES_BWD_DPOS);
    float *dcls = vector_of(out_of(c, PATCHES_BWD_DCLS));
    float *dmask = vector_of(out_of(c, PATCHES_BWD_DMASK));
    const place p = place_of(c, dy, dmask != nullptr);
    const T *g = (const T *)dy->data;
    const int64_t most = dy->rows > dx->rows ? dy->rows : dx->rows;
    if (most == 0) return FTH_OK;
    patches_dx<T><<<ceil_div(most * p.chunks, PATCH_THREADS), PATCH_THREADS, 0, c->stream>>>(
        p, g, dy->ld, (T *)dx->data, dx->ld, rows_of(dx), is_wide(dy) && is_wide(dx));
    FTH_TRY(fth_cuda_launched());
    if (dpos && dy->rows > 0)
        positions_bwd<T>
            <<<(int)(dpos->rows < dy->rows ? dpos->rows : dy->rows), PATCH_THREADS, 0, c->stream>>>(
                p, g, dy->ld, (float *)dpos->data, dpos->ld, is_wide(dy));
    if (dcls)
        token_bwd<T>
            <<<p.chunks, PATCH_THREADS, 0, c->stream>>>(p, g, dy->ld, dcls, false, is_wide(dy));
    if (dmask)
        token_bwd<T>
            <<<p.chunks, PATCH_THREADS, 0, c->stream>>>(p, g, dy->ld, dmask, true, is_wide(dy));
    return fth_cuda_launched();
}

template <class T>
__global__ void __launch_bounds__(PATCH_THREADS)
    numbers_kernel(const float *from, T *x, int64_t ld, int width, row_count rows,
                   const fth_cuda_step *step) {
    const int64_t i = (int64_t)blockIdx.x * PATCH_THREADS + threadIdx.x, row = i / width;
    if (row >= rows.capacity) return;
    x[row * ld + i % width] = from_float<T>(row < rows_now(step, rows) ? from[i] : 0.0f);
}

template <class T> fth_err numbers(const fth_cuda_call *c) {
    const fth_tensor *x = out_of(c, NUMBERS_X);
    const int blocks = ceil_div(x->rows * x->width, PATCH_THREADS);
    if (blocks == 0) return FTH_OK;
    numbers_kernel<T><<<blocks, PATCH_THREADS, 0, c->stream>>>(
        c->batch->numbers, (T *)x->data, x->ld, x->width, rows_of(x), c->step);
    return fth_cuda_launched();
}
} // namespace

fth_err fth_cuda_numbers(const fth_cuda_call *c) {
    return is_bf16(out_of(c, NUMBERS_X)) ? numbers<bf16>(c) : numbers<float>(c);
}

fth_err fth_cuda_patches(const fth_cuda_call *c) {
    const bool real = is_bf16(out_of(c, PATCHES_Y)), positions = is_bf16(in_of(c, PATCHES_POS));
    if (!real) return forward<float, float>(c);
    return positions ? forward<bf16, bf16>(c) : forward<bf16, float>(c);
}

fth_err fth_cuda_patches_bwd(const fth_cuda_call *c) {
    return is_bf16(in_of(c, PATCHES_BWD_DY)) ? backward<bf16>(c) : backward<float>(c);
}
