/* xent.c: label-smoothed cross-entropy of x W^T + b (doc/mathematics.md#loss) with its gradients.
 * Rows go through in chunks whose logits fit into scratch: logits = x W^T + b, per row softmax and
 * loss and the gradient in place, then dx = g W, dW += g^T x and db += its sums from the same
 * chunk. 6 R V d operations, bound by the multiply-add units; the logits of the whole batch never
 * exist. */
#include "backend/cpu/product/gemm.h"

#include "backend/cpu/kernel/math.h"
#include "backend/cpu/product/weights.h"

enum {
    LOGIT_BYTES = 4 << 20, /* of a chunk, about: they stay in the caches; */
    FEWEST_ROWS = 256      /* but for fewer rows the weights are not worth reading once more */
};

/* How the scratch is divided. Logits turn into their gradient where they are; of numbers of bf16 a
 * row takes the first half of its place. */
typedef struct layout {
    int64_t chunk;               /* rows */
    int64_t ld;                  /* floats from row to row of logits */
    int64_t logits, losses, own; /* places in bytes */
    int64_t bytes;               /* of everything */
} layout;

static layout layout_of(const fth_device *dev, int64_t n_rows, int64_t vocab) {
    enum { LINE = 16 }; /* more, so that rows do not drive each other out of the caches */
    layout l = {.ld = whole_lines(vocab) + LINE};
    const int64_t fit = LOGIT_BYTES / ((int64_t)sizeof(float) * l.ld);
    l.chunk = fit < FEWEST_ROWS ? FEWEST_ROWS : fit;
    if (l.chunk > n_rows) l.chunk = n_rows;
    l.losses = l.chunk * l.ld * (int64_t)sizeof(float);
    l.own = l.losses + dev->threads * 64;
    l.bytes = l.own + dev->threads * FTH_NAME(gemm_own_bytes)(dev);
    return l;
}

FTH_SCRATCH(xent) {
    const fth_value *x = &g->value[op->in[XENT_X]], *w = &g->value[op->in[XENT_W]];
    const int64_t n = x->extent == FTH_ROWS_FIXED ? x->rows : capacity[x->extent];
    const int64_t bytes = layout_of(dev, n, w->rows).bytes;
    return ((const fth_cpu *)dev)->pairs ? bytes : bytes + weights_bytes(dev, g, op->in[XENT_W]);
}

/* Two sums of a thread, in a cache line of its own. */
typedef struct losses {
    double loss, nll, unused[6];
} losses;

/* What the targets are (doc/mathematics.md#loss). */
typedef struct smoothing {
    double target, other; /* q of the target, q of every other */
    float scale;          /* of the gradient */
    int64_t vocab;
} smoothing;

/* A row's logits z become their exponentials less the highest's; returns what makes them
 * probabilities. */
static float row_loss(const smoothing *q, float *restrict_ z, int32_t target, losses *sum,
                      float *nll) {
    const int64_t n = q->vocab, whole = n / VW * VW;
    const float of_target = z[target];
    vf most = v_set(-INFINITY), other = most;
    int64_t v = 0;
    for (; v + 2 * VW <= whole; v += 2 * VW) {
        most = v_max(most, v_load(z + v));
        other = v_max(other, v_load(z + v + VW));
    }
    float highest = v_largest(v_max(most, other));
    for (; v < n; v++) highest = z[v] > highest ? z[v] : highest;
    float exps = 0;
    double total = 0;
    for (int64_t first = 0; first < n; first += 4096) { /* floats hold short sums only */
        const int64_t end = first + 4096 < n ? first + 4096 : n;
        vf parts = v_zero(), part_exps = v_zero();
        for (v = first; v + VW <= end; v += VW) {
            const vf x = v_load(z + v), e = v_exp(v_add(x, v_set(-highest)));
            parts = v_add(parts, x);
            part_exps = v_add(part_exps, e);
            v_store(z + v, e);
        }
        float part = v_sum(parts), part_exp = v_sum(part_exps);
        for (; v < end; v++) {
            part += z[v];
            part_exp += z[v] = fast_exp(z[v] - highest);
        }
        total += (double)part;
        exps += part_exp;
    }
    const double log_sum = (double)highest + log((double)exps), own = log_sum - (double)of_target;
    sum->loss += (q->target - q->other) * own + q->other * ((double)n * log_sum - total);
    sum->nll += own;
    *nll = (float)own;
    return 1 / exps;
}

/* A float of a place that is going to hold numbers of another type. */
static float float_at(const float *p) {
    float x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* The gradient of a row's logits, softmax - q, in the place of what row_loss has left of them: none
 * is written before all up to it have been read. */
static void row_gradient(const smoothing *q, float *e, int32_t target, float norm) {
    real *g = (real *)(void *)e;
    const vf scale = v_set(q->scale), other = v_set(-(float)q->other);
    const float own = (float_at(e + target) * norm - (float)q->target) * q->scale;
    int64_t v = 0;
    for (; v + VW <= q->vocab; v += VW)
        v_store_real(g + v, v_mul(v_fma(v_load(e + v), v_set(norm), other), scale));
    for (; v < q->vocab; v++) g[v] = to_real((float_at(e + v) * norm - (float)q->other) * q->scale);
    g[target] = to_real(own);
}

/* Loss and gradient of a chunk's rows from its logits. */
static void chunk_rows(const fth_exec *ex, const fth_op *op, const fth_team *team, const layout *l,
                       int64_t first, int64_t n) {
    const int32_t *targets = fth_targets_of(&ex->batch, fth_arg(ex, op->in[XENT_X])->extent);
    const full_rows nll = full_of(ex, op->out[XENT_NLL]);
    const full_rows nll_before = full_of(ex, op->in[XENT_NLL_BEFORE]);
    const bool train = rows_of(ex, op->out[XENT_DX]).data || full_of(ex, op->out[XENT_DW]).data;
    const int64_t vocab = fth_arg(ex, op->in[XENT_W])->rows;
    const double eps = op->u.xent.smoothing;
    const smoothing q = {.target = 1 - eps,
                         .other = vocab > 1 ? eps / (double)(vocab - 1) : 0,
                         .scale = (float)ex->step.loss_scale,
                         .vocab = vocab};
    char *scratch = ex->scratch;
    losses *sum = (losses *)(void *)(scratch + l->losses) + team->thread;
    const fth_cpu_share mine = fth_team_share(team, n, 1);
    for (int64_t i = mine.begin; i < mine.end; i++) {
        float *z = (float *)(void *)(scratch + l->logits) + i * l->ld;
        const int32_t target = fth_target_cut(&op->u.xent.cut, targets ? targets[first + i] : -1);
        float row_nll = 0;
        if (target >= 0) {
            const float norm = row_loss(&q, z, target, sum, &row_nll);
            if (train) row_gradient(&q, z, target, norm);
        } else if (train) {
            memset(z, 0, sizeof(real) * (size_t)vocab);
        }
        if (nll_before.data) row_nll += nll_before.data[(first + i) * nll_before.ld];
        if (nll.data) nll.data[(first + i) * nll.ld] = row_nll;
    }
}

/* db += the sums of the chunk's rows, columns shared. */
static void bias_sums(rows gradient, int64_t n, int64_t vocab, const fth_team *team,
                      float *restrict_ db) {
    const fth_cpu_share mine = fth_team_share(team, vocab, 16);
    for (int64_t row = 0; row < n; row++) {
        const real *g = gradient.data + row * gradient.ld;
#pragma omp simd
        for (int64_t v = mine.begin; v < mine.end; v++) db[v] += from_real(g[v]);
    }
}

/* The three products and the rows between them, for rows [first, first + n). */
static void chunk(const fth_exec *ex, const fth_op *op, const fth_team *team, const layout *l,
                  const matrix *weights, int64_t first, int64_t n) {
    const fth_tensor *w = fth_arg(ex, op->in[XENT_W]);
    char *scratch = ex->scratch;
    void *own = scratch + l->own + team->thread * FTH_NAME(gemm_own_bytes)(ex->device);
    const rows x = rows_of(ex, op->in[XENT_X]), dx = rows_of(ex, op->out[XENT_DX]);
    const rows x_here = {x.data + first * x.ld, x.ld};
    const int64_t in_a_float = sizeof(float) / sizeof(real);
    const rows gradient = {(real *)(void *)(scratch + l->logits), in_a_float * l->ld};
    const gemm logits = {.m = n,
                         .n = w->rows,
                         .k = w->width,
                         .a = x_here,
                         .b = weights->b,
                         .b_full = weights->full,
                         .b_by_column = true,
                         .bias = vector_of(ex, op->in[XENT_B]),
                         .c_full = {(float *)(void *)(scratch + l->logits), l->ld},
                         .pairs = unit_for(ex, n, w->rows, w->width)};
    FTH_NAME(gemm)(&logits, team, own);
    fth_team_wait(team);
    chunk_rows(ex, op, team, l, first, n);
    fth_team_wait(team);
    if (dx.data) {
        const gemm g = {.m = n,
                        .n = w->width,
                        .k = w->rows,
                        .a = gradient,
                        .b = weights->b,
                        .b_full = weights->full,
                        .c = {dx.data + first * dx.ld, dx.ld},
                        .pairs = unit_for(ex, n, w->width, w->rows)};
        FTH_NAME(gemm)(&g, team, own);
        fth_team_wait(team);
    }
    float *db = vector_of(ex, op->out[XENT_DB]);
    if (db) bias_sums(gradient, n, w->rows, team, db);
    const full_rows dw = full_of(ex, op->out[XENT_DW]);
    if (db && !dw.data) fth_team_wait(team); /* the next chunk takes the place of the gradient */
    if (dw.data) {
        const gemm g = {.m = w->rows,
                        .n = w->width,
                        .k = n,
                        .a = gradient,
                        .b = x_here,
                        .c_full = dw,
                        .accumulate = true,
                        .pairs = unit_for_sums(ex, w->rows, w->width, n)};
        FTH_NAME(gemm)(&g, team, own);
        fth_team_wait(team);
    }
}

FTH_PART(xent) {
    const fth_tensor *x = fth_arg(ex, op->in[XENT_X]), *w = fth_arg(ex, op->in[XENT_W]);
    const int64_t n = fth_rows_now(ex, x);
    const layout l = layout_of(ex->device, x->rows, w->rows);
    losses *sums = (losses *)(void *)((char *)ex->scratch + l.losses);
    sums[team->thread] = (losses){0};
    const matrix weights =
        matrix_in(ex, op->in[XENT_W], pairs_of(ex), (char *)ex->scratch + l.bytes, team);
    for (int64_t first = 0; first < n; first += l.chunk)
        chunk(ex, op, team, &l, &weights, first, n - first < l.chunk ? n - first : l.chunk);
    fth_team_wait(team);
    float *loss = vector_of(ex, op->out[XENT_LOSS]);
    if (team->thread != 0 || !loss) return;
    const float *before = vector_of(ex, op->in[XENT_BEFORE]);
    losses whole = {.loss = before ? (double)before[0] : 0, .nll = before ? (double)before[1] : 0};
    for (int t = 0; t < team->n_threads; t++) {
        whole.loss += sums[t].loss;
        whole.nll += sums[t].nll;
    }
    loss[0] = (float)whole.loss;
    loss[1] = (float)whole.nll;
}
