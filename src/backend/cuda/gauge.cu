/* gauge.cu: the operations that look at values. gauge and gauge_positions read each value once:
 * bandwidth bound; gauge_entropy makes the scores of at most FTH_GAUGE_QUERIES query rows again.
 *
 * Blocks leave their parts in scratch and the last one to come adds them up in order: one launch,
 * and the same bits every time. Neighbours of kind gauge are launched together. */
#include "backend/cuda/attention/attention.cuh"
#include "backend/cuda/join/join.cuh"

namespace {
enum {
    GAUGE_BLOCKS = 256, /* of an operation, at most */
    GAUGE_THREADS = 256,
    GAUGE_WARPS = GAUGE_THREADS / 32,
    GAUGE_JOBS = 4 /* operations of a launch */
};
static_assert(GAUGE_BLOCKS == GAUGE_THREADS, "a thread of the last block for each block");

/* Blocks for so many rows, a warp for each in turn. */
int blocks_for(int64_t rows) {
    const int blocks = ceil_div(rows, GAUGE_WARPS);
    return blocks < 1 ? 1 : blocks < GAUGE_BLOCKS ? blocks : (int)GAUGE_BLOCKS;
}

/* Where parts and sums go. */
struct board {
    double *parts; /* [GAUGE_BLOCKS, 2] */
    unsigned *counter;
    float *out; /* [2] */
    bool root[2];
};

/* job: number of the operation in its launch. */
board board_of(const fth_cuda_call *c, int job, bool root0, bool root1) {
    return {(double *)c->scratch + job * 2 * GAUGE_BLOCKS,
            c->counters + job,
            (float *)out_of(c, GAUGE_SUMS)->data,
            {root0, root1}};
}

/* Adds up pairs of all threads of a block; the first thread has the sums. shared [GAUGE_WARPS]. */
__device__ double2 pair_sum(double2 x, double2 *shared) {
    x.x = warp_sum(x.x), x.y = warp_sum(x.y);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    double2 sum = make_double2(0, 0);
    for (int k = 0; k < GAUGE_WARPS && threadIdx.x == 0; k++)
        sum.x += shared[k].x, sum.y += shared[k].y;
    return sum;
}

/* Sums of the blocks' own sums; a and b count in the first lane of each warp. */
__device__ void finish(const board &to, double a, double b) {
    __shared__ double2 shared[GAUGE_WARPS], others[GAUGE_WARPS];
    __shared__ bool last;
    double2 *parts = reinterpret_cast<double2 *>(to.parts);
    const bool first = threadIdx.x % 32 == 0;
    const double2 mine = pair_sum(make_double2(first ? a : 0.0, first ? b : 0.0), shared);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = mine;
        __threadfence();
        last = atomicInc(to.counter, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    const double2 none = make_double2(0, 0);
    const double2 total =
        pair_sum(threadIdx.x < gridDim.x ? __ldcg(&parts[threadIdx.x]) : none, others);
    if (threadIdx.x > 0) return;
    to.out[0] = (float)(to.root[0] ? sqrt(total.x) : total.x);
    to.out[1] = (float)(to.root[1] ? sqrt(total.y) : total.y);
}

template <class T> struct gauge_args {
    const T *x, *f;
    int64_t ld_x, ld_f;
    int width;
    bool wide;
    fth_gauge_what what;
    join_coef r, a;
    row_count rows;
    const fth_cuda_step *step;
};

/* Three sums over a row, in every lane of the warp: x x, f f, x f; coefficients included. */
template <class T>
__device__ void row_sums(const gauge_args<T> &w, int64_t row, float sums[3], int *nonzero) {
    float x[8], f[8];
    const bool ratio = w.what == FTH_GAUGE_RATIO;
    sums[0] = sums[1] = sums[2] = 0.0f;
    *nonzero = 0;
    fill8(f, 0.0f);
    for (int c = threadIdx.x % 32 * 8; c < w.width; c += 256) {
        const int n = min(8, w.width - c);
        load8(w.x + row * w.ld_x + c, w.wide, n, x);
        if (w.f) load8(w.f + row * w.ld_f + c, w.wide, n, f);
#pragma unroll
        for (int i = 0; i < 8; i++) *nonzero += x[i] != 0.0f;
        if (ratio) {
            scale8(w.r, coef_scalar(w.step, w.r), c, w.wide, n, x);
            scale8(w.a, coef_scalar(w.step, w.a), c, w.wide, n, f);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) {
            sums[0] += x[i] * x[i];
            sums[1] += f[i] * f[i];
            sums[2] += x[i] * f[i];
        }
    }
    for (int k = 0; k < 3; k++) sums[k] = warp_sum(sums[k]);
    *nonzero = warp_sum(*nonzero);
}

/* The square of a row whose sum in floats vanished or overflowed: gradients that fade on their way
 * down a deep stack go below 1e-19. In every lane of the warp. */
template <class T> __device__ double exact_square(const gauge_args<T> &w, int64_t row) {
    double sum = 0;
    for (int c = threadIdx.x % 32; c < w.width; c += 32) {
        const double x = to_float(w.x[row * w.ld_x + c]);
        sum += x * x;
    }
    return warp_sum(sum);
}

template <class T> struct watch_jobs {
    gauge_args<T> job[GAUGE_JOBS];
    board to[GAUGE_JOBS];
};

template <class T>
__global__ void __launch_bounds__(GAUGE_THREADS)
    watch_rows(const __grid_constant__ watch_jobs<T> jobs) {
    const gauge_args<T> &w = jobs.job[blockIdx.y];
    const int64_t rows = rows_now(w.step, w.rows);
    double a = 0, b = 0;
    for (int64_t row = blockIdx.x * GAUGE_WARPS + threadIdx.x / 32; row < rows;
         row += (int64_t)gridDim.x * GAUGE_WARPS) {
        float s[3];
        int nonzero;
        row_sums(w, row, s, &nonzero);
        switch (w.what) {
        case FTH_GAUGE_NORM:
            if (s[0] > 1e-25f && s[0] < INFINITY) {
                a += s[0], b += sqrtf(s[0]);
            } else {
                const double square = exact_square(w, row);
                a += square, b += sqrt(square);
            }
            break;
        case FTH_GAUGE_NONZERO: a += nonzero, b += w.width; break;
        case FTH_GAUGE_COSINE: a += s[2] / (sqrtf(s[0]) * sqrtf(s[1]) + 1e-15f), b += 1; break;
        case FTH_GAUGE_RATIO: a += s[1], b += s[0]; break;
        }
    }
    finish(jobs.to[blockIdx.y], a, b);
}

template <class T> gauge_args<T> job_of(const fth_cuda_call *c) {
    const fth_tensor *x = in_of(c, GAUGE_X), *f = in_of(c, GAUGE_F);
    gauge_args<T> w = {};
    w.x = (const T *)x->data;
    w.f = f ? (const T *)f->data : nullptr;
    w.ld_x = x->ld;
    w.ld_f = f ? f->ld : 0;
    w.width = x->width;
    w.wide = is_wide(x) && is_wide(f) && is_wide(in_of(c, GAUGE_R)) && is_wide(in_of(c, GAUGE_A));
    w.what = c->op->u.gauge.what;
    w.r = coef_of(&c->op->u.gauge.r, in_of(c, GAUGE_R));
    w.a = coef_of(&c->op->u.gauge.a, in_of(c, GAUGE_A));
    w.rows = rows_of(x);
    w.step = c->step;
    return w;
}

template <class T> fth_err watch_as(const fth_cuda_call *c) {
    watch_jobs<T> jobs = {};
    int64_t rows = 0;
    for (int k = 0; k < c->n_ops; k++) {
        fth_cuda_call one = *c;
        one.op += k;
        const fth_gauge_what what = one.op->u.gauge.what;
        const bool ratio = what == FTH_GAUGE_RATIO;
        jobs.job[k] = job_of<T>(&one);
        jobs.to[k] = board_of(&one, k, ratio || what == FTH_GAUGE_NORM, ratio);
        if (jobs.job[k].rows.capacity > rows) rows = jobs.job[k].rows.capacity;
    }
    watch_rows<T><<<dim3(blocks_for(rows), c->n_ops), GAUGE_THREADS, 0, c->stream>>>(jobs);
    return fth_cuda_launched();
}

/* ---- positions ---- */

template <class T> struct positions_args {
    const T *x;
    int64_t ld;
    int width;
    const int32_t *offsets;
    const fth_cuda_step *step;
};

/* The factor that gives a row length 1, and what its length then is (0 for a row of zeros). */
template <class T>
__device__ float unit(const positions_args<T> &p, int64_t row, float *length_squared) {
    float square = 0.0f;
    for (int c = threadIdx.x % 32; c < p.width; c += 32) {
        const float x = to_float(p.x[row * p.ld + c]);
        square += x * x;
    }
    square = warp_sum(square);
    const float scale = rsqrtf(square + 1e-30f);
    *length_squared = square * scale * scale;
    return scale;
}

/* A block for a sentence in turn. Scales of its rows come first, 256 at a time; then every thread
 * has columns of its own. total [width], scale [GAUGE_THREADS] in shared memory. */
template <class T>
__global__ void __launch_bounds__(GAUGE_THREADS) watch_sentences(positions_args<T> p, board to) {
    extern __shared__ float memory[];
    __shared__ double shared[GAUGE_WARPS];
    float *scale = memory, *total = memory + GAUGE_THREADS;
    const int warp = threadIdx.x / 32;
    double cosines = 0, sentences = 0;
    for (int s = blockIdx.x; s < p.step->n_sent; s += gridDim.x) {
        const int first = p.offsets[s], n = p.offsets[s + 1] - first;
        if (n < 2) continue;
        double own = 0, square = 0;
        for (int c = threadIdx.x; c < p.width; c += GAUGE_THREADS) total[c] = 0.0f;
        for (int from = 0; from < n; from += GAUGE_THREADS) {
            const int count = min((int)GAUGE_THREADS, n - from);
            __syncthreads();
            for (int r = warp; r < count; r += GAUGE_WARPS) {
                float length;
                const float f = unit(p, first + from + r, &length);
                if (threadIdx.x % 32 == 0) scale[r] = f, own += length;
            }
            __syncthreads();
            for (int c = threadIdx.x; c < p.width; c += GAUGE_THREADS)
                for (int r = 0; r < count; r++)
                    total[c] += scale[r] * to_float(p.x[(int64_t)(first + from + r) * p.ld + c]);
        }
        for (int c = threadIdx.x; c < p.width; c += GAUGE_THREADS)
            square += (double)total[c] * total[c];
        square = group_sum<GAUGE_THREADS>(square, shared);
        own = group_sum<GAUGE_THREADS>(own, shared);
        cosines += (square - own) / ((double)n * (n - 1));
        sentences += 1;
    }
    finish(to, threadIdx.x == 0 ? cosines : 0.0, threadIdx.x == 0 ? sentences : 0.0);
}

template <class T> fth_err positions_as(const fth_cuda_call *c) {
    const fth_tensor *x = in_of(c, GAUGE_POSITIONS_X);
    const positions_args<T> p = {(const T *)x->data, x->ld, x->width,
                                 c->batch->side[c->op->u.gauge.side].offsets, c->step};
    const size_t shared = sizeof(float) * (size_t)(GAUGE_THREADS + x->width);
    watch_sentences<T>
        <<<GAUGE_BLOCKS, GAUGE_THREADS, shared, c->stream>>>(p, board_of(c, 0, false, false));
    return fth_cuda_launched();
}

/* ---- entropy ---- */

template <class T> struct entropy_args {
    attention_shape s;
    const T *q, *k;
    int64_t ld_q, ld_k;
    const float *prev, *lse;
    int64_t ld_lse;
    bool wide; /* every head of a row begins at a multiple of 16 bytes and has eights of columns */
};

/* One head of one query row, a lane for every key in turn; the sum in every lane. */
template <class T> __device__ double entropy(const entropy_args<T> &e, int row, int head) {
    const attention_shape &s = e.s;
    const int sentence = s.q_sentence[row], key = s.k_offsets[sentence];
    const int keys = s.k_offsets[sentence + 1] - key, within = row - s.q_offsets[sentence];
    const int seen = s.causal ? within + 1 : keys;
    const int64_t pair = s.pairs[sentence] + (int64_t)within * keys;
    const T *q = e.q + (int64_t)row * e.ld_q + head * s.head;
    const float lse = e.lse[(int64_t)row * e.ld_lse + head];
    double sum = 0;
    for (int j = threadIdx.x % 32; j < seen; j += 32) {
        const T *k = e.k + (int64_t)(key + j) * e.ld_k + head * s.head;
        float score = 0.0f;
#pragma unroll 8
        for (int c = 0; c < s.head; c += 8) {
            float a[8], b[8];
            load8(q + c, e.wide, s.head - c, a);
            load8(k + c, e.wide, s.head - c, b);
#pragma unroll
            for (int i = 0; i < 8; i++) score += a[i] * b[i];
        }
        score *= s.carried;
        if (e.prev) score += e.prev[(pair + j) * s.heads + head];
        const float apart = lse - score * s.inverse;
        const float below = apart < 0 ? 0 : apart; /* rounding: no probability is above 1 */
        sum += (double)(expf(-below) * below);
    }
    return warp_sum(sum);
}

template <class T>
__global__ void __launch_bounds__(GAUGE_THREADS) watch_queries(entropy_args<T> e, board to) {
    const int64_t rows = rows_now(e.s.step, e.s.q_rows);
    const int64_t step = (rows + FTH_GAUGE_QUERIES - 1) / FTH_GAUGE_QUERIES;
    const int64_t jobs = step ? (rows + step - 1) / step * e.s.heads : 0;
    double sum = 0, count = 0;
    for (int64_t i = blockIdx.x * GAUGE_WARPS + threadIdx.x / 32; i < jobs;
         i += (int64_t)gridDim.x * GAUGE_WARPS) {
        sum += entropy(e, (int)(i / e.s.heads * step), (int)(i % e.s.heads));
        count += 1;
    }
    finish(to, sum, count);
}

template <class T> fth_err entropy_as(const fth_cuda_call *c) {
    const fth_tensor *q = in_of(c, GAUGE_ENTROPY_Q), *k = in_of(c, GAUGE_ENTROPY_K);
    const fth_tensor *prev = in_of(c, GAUGE_ENTROPY_PREV), *lse = in_of(c, GAUGE_ENTROPY_LSE);
    const attention_shape shape = fth_cuda_attention_shape(c, q, k);
    const entropy_args<T> e = {shape,
                               (const T *)q->data,
                               (const T *)k->data,
                               q->ld,
                               k->ld,
                               prev ? (const float *)prev->data : nullptr,
                               (const float *)lse->data,
                               lse->ld,
                               is_wide(q) && is_wide(k) && shape.head % 8 == 0};
    const int blocks = blocks_for((int64_t)FTH_GAUGE_QUERIES * shape.heads);
    watch_queries<T><<<blocks, GAUGE_THREADS, 0, c->stream>>>(e, board_of(c, 0, false, false));
    return fth_cuda_launched();
}
} // namespace

fth_err fth_cuda_gauge(const fth_cuda_call *c) {
    return is_bf16(in_of(c, GAUGE_X)) ? watch_as<bf16>(c) : watch_as<float>(c);
}

fth_err fth_cuda_gauge_positions(const fth_cuda_call *c) {
    return is_bf16(in_of(c, GAUGE_POSITIONS_X)) ? positions_as<bf16>(c) : positions_as<float>(c);
}

fth_err fth_cuda_gauge_entropy(const fth_cuda_call *c) {
    return is_bf16(in_of(c, GAUGE_ENTROPY_Q)) ? entropy_as<bf16>(c) : entropy_as<float>(c);
}

int32_t fth_cuda_gauges_at(const fth_graph *g, int32_t i) {
    int32_t n = 1;
    while (n < GAUGE_JOBS && i + n < g->n_ops && g->op[i + n].kind == FTH_KIND_gauge) n++;
    return n;
}

/* Parts of all three. */
int64_t fth_cuda_gauge_scratch(const fth_device *, const fth_graph *, const fth_op *,
                               const int64_t[FTH_N_EXTENTS]) {
    return (int64_t)sizeof(double) * 2 * GAUGE_BLOCKS * GAUGE_JOBS;
}
