/* attention.h: what both directions of attention share: the (sentence, head) pairs of a batch as
 * tasks, and a head's rows as factors of products: as floats, padded to whole vectors, or, where a
 * unit multiplies vectors of them, as pairs of bf16 numbers. */
#ifndef FTH_BACKEND_CPU_KERNEL_ATTENTION_H
#define FTH_BACKEND_CPU_KERNEL_ATTENTION_H

#include "backend/cpu/kernel/kernel.h"
#include "backend/cpu/kernel/math.h"
#include "backend/cpu/product/small_product.h"

enum { Q_BLOCK = 32 }; /* query rows at a time: their scores are all that is ever stored */

/* One head of one sentence. */
typedef struct task {
    int32_t head;
    int64_t q, k;         /* first row of the sentence on the query's and the key's side */
    int64_t q_len, k_len; /* its lengths */
    int64_t pair;         /* its first pair */
} task;

/* A walk over a thread's tasks: tasks in order of sentences, cut by work. */
typedef struct task_walk {
    const int32_t *q_off, *k_off; /* [n_sent + 1] */
    int32_t n_sent, heads, sentence;
    int64_t begin, end, at; /* shares of the whole work */
    task next;
} task_walk;

static inline int64_t sentence_work(const task_walk *w, int32_t s) {
    const int64_t q = w->q_off[s + 1] - w->q_off[s], k = w->k_off[s + 1] - w->k_off[s];
    return q * k + 8 * (q + k);
}

static inline task_walk walk_tasks(const fth_exec *ex, const fth_op *op, const fth_team *team) {
    task_walk w = {.q_off = ex->batch.side[op->u.attention.q_side].offsets,
                   .k_off = ex->batch.side[op->u.attention.k_side].offsets,
                   .n_sent = ex->batch.n_sent,
                   .heads = op->u.attention.heads};
    int64_t whole = 0;
    for (int32_t s = 0; s < w.n_sent; s++) whole += sentence_work(&w, s) * w.heads;
    w.begin = whole * team->thread / team->n_threads;
    w.end = whole * (team->thread + 1) / team->n_threads;
    return w;
}

/* The next task whose work begins in the thread's share; false: there is none. */
static inline bool next_task(task_walk *w, task *out) {
    for (; w->sentence < w->n_sent; w->sentence++, w->next.head = 0) {
        const int32_t s = w->sentence;
        task *t = &w->next;
        t->q = w->q_off[s];
        t->k = w->k_off[s];
        t->q_len = w->q_off[s + 1] - t->q;
        t->k_len = w->k_off[s + 1] - t->k;
        while (t->head < w->heads) {
            const bool mine = w->at >= w->begin && w->at < w->end;
            *out = *t;
            t->head++;
            w->at += sentence_work(w, s);
            if (mine) return true;
        }
        t->pair += t->q_len * t->k_len;
    }
    return false;
}

/* n rows of `width` numbers as floats [n, whole vectors], filled up with 0. */
inline_ void floats_of(const int32_t width, const real *restrict_ in, int64_t ld_in, int64_t n,
                       float *restrict_ out) {
    const int64_t ld = v_round(width);
    for (int64_t i = 0; i < n; i++, in += ld_in, out += ld) {
        int32_t c = 0;
#pragma GCC unroll 4
        for (; c + VW <= width; c += VW) v_store(out + c, v_load_real(in + c));
        for (; c < width; c++) out[c] = from_real(in[c]);
        for (; c < ld; c++) out[c] = 0;
    }
}

/* A head's columns of n rows. */
typedef struct head_rows {
    const real *data;
    int64_t ld, n;
    int32_t width;
} head_rows;

static inline head_rows rows_of_head(rows from, int64_t first, int64_t n, int32_t head,
                                     int32_t width) {
    return (head_rows){from.data + first * from.ld + head * width, from.ld, n, width};
}

/* As floats in whole vectors: where they lie, or copied to buffer [n, whole vectors] and filled up
 * with 0. */
static inline view head_view(const head_rows *x, float *restrict_ buffer) {
    const int64_t ld = v_round(x->width);
    if (REAL_DTYPE == FTH_F32 && x->width == ld)
        return (view){(const float *)(const void *)x->data, x->ld};
    if (x->width == 2 * VW) /* without a loop over the columns: half of the time */
        floats_of(2 * VW, x->data, x->ld, x->n, buffer);
    else if (x->width == 4 * VW)
        floats_of(4 * VW, x->data, x->ld, x->n, buffer);
    else
        floats_of(x->width, x->data, x->ld, x->n, buffer);
    return (view){buffer, ld};
}

/* ---- factors of products ---- */

/* The unit whose pairs products are made of: rows have to be whole vectors of them, or whole tiles.
 * NULL: floats. */
static inline const fth_cpu_pairs_path *head_unit(const fth_exec *ex, int32_t width,
                                                  const rows *factors, int n) {
    const fth_cpu_pairs_path *unit = pairs_of(ex);
    bool fits = unit && width % (fth_cpu_pairs_on_tiles(unit) ? FTH_TILES_SIDE : 2 * VW) == 0;
    for (int i = 0; i < n; i++) fits = fits && factors[i].ld % 2 == 0;
    return fits ? unit : NULL;
}

/* Steps along k of so many numbers. */
static inline int64_t steps_of(const fth_cpu_pairs_path *unit, int64_t n) {
    return unit ? fth_text_pairs_of(unit, n) : n;
}

/* A head's rows as a factor of sums along them. */
static inline view along_rows(const fth_cpu_pairs_path *unit, const head_rows *x, float *buffer) {
    if (!unit) return head_view(x, buffer);
    return (view){(const float *)(const void *)x->data, x->ld / 2};
}

/* As a factor of sums over them. Pairs: buffer [steps_of, width] gets neighbours, the last row
 * alone with 0, filled up with 0; floats: what along_rows gave serves here too. */
static inline view across_rows(const fth_cpu_pairs_path *unit, const head_rows *x, view floats,
                               float *buffer) {
    if (!unit) return floats;
#ifdef FTH_REAL_IS_bf16
    const real *in = x->data;
    int64_t i = 0;
    for (; 2 * i < x->n; i++, in += 2 * x->ld)
        for (int32_t c = 0; c < x->width; c += VW)
            v_store(buffer + i * x->width + c,
                    v_pairs_of_rows(in + c, 2 * i + 1 < x->n ? in + x->ld + c : NULL));
    const int64_t more = steps_of(unit, x->n) - i;
    memset(buffer + i * x->width, 0, sizeof *buffer * (size_t)(more * x->width));
#endif
    return (view){buffer, x->width};
}

/* Keys or values as the first factor of sums along them: what along_rows gives, on tiles filled up
 * to whole ones. buffer [keys, width] has room for that behind what across_rows may leave there. */
static inline view whole_rows(const fth_cpu_pairs_path *unit, const head_rows *x, float *buffer) {
    enum { TILE = 16 };
    if (!fth_cpu_pairs_on_tiles(unit) || x->n % TILE == 0) return along_rows(unit, x, buffer);
    const size_t row = sizeof(real) * (size_t)x->width;
    char *to = (char *)(buffer + steps_of(unit, x->n) * x->width);
    for (int64_t i = 0; i < x->n; i++, to += row) memcpy(to, x->data + i * x->ld, row);
    memset(to, 0, row * (size_t)(TILE - x->n % TILE));
    return (view){buffer + steps_of(unit, x->n) * x->width, x->width / 2};
}

/* n rows of floats, whole vectors each, times scale or by[row] to rows of `width`. */
inline_ void scaled_rows(const int32_t width, const float *restrict_ in, int64_t n, float scale,
                         const float *by, real *restrict_ out, int64_t ld_out) {
    for (int64_t i = 0; i < n; i++, in += v_round(width), out += ld_out) {
        const float factor = by ? by[i] : scale;
        int32_t c = 0;
#pragma GCC unroll 4
        for (; c + VW <= width; c += VW)
            v_store_real(out + c, v_mul(v_load(in + c), v_set(factor)));
        for (; c < width; c++) out[c] = to_real(factor * in[c]);
    }
}

/* Floats [n, whole vectors] times scale, or times by[row] where there is a `by`, into a head's
 * columns. */
static inline void store_head(rows to, int64_t first, int64_t n, int32_t head, int32_t width,
                              const float *restrict_ from, float scale, const float *by) {
    real *out = to.data + first * to.ld + head * width;
    if (width == 2 * VW)
        scaled_rows(2 * VW, from, n, scale, by, out, to.ld);
    else if (width == 4 * VW)
        scaled_rows(4 * VW, from, n, scale, by, out, to.ld);
    else
        scaled_rows(width, from, n, scale, by, out, to.ld);
}

/* A head's columns become 0. */
static inline void clear_head(rows to, int64_t first, int64_t n, int32_t head, int32_t width) {
    real *out = to.data + first * to.ld + head * width;
    for (int64_t i = 0; i < n; i++) memset(out + i * to.ld, 0, sizeof *out * (size_t)width);
}

/* to[columns][ld] = from[n][columns] transposed, n filled up with 0 to whole vectors; columns are
 * whole vectors. */
static inline void transpose(float *restrict_ to, int64_t ld, view from, int64_t n,
                             int64_t columns) {
    for (int64_t i = 0; i < n; i += VW)
        for (int64_t c = 0; c < columns; c += VW) {
            vf r[VW];
            const float *in = from.data + i * from.ld + c;
            if (i + VW <= n) {
#pragma GCC unroll 16
                for (int j = 0; j < VW; j++) r[j] = v_load(in + j * from.ld);
            } else {
                for (int j = 0; j < VW; j++) r[j] = i + j < n ? v_load(in + j * from.ld) : v_zero();
            }
            v_transpose(r);
#pragma GCC unroll 16
            for (int j = 0; j < VW; j++) v_store(to + (c + j) * ld + i, r[j]);
        }
}

/* ---- scores by columns: [keys][Q_BLOCK], a query for each lane, so that a softmax needs no sums
 * across a vector, however short the sentence is ---- */

/* Query rows at hand, and the keys of their sentence that any of them sees. */
typedef struct block {
    int64_t first, n, keys;
} block;

/* How many queries of a sentence of q_len a block gets that begins at `first`: where each sees only
 * what is before it, the first block is a short one, since it wastes half of its scores. */
static inline int64_t block_size(int64_t first, int64_t q_len, bool causal) {
    const int64_t most = causal && first == 0 ? Q_BLOCK / 2 : Q_BLOCK;
    return q_len - first < most ? q_len - first : most;
}

/* s = K Q^T, or V dO^T: sums over the width in one order, so that the backward finds the very
 * scores of the forward. q's rows are turned first, to qt [width][Q_BLOCK]; lanes without a query
 * get 0. */
static inline void score_columns(const fth_cpu_pairs_path *unit, const block *w, view k, view q,
                                 int64_t width, float *qt, float *s) {
    transpose(qt, Q_BLOCK, q, w->n, v_round(steps_of(unit, width)));
    small_product(w->keys, v_round(w->n),
                  &(small){.k = steps_of(unit, width),
                           .a = k,
                           .b = {qt, Q_BLOCK},
                           .c = s,
                           .ldc = Q_BLOCK,
                           .unit = unit});
}

/* s [keys][Q_BLOCK] as a factor of sums over queries, by rows. Pairs: rounded, in `to`
 * [keys][Q_BLOCK / 2], which may be s itself; 0 where there is no query. */
static inline view sum_queries(const fth_cpu_pairs_path *unit, const block *w, const float *s,
                               float *to) {
    if (!unit) return (view){s, Q_BLOCK};
#ifdef FTH_REAL_IS_bf16
    const int64_t lanes = v_round(w->n);
    for (int64_t j = 0; j < w->keys; j++)
        for (int64_t c = 0; c < Q_BLOCK; c += 2 * VW) {
            const float *at = s + j * Q_BLOCK + c;
            const vf first = c < lanes ? v_load(at) : v_zero();
            const vf second = c + VW < lanes ? v_load(at + VW) : v_zero();
            v_store(to + (j * Q_BLOCK + c) / 2, v_two_rounded(first, second));
        }
#else
    (void)w;
#endif
    return (view){to, Q_BLOCK / 2};
}

#ifdef FTH_REAL_IS_bf16
/* Two keys' numbers of VW queries from column c on, rounded; 0 where there is no key. */
inline_ vf keys_pair(const block *w, const float *s, int64_t pair, int64_t c) {
    const float *at = s + 2 * pair * Q_BLOCK + c;
    if (2 * pair >= w->keys) return v_zero();
    return v_pairs_rounded(v_load(at), 2 * pair + 1 < w->keys ? v_load(at + Q_BLOCK) : v_zero());
}

/* s as rows of so many pairs of keys, to [Q_BLOCK][pairs]. */
static inline void turn_keys(const block *w, const float *s, float *to, int64_t pairs) {
    for (int64_t p = 0; p < pairs; p += VW)
        for (int64_t c = 0; c < w->n; c += VW) {
            vf r[VW];
#pragma GCC unroll 16
            for (int i = 0; i < VW; i++) r[i] = keys_pair(w, s, p + i, c);
            store_turned(to + c * pairs + p, pairs * (int64_t)sizeof *to, r);
        }
}
#endif

/* As a factor of sums over keys, by columns. Pairs: rounded, vectors where it lies, tiles turned in
 * `to` [Q_BLOCK][steps_of], by rows. */
static inline view sum_keys(const fth_cpu_pairs_path *unit, const block *w, float *s, float *to) {
#ifdef FTH_REAL_IS_bf16
    const int64_t pairs = unit ? steps_of(unit, w->keys) : 0;
    if (fth_cpu_pairs_on_tiles(unit)) {
        turn_keys(w, s, to, pairs);
        return (view){to, pairs};
    }
    for (int64_t p = 0; p < pairs; p++)
        for (int64_t c = 0; c < w->n; c += VW) v_store(s + p * Q_BLOCK + c, keys_pair(w, s, p, c));
#else
    (void)unit, (void)w, (void)to;
#endif
    return (view){s, Q_BLOCK};
}

/* The largest of a column of scores, for each lane. */
inline_ vf largest_of_column(const float *s, int64_t keys) {
    const float *const end = s + keys * Q_BLOCK;
    vf most = v_load(s), other = most;
    for (; s < end; s += 2 * Q_BLOCK) {
        most = v_max(most, v_load(s));
        other = v_max(other, v_load(s + Q_BLOCK < end ? s + Q_BLOCK : s));
    }
    return v_max(most, other);
}

/* e to the power of a score less the largest one, times `by`; of the largest itself exactly 1, so
 * that the gradient of a probability that is 1 cancels to nothing, however large the scores are. */
inline_ vf exp_below(vf score, vf most, float by) {
    return v_exp(v_mul(v_add(score, -most), v_set(by)));
}

/* Causality: scores of keys behind their query become -inf. */
static inline void hide_later_keys(const block *w, float *s) {
    vf lane = {0};
    for (int i = 0; i < VW; i++) lane[i] = (float)i;
    for (int64_t j = w->first + 1; j < w->keys; j++)
        for (int64_t c = 0; c < w->n && c < j - w->first; c += VW) {
            float *at = s + j * Q_BLOCK + c;
            v_store(at, v_before(v_load(at), lane, (float)(j - w->first - c)));
        }
}

/* Dropout's factors of the probabilities of one query row: [n] keys, n whole vectors; 0 for those
 * that it does not see. */
static inline void attention_drop(const fth_exec *ex, const fth_op *op, const task *t,
                                  int64_t query, int64_t seen, int64_t n, float *factor) {
    const int64_t row = ex->step.row_base[op->u.attention.q_side] + t->q + query;
    const uint64_t e = (uint64_t)(row * op->u.attention.heads + t->head) << 16;
    FTH_NAME(drop_factors)(ex, &op->u.attention.drop, e, seen, factor);
    for (int64_t j = seen; j < n; j++) factor[j] = 0;
}

/* The same for a block of them, turned: to [whole vectors of keys][Q_BLOCK]; by_row is a place for
 * [Q_BLOCK][whole vectors of keys]. */
static inline void drop_columns(const fth_exec *ex, const fth_op *op, const task *t, const block *w,
                                float *by_row, float *to) {
    const int64_t whole = v_round(w->keys);
    for (int64_t i = 0; i < w->n; i++) {
        const int64_t seen = op->u.attention.causal ? w->first + i + 1 : t->k_len;
        attention_drop(ex, op, t, w->first + i, seen, whole, by_row + i * whole);
    }
    transpose(to, Q_BLOCK, (view){by_row, whole}, w->n, whole);
}

/* The longest sentence that a batch can have, in whole tiles of pairs. */
static inline int64_t longest(const int64_t capacity[FTH_N_EXTENTS], fth_side side) {
    enum { TILE = FTH_TILES_SIDE };
    return (capacity[side == FTH_SRC ? FTH_ROWS_SRC : FTH_ROWS_TGT] + TILE - 1) / TILE * TILE;
}

#endif
