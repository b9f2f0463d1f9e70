/* op_cases.c: the table of cases: every variant of every kind, in every shape. A builder makes the
 * forward operation, a random upstream gradient and the backward operations by the same rules as
 * autodiff, but by hand: what it says is the contract of op.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "op_harness.h"

enum {
    BIAS = 1,        /* linear: with a bias */
    ADDEND = 2,      /* the backward gets a gradient from another reader */
    IN_PLACE = 4,    /* the result takes the place of an input, where op.h allows it */
    TARGET = 8,      /* on the target side */
    CROSS = 16,      /* attention of the target to the source */
    CARRY = 32,      /* attention stores scores */
    PREVIOUS = 64,   /* attention gets scores from below */
    LEARNED = 128,   /* embed: learned positions; scale_shift: s; xent: the gradient of W */
    SHIFT = 256,     /* scale_shift: c */
    EXTRA = 512,     /* join: a third term; xent: nll of every row; top: -inf */
    NO_DX = 1024,    /* xent: no gradients */
    SEPARATE = 2048, /* attention: q, k and v are values of their own */
    FRESH = 4096,    /* linear: the gradient of W is assigned, not added to */
    WATCHED = 8192,  /* update: all sums */
    BITS = 16384     /* join: the forward keeps bits of its dropout for the backward */
};

struct fth_variant {
    const char *name;
    void (*build)(fth_trial *t, const fth_variant *v, const fth_shape *s);
    unsigned flags;
    fth_act act;
    float p;       /* dropout */
    double number; /* xent: smoothing; attention: divisor; mix: how many; update: which update */
    int r, a, c;   /* join: fth_coef_kind of its coefficients */
};

static fth_extent rows_on(const fth_variant *v) {
    return v->flags & TARGET ? FTH_ROWS_TGT : FTH_ROWS_SRC;
}

static fth_side side_of(const fth_variant *v) {
    return v->flags & TARGET ? FTH_TGT : FTH_SRC;
}

static fth_drop drop_of(const fth_variant *v, uint32_t site) {
    return (fth_drop){.p = v->p, .site = site};
}

/* Appends an operation; backward ones take the attributes of `of`. */
static fth_op *op_of(fth_trial *t, fth_kind kind, int n_in, int n_out, int32_t of) {
    fth_op *op = fth_graph_op(&t->graph, kind, n_in, n_out);
    if (op && of >= 0) {
        op->backward = true;
        op->u = t->graph.op[of].u;
    }
    return op;
}

static fth_val vector(fth_trial *t, int width) {
    return fth_trial_fixed(t, FTH_IN_PARAM, 1, width, FTH_FULL);
}

static fth_val matrix(fth_trial *t, int rows, int width) {
    return fth_trial_fixed(t, FTH_IN_PARAM, rows, width, FTH_REAL);
}

/* An output like `v`, width and class included. */
static fth_val output_like(fth_trial *t, fth_op *op, int index, fth_val v) {
    return fth_trial_output(t, op, index, v, t->graph.value[v].width, t->graph.value[v].class);
}

/* ---- builders ---- */

static void build_embed(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val table = matrix(t, s->vocab, s->width);
    int longest = t->batch.side[side_of(v)].max_len;
    fth_val positions = v->flags & LEARNED
                            ? matrix(t, longest + 2, s->width)
                            : fth_trial_fixed(t, FTH_IN_CONST, longest + 2, s->width, FTH_FULL);
    fth_op *op = op_of(t, FTH_KIND_embed, EMBED_N_IN, EMBED_N_OUT, -1);
    if (!op) return;
    op->u.embed.side = side_of(v);
    op->u.embed.scale = sqrtf((float)s->width);
    op->u.embed.drop = drop_of(v, 3);
    op->u.embed.word = drop_of(v, 4);
    op->u.embed.keep_first = v->flags & TARGET;
    op->in[EMBED_TABLE] = table;
    op->in[EMBED_POS] = positions;
    fth_val y = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_graph_output(&t->graph, op, EMBED_Y, y);
    fth_op *back = op_of(t, FTH_KIND_embed_bwd, EMBED_BWD_N_IN, EMBED_BWD_N_OUT, 0);
    if (!back) return;
    back->in[EMBED_BWD_DY] = fth_trial_upstream(t, y);
    back->out[EMBED_BWD_DTABLE] = fth_trial_param_grad(t, table);
    if (v->flags & LEARNED) back->out[EMBED_BWD_DPOS] = fth_trial_param_grad(t, positions);
}

/* x W^T with its backward; dy is the gradient before the activation. */
static void linear_backward(fth_trial *t, int32_t of, fth_val dy, fth_val addend, fth_val dx) {
    const fth_op *f = &t->graph.op[of];
    const fth_val x = f->in[LINEAR_X], w = f->in[LINEAR_W], b = f->in[LINEAR_B];
    fth_op *op = op_of(t, FTH_KIND_linear_dx, LINEAR_DX_N_IN, LINEAR_DX_N_OUT, of);
    if (!op) return;
    op->u.linear.act = FTH_ACT_NONE;
    op->in[LINEAR_DX_DY] = dy;
    op->in[LINEAR_DX_W] = w;
    op->in[LINEAR_DX_ADDEND] = addend;
    fth_graph_output(&t->graph, op, LINEAR_DX_DX, dx);
    op = op_of(t, FTH_KIND_linear_dw, LINEAR_DW_N_IN, LINEAR_DW_N_OUT, of);
    if (!op) return;
    op->in[LINEAR_DW_DY] = dy;
    op->in[LINEAR_DW_X] = x;
    op->out[LINEAR_DW_DW] = fth_trial_param_grad(t, w);
    op->out[LINEAR_DW_DB] = fth_trial_param_grad(t, b);
}

static void build_linear(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_val w = matrix(t, s->inner, s->width), b = v->flags & BIAS ? vector(t, s->inner) : 0;
    fth_op *op = op_of(t, FTH_KIND_linear, LINEAR_N_IN, LINEAR_N_OUT, -1);
    if (!op) return;
    op->u.linear.act = v->act;
    op->in[LINEAR_X] = x;
    op->in[LINEAR_W] = w;
    op->in[LINEAR_B] = b;
    fth_val y = fth_trial_output(t, op, LINEAR_Y, x, s->inner, FTH_REAL), saved = y;
    if (v->act == FTH_ACT_GELU) saved = output_like(t, op, LINEAR_PRE, y);
    fth_val dy = fth_trial_upstream(t, y);
    if (v->act != FTH_ACT_NONE) {
        fth_op *act = op_of(t, FTH_KIND_activation_bwd, ACT_BWD_N_IN, ACT_BWD_N_OUT, 0);
        if (!act) return;
        act->in[ACT_BWD_DY] = dy;
        act->in[ACT_BWD_SAVED] = saved;
        dy = output_like(t, act, ACT_BWD_DX, y);
    }
    fth_val dx = output_like(t, NULL, 0, x);
    linear_backward(t, 0, dy, 0, dx);
    fth_trial_pair(t, x, dx);
    if (t->graph.err != FTH_OK || !(v->flags & FRESH)) return;
    const fth_op *dw = &t->graph.op[t->graph.n_ops - 1];
    t->graph.value[dw->out[LINEAR_DW_DW]].storage = FTH_IN_ARENA;
}

/* act(u) W^T, where the product's backward takes the activation's with it. */
static void build_linear_after(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val u = fth_trial_input(t, rows_on(v), s->inner, FTH_REAL),
            w = matrix(t, s->width, s->inner);
    fth_op *act = op_of(t, FTH_KIND_activation, ACT_N_IN, ACT_N_OUT, -1);
    if (!act) return;
    act->u.linear.act = v->act;
    act->in[ACT_X] = u;
    fth_val x = output_like(t, act, ACT_Y, u);
    fth_op *op = op_of(t, FTH_KIND_linear, LINEAR_N_IN, LINEAR_N_OUT, -1);
    if (!op) return;
    op->in[LINEAR_X] = x;
    op->in[LINEAR_W] = w;
    fth_val y = fth_trial_output(t, op, LINEAR_Y, x, s->width, FTH_REAL);
    fth_val addend = v->flags & ADDEND ? fth_trial_upstream(t, x) : 0;
    fth_val du = output_like(t, NULL, 0, u);
    if (v->flags & IN_PLACE) t->shares[du] = addend;
    linear_backward(t, 1, fth_trial_upstream(t, y), addend, du);
    fth_op *dx = &t->graph.op[2];
    dx->u.linear.act = v->act;
    dx->in[LINEAR_DX_SAVED] = v->act == FTH_ACT_GELU ? u : x;
    fth_trial_pair(t, u, du);
}

static void build_activation(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->inner, FTH_REAL);
    fth_op *op = op_of(t, FTH_KIND_activation, ACT_N_IN, ACT_N_OUT, -1);
    if (!op) return;
    op->u.linear.act = v->act;
    op->in[ACT_X] = x;
    fth_val y = output_like(t, op, ACT_Y, x), dy = fth_trial_upstream(t, y);
    fth_op *back = op_of(t, FTH_KIND_activation_bwd, ACT_BWD_N_IN, ACT_BWD_N_OUT, 0);
    if (!back) return;
    back->in[ACT_BWD_DY] = dy;
    back->in[ACT_BWD_SAVED] = v->act == FTH_ACT_GELU ? x : y;
    fth_trial_pair(t, x, output_like(t, back, ACT_BWD_DX, x));
}

/* q, k and v of an attention, or places for their gradients: columns of one value (cross attention:
 * k and v) unless the variant wants them apart. of: what the gradients are of, NULL for inputs. */
static void three_views(fth_trial *t, const fth_variant *v, const fth_shape *s, const fth_val *of,
                        fth_val out[3]) {
    const bool cross = v->flags & CROSS, apart = v->flags & SEPARATE;
    const fth_extent extent[3] = {cross ? FTH_ROWS_TGT : rows_on(v),
                                  cross ? FTH_ROWS_SRC : rows_on(v),
                                  cross ? FTH_ROWS_SRC : rows_on(v)};
    const int first = cross ? 1 : 0; /* first of the three that share a value */
    fth_val base = 0;
    for (int k = 0; k < 3; k++) {
        const bool own = apart || k < first;
        if (own || !base)
            base = fth_trial_input(t, extent[k], own ? s->width : (3 - k) * s->width, FTH_REAL);
        out[k] = own ? base : fth_graph_columns(&t->graph, base, (k - first) * s->width, s->width);
        if (of && (own || k == first)) {
            fth_val old = t->graph.value[of[k]].base ? t->graph.value[of[k]].base : of[k];
            fth_trial_pair(t, old, base);
        }
        if (own) base = 0;
    }
}

static fth_extent pairs_of(const fth_variant *v) {
    if (v->flags & CROSS) return FTH_ROWS_CROSS_PAIRS;
    return v->flags & TARGET ? FTH_ROWS_TGT_PAIRS : FTH_ROWS_SRC_PAIRS;
}

/* Attention and its backward: gradients go to `places`, made by then. */
static void attend(fth_trial *t, const fth_variant *v, const fth_shape *s, const fth_val qkv[3],
                   const fth_val places[3]) {
    fth_val prev = v->flags & PREVIOUS ? fth_trial_input(t, pairs_of(v), s->heads, FTH_FULL) : 0;
    fth_op *op = op_of(t, FTH_KIND_attention, ATT_N_IN, ATT_N_OUT, -1);
    if (!op) return;
    op->u.attention.q_side = v->flags & CROSS ? FTH_TGT : side_of(v);
    op->u.attention.k_side = v->flags & CROSS ? FTH_SRC : side_of(v);
    op->u.attention.heads = s->heads;
    op->u.attention.causal = (v->flags & (TARGET | CROSS)) == TARGET;
    op->u.attention.scale = 1 / sqrtf((float)(s->width / s->heads));
    op->u.attention.divisor = (float)v->number;
    op->u.attention.drop = drop_of(v, 7);
    for (int k = 0; k < 3; k++) op->in[k] = qkv[k];
    op->in[ATT_PREV] = prev;
    fth_val o = fth_trial_output(t, op, ATT_O, qkv[0], s->width, FTH_REAL);
    fth_val lse = fth_trial_output(t, op, ATT_LSE, qkv[0], s->heads, FTH_FULL), scores = 0;
    if (v->flags & CARRY) {
        scores = fth_trial_input(t, pairs_of(v), s->heads, FTH_FULL);
        fth_graph_output(&t->graph, op, ATT_SCORES, scores);
    }
    fth_op *back =
        op_of(t, FTH_KIND_attention_bwd, ATT_BWD_N_IN, ATT_BWD_N_OUT, t->graph.n_ops - 1);
    if (!back) return;
    for (int k = 0; k < 3; k++) {
        back->in[k] = qkv[k];
        fth_graph_output(&t->graph, back, ATT_BWD_DQ + k, places[k]);
    }
    back->in[ATT_BWD_O] = o;
    back->in[ATT_BWD_LSE] = lse;
    back->in[ATT_BWD_DO] = fth_trial_upstream(t, o);
    back->in[ATT_BWD_SCORES] = scores;
    if (v->flags & ADDEND) back->in[ATT_BWD_DSCORES] = fth_trial_upstream(t, scores);
    if (prev) fth_trial_pair(t, prev, output_like(t, back, ATT_BWD_DPREV, prev));
}

static void build_attention(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val qkv[3], places[3];
    three_views(t, v, s, NULL, qkv);
    three_views(t, v, s, qkv, places);
    attend(t, v, s, qkv, places);
}

enum { LONGEST = 37 }; /* of a history: more than kernels take at a time */

/* Histories of different lengths that share rows of the cache. New rows are odd, old ones even. */
static void make_histories(fth_trial *t, int64_t slots) {
    const int32_t rows = t->batch.side[FTH_TGT].rows;
    const size_t size = sizeof(int32_t) * ((size_t)rows + 1);
    int32_t *slot = fth_arena_alloc(&t->graph.arena, size);
    int32_t *length = fth_arena_alloc(&t->graph.arena, size);
    int32_t *history = fth_arena_alloc(&t->graph.arena, size * (LONGEST + 1));
    if (!slot || !length || !history) {
        t->graph.err = fth_fail(FTH_NO_MEMORY, "no memory");
        return;
    }
    int64_t pairs = 0;
    for (int32_t r = 0; r < rows; r++) {
        slot[r] = 2 * (rows - 1 - r) + 1;
        length[r] = 1 + r * 11 % LONGEST;
        pairs += length[r];
        for (int j = 0; j <= LONGEST; j++)
            history[r * (LONGEST + 1) + j] = j < length[r] - 1
                                                 ? 2 * ((r / 2 + 3 * j) % (int)(slots / 2))
                                             : j == length[r] - 1 ? slot[r]
                                                                  : -1;
    }
    t->batch.slot = slot;
    t->batch.length = length;
    t->batch.history = history;
    t->batch.history_pitch = LONGEST + 1;
    t->rows[FTH_ROWS_TGT_PAIRS] = pairs;
    t->capacity[FTH_ROWS_TGT_PAIRS] = pairs + 3;
}

static void build_cached(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    const int64_t slots = 2 * t->batch.side[FTH_TGT].rows + LONGEST + 1;
    make_histories(t, slots);
    if (t->graph.err != FTH_OK) return;
    fth_val qkv[3];
    three_views(t, v, s, NULL, qkv);
    fth_val keys = fth_trial_fixed(t, FTH_IN_STATE, slots, s->width, FTH_REAL);
    fth_val values = fth_trial_fixed(t, FTH_IN_STATE, slots, s->width, FTH_REAL);
    fth_val prev =
        v->flags & PREVIOUS ? fth_trial_input(t, FTH_ROWS_TGT_PAIRS, s->heads, FTH_FULL) : 0;
    fth_op *op = op_of(t, FTH_KIND_attention_cached, ATT_CACHED_N_IN, ATT_CACHED_N_OUT, -1);
    if (!op) return;
    op->u.attention.q_side = op->u.attention.k_side = FTH_TGT;
    op->u.attention.heads = s->heads;
    op->u.attention.causal = true;
    op->u.attention.scale = 1 / sqrtf((float)(s->width / s->heads));
    op->u.attention.divisor = (float)v->number;
    for (int k = 0; k < 3; k++) op->in[k] = qkv[k];
    op->in[ATT_CACHED_PREV] = prev;
    op->in[ATT_CACHED_KCACHE] = keys;
    op->in[ATT_CACHED_VCACHE] = values;
    fth_trial_output(t, op, ATT_CACHED_O, qkv[0], s->width, FTH_REAL);
    if (v->flags & CARRY) {
        fth_val scores = fth_trial_input(t, FTH_ROWS_TGT_PAIRS, s->heads, FTH_FULL);
        fth_graph_output(&t->graph, op, ATT_CACHED_SCORES, scores);
    }
}

/* A coefficient of a kind, its parameter an operand of the operation. */
static fth_coef coefficient(fth_trial *t, fth_coef_kind kind, double value, int width,
                            fth_val *param) {
    fth_coef c = {.kind = kind, .value = kind >= FTH_COEF_SCALAR ? 1 : value};
    if (kind == FTH_COEF_STEP) c.slot = 1;
    if (kind == FTH_COEF_SCALAR) *param = vector(t, 1);
    if (kind == FTH_COEF_VECTOR) *param = vector(t, width);
    c.param = *param;
    return c;
}

/* The backward of operation `of`: a join, a norm or both. dz: from other readers of z. */
static void join_backward(fth_trial *t, int32_t of, fth_kind kind, fth_val dy, fth_val dz) {
    const fth_op f = t->graph.op[of];
    fth_op *op = op_of(t, kind, JOIN_BWD_N_IN, JOIN_BWD_N_OUT, of);
    if (!op) return;
    op->in[JOIN_BWD_DY] = dy;
    op->in[JOIN_BWD_DZ] = dz;
    op->in[JOIN_BWD_KEPT] = f.out[JOIN_KEPT];
    if (dy) {
        op->in[JOIN_BWD_Z] = kind == FTH_KIND_norm_bwd ? f.in[JOIN_X] : f.out[JOIN_Z];
        op->in[JOIN_BWD_STATS] = f.out[JOIN_STATS];
        op->in[JOIN_BWD_GAIN] = f.in[JOIN_GAIN];
        op->out[JOIN_BWD_DGAIN] = fth_trial_param_grad(t, f.in[JOIN_GAIN]);
        op->out[JOIN_BWD_DBIAS] = fth_trial_param_grad(t, f.in[JOIN_BIAS]);
    }
    for (int k = 0; k < 3; k++) {
        const fth_val term = f.in[JOIN_X + k], param = f.in[JOIN_R + k];
        if (!term) continue;
        fth_trial_pair(t, term, output_like(t, op, JOIN_BWD_DX + k, term));
        if (!param) continue;
        op->in[JOIN_BWD_X + k] = term;
        op->in[JOIN_BWD_R + k] = param;
        op->out[JOIN_BWD_DR + k] = fth_trial_param_grad(t, param);
    }
}

static void add_norm(fth_trial *t, fth_op *op, fth_val x, fth_val *y) {
    op->u.join.eps = 1e-5;
    op->in[JOIN_GAIN] = vector(t, t->graph.value[x].width);
    op->in[JOIN_BIAS] = vector(t, t->graph.value[x].width);
    *y = output_like(t, op, JOIN_Y, x);
    fth_trial_output(t, op, JOIN_STATS, x, 2, FTH_FULL);
}

/* join, or join_norm where normed. */
static void build_join_of(fth_trial *t, const fth_variant *v, const fth_shape *s, bool normed) {
    fth_val term[3] = {0};
    for (int k = 0; k < (v->flags & EXTRA ? 3 : 2); k++)
        term[k] = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_op *op = op_of(t, normed ? FTH_KIND_join_norm : FTH_KIND_join, JOIN_N_IN, JOIN_N_OUT, -1);
    if (!op) return;
    op->u.join.r = coefficient(t, (fth_coef_kind)v->r, 1.75, s->width, &op->in[JOIN_R]);
    op->u.join.a = coefficient(t, (fth_coef_kind)v->a, 0.5, s->width, &op->in[JOIN_A]);
    op->u.join.c = coefficient(t, (fth_coef_kind)v->c, -0.25, s->width, &op->in[JOIN_C]);
    op->u.join.drop = drop_of(v, 5);
    for (int k = 0; k < 3; k++) op->in[JOIN_X + k] = term[k];
    fth_val z = output_like(t, op, JOIN_Z, term[0]), y = 0;
    if (normed) add_norm(t, op, z, &y);
    if (v->flags & BITS) fth_trial_output(t, op, JOIN_KEPT, z, (s->width + 7) / 8, FTH_BITS);
    fth_val dz = !normed || v->flags & ADDEND ? fth_trial_upstream(t, z) : 0;
    join_backward(t, 0, normed ? FTH_KIND_join_norm_bwd : FTH_KIND_join_bwd,
                  normed ? fth_trial_upstream(t, y) : 0, dz);
}

static void build_join(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    build_join_of(t, v, s, false);
}

static void build_join_norm(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    build_join_of(t, v, s, true);
}

/* x + f without dropout: both get the same gradient, so the backward makes only one. */
static void build_join_norm_plain(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    build_join_of(t, v, s, true);
    if (t->graph.err != FTH_OK) return;
    fth_op *f = &t->graph.op[0], *back = &t->graph.op[1];
    f->u.join.r.value = f->u.join.a.value = back->u.join.r.value = back->u.join.a.value = 1;
    for (int k = 0; k < t->n_pairs; k++)
        if (t->pair[k].grad == back->out[JOIN_BWD_DF]) t->pair[k].grad = back->out[JOIN_BWD_DX];
    back->out[JOIN_BWD_DF] = 0;
}

static void build_norm(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->width, FTH_REAL), y = 0;
    fth_op *op = op_of(t, FTH_KIND_norm, JOIN_N_IN, JOIN_N_OUT, -1);
    if (!op) return;
    op->in[JOIN_X] = x;
    add_norm(t, op, x, &y);
    fth_val dx = v->flags & ADDEND ? fth_trial_upstream(t, x) : 0;
    join_backward(t, 0, FTH_KIND_norm_bwd, fth_trial_upstream(t, y), dx);
}

/* A product without activation and its output. */
static fth_val plain_linear(fth_trial *t, fth_val x, fth_val w, fth_val b) {
    fth_op *op = op_of(t, FTH_KIND_linear, LINEAR_N_IN, LINEAR_N_OUT, -1);
    if (!op) return 0;
    op->u.linear.act = FTH_ACT_NONE;
    op->in[LINEAR_X] = x, op->in[LINEAR_W] = w, op->in[LINEAR_B] = b;
    return fth_trial_output(t, op, LINEAR_Y, x, (int)t->graph.value[w].rows, FTH_REAL);
}

/* A join between two products, as in a model: a device may join the first with it, and in the backward the
 * second. */
static void build_joined(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->inner, FTH_REAL);
    fth_val skip = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_val first = matrix(t, s->width, s->inner), second = matrix(t, s->inner, s->width);
    fth_val f = plain_linear(t, x, first, vector(t, s->width));
    fth_op *op = op_of(t, FTH_KIND_join_norm, JOIN_N_IN, JOIN_N_OUT, -1);
    if (!op) return;
    op->u.join.r = coefficient(t, (fth_coef_kind)v->r, 1.75, s->width, &op->in[JOIN_R]);
    op->u.join.a = coefficient(t, (fth_coef_kind)v->a, 0.5, s->width, &op->in[JOIN_A]);
    op->u.join.drop = drop_of(v, 5);
    op->in[JOIN_X] = skip, op->in[JOIN_F] = f;
    fth_val z = output_like(t, op, JOIN_Z, skip), y = 0;
    add_norm(t, op, z, &y);
    if (v->p > 0) fth_trial_output(t, op, JOIN_KEPT, z, (s->width + 7) / 8, FTH_BITS);
    fth_val dh = fth_trial_upstream(t, plain_linear(t, y, second, 0));
    fth_val addend = v->flags & ADDEND ? fth_trial_upstream(t, y) : 0;
    fth_val dy = output_like(t, NULL, 0, y);
    linear_backward(t, 2, dh, addend, dy);
    if (t->graph.err != FTH_OK) return;
    fth_op *last = &t->graph.op[t->graph.n_ops - 1], dw = *last; /* first, as in a model */
    *last = last[-1], last[-1] = dw;
    join_backward(t, 1, FTH_KIND_join_norm_bwd, dy, 0);
    if (t->graph.err != FTH_OK) return;
    fth_graph_find_producers(&t->graph);
    const fth_val df = t->graph.op[t->graph.n_ops - 1].out[JOIN_BWD_DF];
    t->n_pairs--; /* f is made, not given: the pair that came last */
    fth_val dx = output_like(t, NULL, 0, x);
    linear_backward(t, 0, df, 0, dx);
    fth_trial_pair(t, x, dx);
}

/* A feed-forward network: the slope of ReLU, and the bias before it, belong to the second product's backward
 * where a device can. */
static void build_feed_forward(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_val w = matrix(t, s->inner, s->width), second = matrix(t, s->width, s->inner);
    fth_val u = plain_linear(t, x, w, vector(t, s->inner));
    if (!u) return;
    t->graph.op[0].u.linear.act = FTH_ACT_RELU;
    fth_val y = plain_linear(t, u, second, 0);
    fth_val du = output_like(t, NULL, 0, u), dx = output_like(t, NULL, 0, x);
    linear_backward(t, 1, fth_trial_upstream(t, y), 0, du);
    if (t->graph.err != FTH_OK) return;
    t->graph.op[2].u.linear.act = FTH_ACT_RELU;
    t->graph.op[2].in[LINEAR_DX_SAVED] = u;
    linear_backward(t, 0, du, 0, dx);
    fth_trial_pair(t, x, dx);
}

/* Queries, keys and values are columns of one product, as in a model: attention's backward may sum up the
 * gradient of its bias. */
static void build_attention_of_product(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->width, FTH_REAL), qkv[3], places[3];
    fth_val all = plain_linear(t, x, matrix(t, 3 * s->width, s->width), vector(t, 3 * s->width));
    if (!all) return;
    fth_val dall = output_like(t, NULL, 0, all), dx = output_like(t, NULL, 0, x);
    for (int k = 0; k < 3; k++) {
        qkv[k] = fth_graph_columns(&t->graph, all, k * s->width, s->width);
        places[k] = fth_graph_columns(&t->graph, dall, k * s->width, s->width);
    }
    attend(t, v, s, qkv, places);
    if (t->graph.err != FTH_OK) return;
    linear_backward(t, 0, dall, 0, dx);
    fth_trial_pair(t, x, dx);
}

static void build_dropout(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->inner, FTH_REAL);
    fth_op *op = op_of(t, FTH_KIND_dropout, DROP_N_IN, DROP_N_OUT, -1);
    if (!op) return;
    op->u.dropout.drop = drop_of(v, 6);
    op->in[DROP_X] = x;
    fth_val dy = fth_trial_upstream(t, output_like(t, op, DROP_Y, x));
    fth_op *back = op_of(t, FTH_KIND_dropout, DROP_N_IN, DROP_N_OUT, 0);
    if (!back) return;
    back->in[DROP_X] = dy;
    fth_trial_pair(t, x, output_like(t, back, DROP_Y, x));
}

static void build_scale_shift(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_val scale = v->flags & LEARNED ? vector(t, 1) : 0,
            shift = v->flags & SHIFT ? vector(t, 1) : 0;
    fth_op *op = op_of(t, FTH_KIND_scale_shift, SHIFT_N_IN, SHIFT_N_OUT, -1);
    if (!op) return;
    op->in[SHIFT_X] = x;
    op->in[SHIFT_S] = scale;
    op->in[SHIFT_C] = shift;
    fth_val dy = fth_trial_upstream(t, output_like(t, op, SHIFT_Y, x));
    fth_op *back = op_of(t, FTH_KIND_scale_shift_bwd, SHIFT_BWD_N_IN, SHIFT_BWD_N_OUT, 0);
    if (!back) return;
    back->in[SHIFT_BWD_DY] = dy;
    back->in[SHIFT_BWD_X] = scale ? x : 0;
    back->in[SHIFT_BWD_S] = scale;
    back->in[SHIFT_BWD_C] = shift;
    fth_trial_pair(t, x, output_like(t, back, SHIFT_BWD_DX, x));
    back->out[SHIFT_BWD_DS] = fth_trial_param_grad(t, scale);
    back->out[SHIFT_BWD_DC] = fth_trial_param_grad(t, shift);
}

static void build_head_scale(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->width, FTH_REAL), gamma = vector(t, s->heads);
    fth_op *op = op_of(t, FTH_KIND_head_scale, HEADS_N_IN, HEADS_N_OUT, -1);
    if (!op) return;
    op->u.head_scale.heads = s->heads;
    op->in[HEADS_X] = x;
    op->in[HEADS_GAMMA] = gamma;
    fth_val dy = fth_trial_upstream(t, output_like(t, op, HEADS_Y, x));
    fth_op *back = op_of(t, FTH_KIND_head_scale_bwd, HEADS_BWD_N_IN, HEADS_BWD_N_OUT, 0);
    if (!back) return;
    back->in[HEADS_BWD_DY] = dy;
    back->in[HEADS_BWD_X] = x;
    back->in[HEADS_BWD_GAMMA] = gamma;
    fth_trial_pair(t, x, output_like(t, back, HEADS_BWD_DX, x));
    back->out[HEADS_BWD_DGAMMA] = fth_trial_param_grad(t, gamma);
}

/* Every second x has a gradient from another reader; it may share its place with the result. */
static void build_mix(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    const int n = (int)v->number;
    fth_val w = vector(t, n), x[8] = {0};
    for (int k = 0; k < n; k++) x[k] = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_op *op = op_of(t, FTH_KIND_mix, MIX_X0 + n, 1, -1);
    if (!op) return;
    op->in[MIX_W] = w;
    for (int k = 0; k < n; k++) op->in[MIX_X0 + k] = x[k];
    fth_val dy = fth_trial_upstream(t, output_like(t, op, MIX_Y, x[0]));
    fth_op *back = op_of(t, FTH_KIND_mix_bwd, MIX_BWD_X0 + 2 * n, MIX_BWD_DX0 + n, 0);
    if (!back) return;
    back->in[MIX_BWD_DY] = dy;
    back->in[MIX_BWD_W] = w;
    back->out[MIX_BWD_DW] = fth_trial_param_grad(t, w);
    for (int k = 0; k < n; k++) {
        fth_val addend = v->flags & ADDEND && k % 2 ? fth_trial_upstream(t, x[k]) : 0;
        fth_val dx = output_like(t, back, MIX_BWD_DX0 + k, x[k]);
        if (v->flags & IN_PLACE) t->shares[dx] = addend;
        back->in[MIX_BWD_X0 + k] = x[k];
        back->in[MIX_BWD_X0 + n + k] = addend;
        fth_trial_pair(t, x[k], dx);
    }
}

static void build_add(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val a = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_val b = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_op *op = op_of(t, FTH_KIND_add, ADD_N_IN, ADD_N_OUT, -1);
    if (!op) return;
    op->in[ADD_A] = a;
    op->in[ADD_B] = b;
    fth_val y = output_like(t, op, ADD_Y, a), dy = fth_trial_upstream(t, y);
    if (v->flags & IN_PLACE) t->shares[y] = a;
    fth_trial_pair(t, a, dy);
    fth_trial_pair(t, b, dy);
}

static void build_xent(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_val w = matrix(t, s->vocab, s->width);
    fth_op *op = op_of(t, FTH_KIND_xent, XENT_N_IN, XENT_N_OUT, -1);
    if (!op) return;
    op->u.xent.side = side_of(v);
    op->u.xent.smoothing = v->number;
    op->in[XENT_X] = x;
    op->in[XENT_W] = w;
    fth_val loss = fth_trial_fixed(t, FTH_IN_ARENA, 1, 2, FTH_FULL);
    fth_graph_output(&t->graph, op, XENT_LOSS, loss);
    if (v->flags & EXTRA) fth_trial_output(t, op, XENT_NLL, x, 1, FTH_FULL);
    if (v->flags & NO_DX) return;
    /* The gradient is that of the first sum times loss_scale. */
    fth_val weight = fth_trial_upstream(t, loss);
    if (!weight) return;
    t->host[weight][0] = t->step.loss_scale;
    t->host[weight][1] = 0;
    fth_trial_pair(t, x, output_like(t, op, XENT_DX, x));
    if (v->flags & LEARNED) op->out[XENT_DW] = fth_trial_param_grad(t, w);
}

/* A matrix [inner, width] with its moments; number: which update of Adam, 0: none. */
static void build_update(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    static const fth_storage storages[] = {FTH_IN_PARAM, FTH_IN_MOMENT1, FTH_IN_MOMENT2,
                                           FTH_IN_PARAM};
    fth_op *op = op_of(t, FTH_KIND_update, UPDATE_N_IN, UPDATE_N_OUT, -1);
    if (!op) return;
    op->u.update.rate = 3;
    op->u.update.watched = v->flags & WATCHED;
    t->step.rate[3] = 0.75f;
    t->step.adam = (fth_adam){.update = (int64_t)v->number,
                              .lr = 0.01,
                              .beta1 = 0.9,
                              .beta2 = 0.98,
                              .eps = 1e-8,
                              .weight_decay = 0.01};
    op->in[UPDATE_GRAD] = fth_trial_fixed(t, FTH_IN_ARENA, s->inner, s->width, FTH_FULL);
    op->in[UPDATE_LOSS] = fth_trial_fixed(t, FTH_IN_ARENA, 1, 2, FTH_FULL);
    for (int k = UPDATE_MASTER; k <= UPDATE_WEIGHTS; k++) {
        const fth_class class = k == UPDATE_WEIGHTS ? FTH_REAL : FTH_FULL;
        fth_val out = fth_trial_fixed(t, storages[k], s->inner, s->width, class);
        if (!out) return;
        fth_graph_output(&t->graph, op, k, out);
        for (int64_t i = 0; k == UPDATE_V && i < (int64_t)s->inner * s->width; i++)
            t->host[out][i] *= t->host[out][i];
    }
    fth_graph_output(&t->graph, op, UPDATE_SUMS,
                     fth_trial_fixed(t, FTH_IN_ARENA, 1, FTH_RANGE_SUMS, FTH_FULL));
}

/* The best `number` of the vocabulary; some words are forbidden, some are as good as others. */
static void build_top(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, FTH_ROWS_TGT, s->vocab, FTH_REAL);
    fth_op *op = op_of(t, FTH_KIND_top, TOP_N_IN, TOP_N_OUT, -1);
    if (!op) return;
    for (int64_t i = 0; i < t->capacity[FTH_ROWS_TGT] * s->vocab; i++) {
        if (i % 7 == 3) t->host[x][i] = 1.5;
        if (v->flags & EXTRA && i % 5 == 2) t->host[x][i] = -INFINITY;
    }
    op->in[TOP_X] = x;
    fth_trial_output(t, op, TOP_Y, x, TOP_BEST + 2 * (int)v->number, FTH_FULL);
}

/* Two sums of a value or two; r and a as in a join. number: fth_watch_what. */
static void build_watch(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    const fth_watch_what what = (fth_watch_what)v->number;
    fth_val x = fth_trial_input(t, rows_on(v), s->width, FTH_REAL), f = 0;
    if (what >= FTH_WATCH_COSINE) f = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_op *op = op_of(t, FTH_KIND_watch, WATCH_N_IN, WATCH_N_OUT, -1);
    if (!op) return;
    for (int64_t i = 0; what == FTH_WATCH_NONZERO && i < t->capacity[rows_on(v)] * s->width; i++)
        if (t->host[x][i] < 0.5) t->host[x][i] = 0;
    op->u.watch.what = what;
    op->in[WATCH_X] = x;
    op->in[WATCH_F] = f;
    op->u.watch.r = coefficient(t, (fth_coef_kind)v->r, 1.75, s->width, &op->in[WATCH_R]);
    op->u.watch.a = coefficient(t, (fth_coef_kind)v->a, 0.5, s->width, &op->in[WATCH_A]);
    fth_graph_output(&t->graph, op, WATCH_SUMS, fth_trial_fixed(t, FTH_IN_ARENA, 1, 2, FTH_FULL));
}

static void build_watch_positions(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_op *op = op_of(t, FTH_KIND_watch_positions, WATCH_POSITIONS_N_IN, WATCH_N_OUT, -1);
    if (!op) return;
    /* Positions that agree in part: else the mean of the cosines is nothing but rounding. */
    for (int64_t i = 0; i < t->capacity[rows_on(v)] * s->width; i++) t->host[x][i] += 0.5;
    op->u.watch.side = side_of(v);
    op->in[WATCH_POSITIONS_X] = x;
    fth_graph_output(&t->graph, op, WATCH_SUMS, fth_trial_fixed(t, FTH_IN_ARENA, 1, 2, FTH_FULL));
}

/* The attention is run first: entropy needs its sums of exponentials. */
static void build_watch_entropy(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    build_attention(t, v, s);
    if (t->graph.err != FTH_OK) return;
    t->graph.n_ops = 1;
    t->n_loss = t->n_pairs = 0;
    fth_op *op = op_of(t, FTH_KIND_watch_entropy, WATCH_ENTROPY_N_IN, WATCH_N_OUT, -1);
    if (!op) return;
    const fth_op *attention = &t->graph.op[0];
    op->u = attention->u;
    op->in[WATCH_ENTROPY_Q] = attention->in[ATT_Q];
    op->in[WATCH_ENTROPY_K] = attention->in[ATT_K];
    op->in[WATCH_ENTROPY_PREV] = attention->in[ATT_PREV];
    op->in[WATCH_ENTROPY_LSE] = attention->out[ATT_LSE];
    fth_graph_output(&t->graph, op, WATCH_SUMS, fth_trial_fixed(t, FTH_IN_ARENA, 1, 2, FTH_FULL));
}

/* ---- the table ---- */

static const fth_shape shapes[] = {
    /* name             sentences  lengths of sources, targets   d heads inner  V  large */
    {"one token", 1, {1}, {1}, 8, 2, 12, 11, false},
    {"one head, width 129", 1, {5}, {4}, 129, 1, 33, 37, false},
    {"four sentences", 4, {3, 1, 7, 2}, {2, 5, 1, 4}, 12, 3, 16, 9, false},
    {"empty batch", 0, {0}, {0}, 16, 2, 20, 9, false},
    {"width 64", 2, {9, 17}, {18, 5}, 64, 2, 48, 65, false},
    {"long", 3, {130, 3, 40}, {30, 141, 1}, 128, 2, 256, 300, true},
};

enum { C = FTH_COEF_CONST, T = FTH_COEF_STEP, S = FTH_COEF_SCALAR, V = FTH_COEF_VECTOR };

static const fth_variant variants[] = {
    {"embed", .build = build_embed},
    {"embed learned positions, dropouts", .build = build_embed, .flags = LEARNED | TARGET,
     .p = 0.3f},
    {"linear", .build = build_linear},
    {"linear bias", .build = build_linear, .flags = BIAS | TARGET},
    {"linear bias relu", .build = build_linear, .flags = BIAS, .act = FTH_ACT_RELU},
    {"linear bias gelu", .build = build_linear, .flags = BIAS, .act = FTH_ACT_GELU},
    {"linear bias, gradient assigned", .build = build_linear, .flags = BIAS | FRESH},
    {"linear after relu", .build = build_linear_after, .act = FTH_ACT_RELU},
    {"linear after gelu, addend", .build = build_linear_after, .flags = ADDEND,
     .act = FTH_ACT_GELU},
    {"linear after relu, addend in place", .build = build_linear_after, .flags = ADDEND | IN_PLACE,
     .act = FTH_ACT_RELU},
    {"linear, addend in place", .build = build_linear_after, .flags = ADDEND | IN_PLACE,
     .act = FTH_ACT_NONE},
    {"activation relu", .build = build_activation, .act = FTH_ACT_RELU},
    {"activation gelu", .build = build_activation, .flags = TARGET, .act = FTH_ACT_GELU},
    {"attention", .build = build_attention, .number = 1},
    {"attention causal", .build = build_attention, .flags = TARGET, .number = 1},
    {"attention separate, dropout", .build = build_attention, .flags = SEPARATE, .p = 0.2f,
     .number = 1},
    {"attention causal dropout", .build = build_attention, .flags = TARGET, .p = 0.4f, .number = 1},
    {"attention cross", .build = build_attention, .flags = CROSS, .number = 1},
    {"attention cross dropout", .build = build_attention, .flags = CROSS, .p = 0.2f, .number = 1},
    {"attention first of a chain", .build = build_attention, .flags = CARRY | ADDEND, .number = 1},
    {"attention of a product", .build = build_attention_of_product, .number = 1},
    {"attention of a product, causal", .build = build_attention_of_product, .flags = TARGET,
     .number = 1},
    {"attention carried", .build = build_attention, .flags = CARRY | PREVIOUS | ADDEND, .p = 0.2f,
     .number = 2},
    {"attention carried causal", .build = build_attention,
     .flags = TARGET | CARRY | PREVIOUS | ADDEND, .number = 3},
    {"attention carried cross, last", .build = build_attention, .flags = CROSS | CARRY | PREVIOUS,
     .number = 3},
    {"attention_cached", .build = build_cached, .flags = TARGET, .number = 1},
    {"attention_cached carried", .build = build_cached, .flags = TARGET | CARRY | PREVIOUS,
     .number = 2},
    {"join", .build = build_join, .r = C, .a = C},
    {"join dropout step", .build = build_join, .flags = TARGET, .p = 0.3f, .r = C, .a = T},
    {"join scalar (rezero)", .build = build_join, .p = 0.3f, .r = C, .a = S},
    {"join vector (lambda)", .build = build_join, .flags = TARGET, .p = 0.1f, .r = V, .a = C},
    {"join all learned", .build = build_join, .flags = EXTRA, .p = 0.3f, .r = S, .a = V, .c = S},
    {"join dropout, bits", .build = build_join, .flags = TARGET | BITS, .p = 0.3f, .r = C, .a = T},
    {"join all learned, bits", .build = build_join, .flags = EXTRA | BITS, .p = 0.3f, .r = S,
     .a = V, .c = S},
    {"joined with the slope", .build = build_feed_forward},
    {"joined products", .build = build_joined, .flags = ADDEND, .p = 0.3f, .r = C, .a = T},
    {"joined products, no addend", .build = build_joined, .flags = TARGET, .r = C, .a = C},
    {"norm", .build = build_norm},
    {"norm addend", .build = build_norm, .flags = TARGET | ADDEND},
    {"join_norm", .build = build_join_norm, .r = C, .a = C},
    {"join_norm plain", .build = build_join_norm_plain, .flags = ADDEND, .r = C, .a = C},
    {"join_norm dropout step", .build = build_join_norm, .flags = TARGET | ADDEND, .p = 0.3f,
     .r = C, .a = T},
    {"join_norm third term (b2t)", .build = build_join_norm, .flags = EXTRA, .p = 0.1f, .r = C,
     .a = C, .c = C},
    {"join_norm vector (admin)", .build = build_join_norm, .flags = ADDEND, .p = 0.3f, .r = V,
     .a = C},
    {"join_norm all learned", .build = build_join_norm, .flags = EXTRA | ADDEND, .p = 0.3f, .r = S,
     .a = S, .c = V},
    {"join_norm dropout, bits", .build = build_join_norm, .flags = ADDEND | BITS, .p = 0.3f, .r = C,
     .a = T},
    {"join_norm third term, bits", .build = build_join_norm, .flags = TARGET | EXTRA | BITS,
     .p = 0.5f, .r = C, .a = C, .c = C},
    {"join_norm all learned, bits", .build = build_join_norm, .flags = EXTRA | ADDEND | BITS,
     .p = 0.3f, .r = S, .a = S, .c = V},
    {"dropout", .build = build_dropout, .p = 0.3f},
    {"dropout target", .build = build_dropout, .flags = TARGET, .p = 0.75f},
    {"scale_shift", .build = build_scale_shift, .flags = LEARNED | SHIFT},
    {"scale_shift shift only", .build = build_scale_shift, .flags = SHIFT | TARGET},
    {"scale_shift scale only", .build = build_scale_shift, .flags = LEARNED},
    {"head_scale", .build = build_head_scale, .flags = TARGET},
    {"mix of 1", .build = build_mix, .number = 1},
    {"mix of 5", .build = build_mix, .flags = TARGET | ADDEND, .number = 5},
    {"mix of 4 in place", .build = build_mix, .flags = ADDEND | IN_PLACE, .number = 4},
    {"add", .build = build_add},
    {"add in place", .build = build_add, .flags = TARGET | IN_PLACE},
    {"xent", .build = build_xent, .flags = TARGET | LEARNED},
    {"xent smoothed, rows", .build = build_xent, .flags = TARGET | LEARNED | EXTRA, .number = 0.1},
    {"xent source, dx only", .build = build_xent, .flags = EXTRA, .number = 0.2},
    {"xent without gradients", .build = build_xent, .flags = TARGET | NO_DX | EXTRA, .number = 0.1},
    {"update", .build = build_update, .number = 3},
    {"update watched", .build = build_update, .flags = WATCHED, .number = 1},
    {"update of nothing", .build = build_update, .flags = WATCHED},
    {"top 1", .build = build_top, .number = 1},
    {"top 9", .build = build_top, .number = 9},
    {"top 2, some forbidden", .build = build_top, .flags = EXTRA, .number = 2},
    {"top 32, some forbidden", .build = build_top, .flags = EXTRA, .number = 32},
    {"watch norm", .build = build_watch, .number = FTH_WATCH_NORM},
    {"watch nonzero", .build = build_watch, .flags = TARGET, .number = FTH_WATCH_NONZERO},
    {"watch cosine", .build = build_watch, .number = FTH_WATCH_COSINE},
    {"watch ratio", .build = build_watch, .flags = TARGET, .number = FTH_WATCH_RATIO, .r = C,
     .a = T},
    {"watch ratio learned", .build = build_watch, .number = FTH_WATCH_RATIO, .r = V, .a = S},
    {"watch_positions", .build = build_watch_positions},
    {"watch_positions target", .build = build_watch_positions, .flags = TARGET},
    {"watch_entropy", .build = build_watch_entropy, .number = 1},
    {"watch_entropy causal", .build = build_watch_entropy, .flags = TARGET, .number = 1},
    {"watch_entropy cross", .build = build_watch_entropy, .flags = CROSS, .number = 1},
    {"watch_entropy carried", .build = build_watch_entropy, .flags = TARGET | CARRY | PREVIOUS,
     .number = 3},
};

bool fth_op_case_at(size_t i, fth_op_case *out) {
    const size_t n_shapes = sizeof shapes / sizeof *shapes;
    if (i >= n_shapes * (sizeof variants / sizeof *variants)) return false;
    out->variant = &variants[i / n_shapes];
    out->shape = &shapes[i % n_shapes];
    snprintf(out->name, sizeof out->name, "%s / %s", out->variant->name, out->shape->name);
    return true;
}

fth_err fth_trial_init(fth_trial *t, const fth_op_case *c) {
    const fth_shape *s = c->shape;
    *t = (fth_trial){.from = c};
    fth_graph_init(&t->graph);
    fth_rng_init(&t->rng, fth_hash64(c->name, strlen(c->name)), 0);
    t->batch.n_sent = s->n_sent;
    FTH_TRY(fth_trial_side(t, s->src, &t->batch.side[FTH_SRC]));
    FTH_TRY(fth_trial_side(t, s->tgt, &t->batch.side[FTH_TGT]));
    t->rows[FTH_ROWS_SRC] = t->batch.side[FTH_SRC].rows;
    t->rows[FTH_ROWS_TGT] = t->batch.side[FTH_TGT].rows;
    for (int k = 0; k < s->n_sent; k++) {
        t->rows[FTH_ROWS_SRC_PAIRS] += s->src[k] * s->src[k];
        t->rows[FTH_ROWS_TGT_PAIRS] += s->tgt[k] * s->tgt[k];
        t->rows[FTH_ROWS_CROSS_PAIRS] += s->tgt[k] * s->src[k];
    }
    for (int e = 0; e < FTH_N_EXTENTS; e++) t->capacity[e] = t->rows[e] + 3;
    t->step = (fth_step){.seed = 0x5eed5eed5eedULL,
                         .update = 3,
                         .slots = {0.3, 0.7},
                         .loss_scale = 1 / 16.0,
                         .row_base = {5, 1001}};
    c->variant->build(t, c->variant, s);
    return t->graph.err;
}
