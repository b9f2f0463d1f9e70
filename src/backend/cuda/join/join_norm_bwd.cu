/* join_norm_bwd.cu: dz = LN'(dy) + addend, dx = r dz, df = a D(dz), de = c dz, and the gradients of
 * gain, bias and learned coefficients; norm_bwd and join_bwd are its halves. Reads dy, z (and the
 * addend) and a bit of dropout for every element, writes dx and df: 4n to 6n, bandwidth bound.
 * Column sums are kept in registers while a group of threads walks over its rows, then added block
 * by block (block_sums.cuh). */
#include "backend/cuda/product/linear_join.cuh"

namespace {
/* One row's dz into registers: dz[k] are the eight columns of piece k. */
template <class T, int GROUP, int CHUNKS>
__device__ __forceinline__ void norm_row(const bwd_args<T> &a, int64_t row, int lane, float *shared,
                                         float dz[CHUNKS][8], float dgain[CHUNKS][8],
                                         float dbias[CHUNKS][8]) {
    const float mean = a.stats[row * a.ld_stats], rstd = a.stats[row * a.ld_stats + 1];
    float xhat[CHUNKS][8], sum_u = 0.0f, sum_ux = 0.0f;
#pragma unroll
    for (int k = 0; k < CHUNKS; k++) {
        const int chunk = lane + k * GROUP, column = chunk * 8, n = min(8, a.width - column);
        if (chunk >= a.chunks) continue;
        float dy[8], gain[8];
        load8(a.dy + row * a.ld_dy + column, a.wide, n, dy);
        load8(a.z + row * a.ld_z + column, a.wide, n, xhat[k]);
        load8(a.gain + column, a.wide, n, gain);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            xhat[k][i] = (xhat[k][i] - mean) * rstd;
            dgain[k][i] += dy[i] * xhat[k][i];
            dbias[k][i] += dy[i];
            dz[k][i] = gain[i] * dy[i]; /* u; 0 past the end of the row */
            sum_u += dz[k][i];
            sum_ux += dz[k][i] * xhat[k][i];
        }
    }
    const float mean_u = group_sum<GROUP>(sum_u, shared) / (float)a.width;
    const float mean_ux = group_sum<GROUP>(sum_ux, shared) / (float)a.width;
#pragma unroll
    for (int k = 0; k < CHUNKS; k++) {
        const int chunk = lane + k * GROUP, column = chunk * 8, n = min(8, a.width - column);
        if (chunk >= a.chunks) continue;
        float more[8];
        fill8(more, 0.0f);
        if (a.dz) load8(a.dz + row * a.ld_dz + column, a.wide, n, more);
#pragma unroll
        for (int i = 0; i < 8; i++)
            dz[k][i] = (dz[k][i] - mean_u - xhat[k][i] * mean_ux) * rstd + more[i];
    }
}

/* What goes to x, to the branch and to e; dcoef [3] are the sums for learned coefficients. */
template <class T, bool LEARNED>
__device__ __forceinline__ void spread(const bwd_args<T> &a, int64_t row, int column, int n,
                                       const float dz[8], float (*dcoef)[8]) {
    float kept[8];
    if (a.kept)
        kept_factors(a.drop, a.kept[row * a.chunks + column / 8], kept);
    else
        drop_factors(a.step, a.drop, row, column, a.wide, kept);
#pragma unroll
    for (int t = 0; t < 3; t++) {
        float g[8], k[8];
#pragma unroll
        for (int i = 0; i < 8; i++) g[i] = t == 1 ? kept[i] * dz[i] : dz[i];
        if (LEARNED && a.term[t]) {
            load8(a.term[t] + row * a.ld_term[t] + column, a.wide, n, k);
#pragma unroll
            for (int i = 0; i < 8; i++) dcoef[t][i] += g[i] * k[i];
        }
        if (!a.out[t]) continue;
        scale8(a.coef[t], coef_scalar(a.step, a.coef[t]), column, a.wide, n, g);
        store8(a.out[t] + row * a.ld_out[t] + column, a.wide, n, g);
    }
}

/* A block's sums into its row of parts. */
template <int GROUP, int CHUNKS>
__device__ void write_parts(float *parts, int width, const float sums[CHUNKS][8]) {
    if (!parts) return;
#pragma unroll
    for (int k = 0; k < CHUNKS; k++)
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int column = ((int)threadIdx.x + k * GROUP) * 8 + i;
            if (column < width) parts[(int64_t)blockIdx.x * width + column] = sums[k][i];
        }
}

/* A block for a row. */
template <class T, int GROUP, int CHUNKS, bool LEARNED>
__global__ void __launch_bounds__(GROUP) join_bwd_kernel(bwd_args<T> a) {
    __shared__ __align__(16) float shared[32];
    const int lane = (int)threadIdx.x;
    const int64_t rows = rows_now(a.step, a.rows);
    float dgain[CHUNKS][8], dbias[CHUNKS][8], dcoef[LEARNED ? CHUNKS : 1][3][8];
#pragma unroll
    for (int k = 0; k < CHUNKS; k++) fill8(dgain[k], 0.0f), fill8(dbias[k], 0.0f);
#pragma unroll
    for (int k = 0; LEARNED && k < CHUNKS; k++)
        for (int t = 0; t < 3; t++) fill8(dcoef[k][t], 0.0f);
    for (int64_t row = blockIdx.x; row < a.rows.capacity; row += gridDim.x) {
        if (row >= rows) {
            zero_row(a, row, lane, GROUP);
            continue;
        }
        float dz[CHUNKS][8];
        if (a.dy) norm_row<T, GROUP, CHUNKS>(a, row, lane, shared, dz, dgain, dbias);
#pragma unroll
        for (int k = 0; k < CHUNKS; k++) {
            const int chunk = lane + k * GROUP, column = chunk * 8, n = min(8, a.width - column);
            if (chunk >= a.chunks) continue;
            if (!a.dy) load8(a.dz + row * a.ld_dz + column, a.wide, n, dz[k]);
            spread<T, LEARNED>(a, row, column, n, dz[k], dcoef[LEARNED ? k : 0]);
        }
    }
    write_parts<GROUP, CHUNKS>(a.parts[GAIN], a.width, dgain);
    write_parts<GROUP, CHUNKS>(a.parts[BIAS], a.width, dbias);
    if constexpr (LEARNED) {
#pragma unroll
        for (int t = 0; t < 3; t++) {
            float sums[CHUNKS][8];
#pragma unroll
            for (int k = 0; k < CHUNKS; k++)
#pragma unroll
                for (int i = 0; i < 8; i++) sums[k][i] = dcoef[k][t][i];
            write_parts<GROUP, CHUNKS>(a.parts[COEF_R + t], a.width, sums);
        }
    }
}

/* ---- launching ---- */

int blocks_for(int processors, int64_t rows, int width, bool fast) {
    const int64_t wanted = fast ? ceil_div(rows, BWD_THREADS / 32) : rows;
    /* so many of the fast kernel's are on a multiprocessor at a time */
    const int64_t most = fast && width > 512 ? processors : 2 * processors;
    return (int)(wanted < most ? wanted : most);
}

template <class T, int GROUP, int CHUNKS, bool LEARNED>
fth_err launch_as(const fth_cuda_call *c, const bwd_args<T> &a, int blocks) {
    join_bwd_kernel<T, GROUP, CHUNKS, LEARNED><<<blocks, GROUP, 0, c->stream>>>(a);
    return fth_cuda_launched();
}

template <class T>
fth_err launch(const fth_cuda_call *c, const bwd_args<T> &a, int blocks, bool learned) {
    if constexpr (sizeof(T) == sizeof(bf16))
        if (fth_cuda_is_joined(c)) return fth_cuda_linear_join_bwd(c, a);
    if (fth_join_is_fast(c->op, a.width)) return fth_cuda_join_bwd_fast(c, a, blocks);
    if (!learned && a.width <= 8192) return launch_as<T, 512, 2, false>(c, a, blocks);
    if (a.width <= 2048) return launch_as<T, 256, 1, true>(c, a, blocks);
    if (a.width <= 4096) return launch_as<T, 512, 1, true>(c, a, blocks);
    return fth_fail(FTH_FAILED, "a row of %d columns: must be at most %d on device cuda", a.width,
                    learned ? 4096 : 8192);
}

/* The operands. norm_bwd gives what it has to x; its coefficients are not set. */
template <class T> bwd_args<T> arguments(const fth_cuda_call *c) {
    const fth_tensor *dy = in_of(c, JOIN_BWD_DY), *dz = in_of(c, JOIN_BWD_DZ);
    const fth_tensor *z = in_of(c, JOIN_BWD_Z), *stats = in_of(c, JOIN_BWD_STATS);
    const fth_tensor *gain = in_of(c, JOIN_BWD_GAIN), *kept = in_of(c, JOIN_BWD_KEPT);
    const fth_tensor *shape = dy ? dy : dz;
    const fth_coef *coefs[3] = {&c->op->u.join.r, &c->op->u.join.a, &c->op->u.join.c};
    const bool join = c->op->kind != FTH_KIND_norm_bwd;
    bwd_args<T> a = {};
    if (dy) {
        a.dy = (const T *)dy->data, a.ld_dy = dy->ld;
        a.z = (const T *)z->data, a.ld_z = z->ld;
        a.stats = (const float *)stats->data, a.ld_stats = stats->ld;
        a.gain = (const float *)gain->data;
    }
    if (dz) a.dz = (const T *)dz->data, a.ld_dz = dz->ld;
    a.wide = is_wide(dy) && is_wide(dz) && (!dy || (is_wide(z) && is_wide(gain)));
    for (int k = 0; k < 3; k++) {
        const fth_tensor *out = out_of(c, JOIN_BWD_DX + k), *term = in_of(c, JOIN_BWD_X + k);
        const fth_tensor *param = in_of(c, JOIN_BWD_R + k);
        a.coef[k] = join ? coef_of(coefs[k], param) : join_coef{FTH_COEF_CONST, 0, 1.0f, nullptr};
        if (out) a.out[k] = (T *)out->data, a.ld_out[k] = out->ld;
        a.wide = a.wide && is_wide(out);
        if (!param) continue;
        a.term[k] = (const T *)term->data, a.ld_term[k] = term->ld;
        a.wide = a.wide && is_wide(term) && (param->width == 1 || is_wide(param));
    }
    if (join) a.drop = drop_at(&c->op->u.join.drop, shape);
    if (kept) a.kept = (const uint8_t *)kept->data;
    a.width = shape->width, a.chunks = ceil_div(shape->width, 8);
    a.rows = rows_of(shape);
    a.step = c->step;
    return a;
}

/* The output that the linear operation behind it differentiates through, whose bias this operation
 * sums up on the way; NULL: it has none. */
template <class T> const fth_tensor *branch_of(const fth_cuda_call *c, bwd_args<T> *a) {
    const fth_op *dw = fth_cuda_bias_made_by(c);
    if (!dw) return nullptr;
    while (c->op->out[JOIN_BWD_DX + a->branch] != dw->in[LINEAR_DW_DY]) a->branch++;
    return fth_arg(c->ex, dw->out[LINEAR_DW_DB]);
}

/* Where the sums go: parts, then the gradients. */
template <class T>
finish_args sums_of(const fth_cuda_call *c, bwd_args<T> *a, int blocks, float *parts) {
    finish_args f = {};
    for (int q = 0; q < QUANTITIES; q++) {
        const fth_tensor *grad = q == BRANCH  ? branch_of(c, a)
                                 : q < BRANCH ? out_of(c, JOIN_BWD_DGAIN + q)
                                              : out_of(c, JOIN_BWD_DR + q - COEF_R);
        f.coef[q] = {FTH_COEF_CONST, 0, 1.0f, nullptr};
        if (!grad) continue;
        if (q >= COEF_R) f.coef[q] = a->coef[q - COEF_R];
        f.scalar[q] = q >= COEF_R && f.coef[q].kind == FTH_COEF_SCALAR;
        f.grad[q] = (float *)grad->data;
        a->parts[q] = parts + (int64_t)q * blocks * a->width;
        f.parts[q] = a->parts[q];
    }
    f.blocks = blocks, f.width = a->width, f.step = c->step;
    return f;
}

template <class T> fth_err backward(const fth_cuda_call *c) {
    const bool learned = fth_join_is_learned(c->op);
    bwd_args<T> a = arguments<T>(c);
    const bool fast = fth_join_is_fast(c->op, a.width);
    const int blocks = fth_cuda_is_joined(c)
                           ? ceil_div(a.rows.capacity, FTH_CUDA_JOINED_ROWS)
                           : blocks_for(c->gpu->processors, a.rows.capacity, a.width, fast);
    if (blocks == 0) return FTH_OK;
    const finish_args f = sums_of(c, &a, blocks, fth_cuda_parts_place(c, learned));
    FTH_TRY(launch(c, a, blocks, learned));
    return fth_cuda_add_parts(c, f, learned);
}

fth_err either(const fth_cuda_call *c) {
    const fth_tensor *shape = in_of(c, c->op->in[JOIN_BWD_DY] ? JOIN_BWD_DY : JOIN_BWD_DZ);
    return is_bf16(shape) ? backward<bf16>(c) : backward<float>(c);
}
} // namespace

fth_err fth_cuda_join_bwd(const fth_cuda_call *c) {
    return either(c);
}

fth_err fth_cuda_norm_bwd(const fth_cuda_call *c) {
    return either(c);
}

fth_err fth_cuda_join_norm_bwd(const fth_cuda_call *c) {
    return either(c);
}

int64_t fth_cuda_join_bwd_scratch(const fth_device *dev, const fth_graph *g, const fth_op *op,
                                  const int64_t capacity[FTH_N_EXTENTS]) {
    const fth_value *shape = &g->value[op->in[op->in[JOIN_BWD_DY] ? JOIN_BWD_DY : JOIN_BWD_DZ]];
    const int64_t rows = shape->extent == FTH_ROWS_FIXED ? shape->rows : capacity[shape->extent];
    const int processors = reinterpret_cast<const fth_cuda *>(dev)->processors;
    const bool fast = fth_join_is_fast(op, shape->width);
    const int64_t alone = blocks_for(processors, rows, shape->width, fast);
    const int64_t joined = ceil_div(rows, FTH_CUDA_JOINED_ROWS);
    const int64_t blocks = alone > joined ? alone : joined;
    return (fth_join_is_learned(op) ? QUANTITIES : BRANCH + 1) * blocks * shape->width *
           (int64_t)sizeof(float);
}
