/* embed.cu: y = D(scale * E[token] + P[position]), word dropout taking the token's part away whole.
 * Reads n of the table and n of the positions, writes n. Backward: dE[token] += scale * D(dy), by
 * rows sorted by token, so every row of dE is added to by one block, in row order; dP[position]
 * likewise, sentence by sentence. Reads n, reads and writes the rows of dE that occur. */
#include "backend/cuda/random.cuh"

namespace {
enum { EMBED_THREADS = 256, EMBED_LANES = 4 };

struct place { /* what forward and backward share */
    const int32_t *ids, *pos, *order, *offsets;
    float scale;
    drop_place drop;
    uint32_t word_threshold, word_site;
    bool keep_first;
    int side, width;
    uint32_t chunks;
    int64_t capacity;
    row_count rows;
    const fth_cuda_step *step;
};

/* The factor of a row's token: the scale, or 0 where word dropout strikes. */
__device__ float word_factor(const place &p, int64_t row) {
    if (p.word_threshold == 0 || (p.keep_first && p.pos[row] == 0)) return p.scale;
    const uint64_t e = (uint64_t)(p.step->row_base[p.side] + row);
    return drop_keeps(p.step, p.word_threshold, p.word_site, e) ? p.scale : 0.0f;
}

template <class T, class P>
__global__ void __launch_bounds__(EMBED_THREADS)
    embed_kernel(place p, const T *table, int64_t ld_table, const P *positions,
                 int64_t ld_positions, T *y, int64_t ld_y, bool wide) {
    const uint32_t i = blockIdx.x * EMBED_THREADS + threadIdx.x, row = i / p.chunks;
    if (row >= p.capacity) return;
    const int column = (int)(i - row * p.chunks) * 8, n = min(8, p.width - column);
    float out[8];
    fill8(out, 0.0f);
    if (row < rows_now(p.step, p.rows)) {
        float token[8], position[8], kept[8];
        load8(table + p.ids[row] * ld_table + column, wide, n, token);
        load8(positions + p.pos[row] * ld_positions + column, wide, n, position);
        drop_factors(p.step, p.drop, row, column, false, kept);
        const float factor = word_factor(p, row);
#pragma unroll
        for (int k = 0; k < 8; k++) out[k] = kept[k] * (factor * token[k] + position[k]);
    }
    store8(y + row * ld_y + column, wide, n, out);
}

/* Adds D(dy) * factor of a row to sum. */
template <class T>
__device__ void add_row(const place &p, const T *dy, int64_t ld, bool wide, int64_t row, int column,
                        int n, float factor, float sum[8]) {
    float g[8], kept[8];
    load8(dy + row * ld + column, wide, n, g);
    drop_factors(p.step, p.drop, row, column, false, kept);
#pragma unroll
    for (int k = 0; k < 8; k++) sum[k] += factor * kept[k] * g[k];
}

/* EMBED_LANES sums of one piece of eight columns: added in order and added to out by lane 0. */
__device__ void finish_row(float sum[8], bool active, float *out, bool wide, int n) {
    __shared__ float shared[EMBED_LANES][EMBED_THREADS / EMBED_LANES][8];
    const int lane = threadIdx.x % EMBED_LANES, piece = threadIdx.x / EMBED_LANES;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; k++) shared[lane][piece][k] = sum[k];
    __syncthreads();
    if (lane != 0 || !active) return;
    float old[8];
    load8(out, wide, n, old);
#pragma unroll
    for (int k = 0; k < 8; k++) {
        float total = shared[0][piece][k];
        for (int l = 1; l < EMBED_LANES; l++) total += shared[l][piece][k];
        old[k] += total;
    }
    store8(out, wide, n, old);
}

/* A block for every sorted row that is the first of its token. */
template <class T>
__global__ void __launch_bounds__(EMBED_THREADS)
    embed_table_bwd(place p, const T *dy, int64_t ld_dy, float *dtable, int64_t ld_table,
                    bool wide) {
    const int64_t rows = rows_now(p.step, p.rows), first = blockIdx.x;
    if (first >= rows) return;
    const int32_t id = p.ids[p.order[first]];
    if (first > 0 && p.ids[p.order[first - 1]] == id) return;
    const int lane = threadIdx.x % EMBED_LANES, piece = threadIdx.x / EMBED_LANES;
    for (uint32_t chunk = 0; chunk < p.chunks; chunk += EMBED_THREADS / EMBED_LANES) {
        const bool active = chunk + piece < p.chunks;
        const int column = (int)(chunk + piece) * 8, n = min(8, p.width - column);
        float sum[8];
        fill8(sum, 0.0f);
        for (int64_t i = first + lane; active && i < rows; i += EMBED_LANES) {
            const int32_t row = p.order[i];
            if (p.ids[row] != id) break;
            add_row(p, dy, ld_dy, wide, row, column, n, word_factor(p, row), sum);
        }
        finish_row(sum, active, dtable + id * ld_table + column, wide, n);
    }
}

/* A block for every position. */
template <class T>
__global__ void __launch_bounds__(EMBED_THREADS)
    embed_positions_bwd(place p, const T *dy, int64_t ld_dy, float *dpos, int64_t ld_pos,
                        bool wide) {
    const int position = blockIdx.x;
    const int lane = threadIdx.x % EMBED_LANES, piece = threadIdx.x / EMBED_LANES;
    for (uint32_t chunk = 0; chunk < p.chunks; chunk += EMBED_THREADS / EMBED_LANES) {
        const bool active = chunk + piece < p.chunks;
        const int column = (int)(chunk + piece) * 8, n = min(8, p.width - column);
        float sum[8];
        fill8(sum, 0.0f);
        for (int s = lane; active && s < p.step->n_sent; s += EMBED_LANES) {
            const int64_t row = p.offsets[s] + position;
            if (row < p.offsets[s + 1]) add_row(p, dy, ld_dy, wide, row, column, n, 1.0f, sum);
        }
        finish_row(sum, active, dpos + position * ld_pos + column, wide, n);
    }
}

place place_of(const fth_cuda_call *c, const fth_tensor *t) {
    const fth_cuda_side *side = &c->batch->side[c->op->u.embed.side];
    const fth_drop *word = &c->op->u.embed.word;
    place p = {};
    p.ids = side->ids, p.pos = side->pos, p.order = side->order, p.offsets = side->offsets;
    p.scale = c->op->u.embed.scale;
    p.drop = drop_at(&c->op->u.embed.drop, t);
    p.word_threshold = word->p > 0 ? fth_drop_threshold(word->p) : 0;
    p.word_site = word->site;
    p.keep_first = c->op->u.embed.keep_first;
    p.side = c->op->u.embed.side;
    p.width = t->width;
    p.chunks = (uint32_t)ceil_div(t->width, 8);
    p.capacity = t->rows;
    p.rows = rows_of(t);
    p.step = c->step;
    return p;
}

template <class T, class P> fth_err forward(const fth_cuda_call *c) {
    const fth_tensor *table = in_of(c, EMBED_TABLE), *positions = in_of(c, EMBED_POS);
    const fth_tensor *y = out_of(c, EMBED_Y);
    const place p = place_of(c, y);
    const bool wide = is_wide(table) && is_wide(positions) && is_wide(y);
    const int blocks = ceil_div(y->rows * p.chunks, EMBED_THREADS);
    if (blocks == 0) return FTH_OK;
    embed_kernel<T, P><<<blocks, EMBED_THREADS, 0, c->stream>>>(
        p, (const T *)table->data, table->ld, (const P *)positions->data, positions->ld,
        (T *)y->data, y->ld, wide);
    return fth_cuda_launched();
}

template <class T> fth_err backward(const fth_cuda_call *c) {
    const fth_tensor *dy = in_of(c, EMBED_BWD_DY), *dtable = out_of(c, EMBED_BWD_DTABLE);
    const fth_tensor *dpos = out_of(c, EMBED_BWD_DPOS);
    const place p = place_of(c, dy);
    if (dy->rows == 0) return FTH_OK;
    embed_table_bwd<T><<<(int)dy->rows, EMBED_THREADS, 0, c->stream>>>(
        p, (const T *)dy->data, dy->ld, (float *)dtable->data, dtable->ld,
        is_wide(dy) && is_wide(dtable));
    FTH_TRY(fth_cuda_launched());
    if (!dpos) return FTH_OK;
    embed_positions_bwd<T>
        <<<(int)(dpos->rows < dy->rows ? dpos->rows : dy->rows), EMBED_THREADS, 0, c->stream>>>(
            p, (const T *)dy->data, dy->ld, (float *)dpos->data, dpos->ld,
            is_wide(dy) && is_wide(dpos));
    return fth_cuda_launched();
}
} // namespace

fth_err fth_cuda_embed(const fth_cuda_call *c) {
    const bool real = is_bf16(out_of(c, EMBED_Y)), positions = is_bf16(in_of(c, EMBED_POS));
    if (!real) return forward<float, float>(c);
    return positions ? forward<bf16, bf16>(c) : forward<bf16, float>(c);
}

fth_err fth_cuda_embed_bwd(const fth_cuda_call *c) {
    return is_bf16(in_of(c, EMBED_BWD_DY)) ? backward<bf16>(c) : backward<float>(c);
}
