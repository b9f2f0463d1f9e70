/* op_build_attention.c: cases of op_build.h: attention, with histories, of a product and looked
 * at. */
#include <math.h>

#include "op_build.h"

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

void fth_case_attention(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val qkv[3], places[3];
    three_views(t, v, s, NULL, qkv);
    three_views(t, v, s, qkv, places);
    attend(t, v, s, qkv, places);
}

/* Queries, keys and values are columns of one product, as in a model: attention's backward may sum
 * up the gradient of its bias. */
void fth_case_attention_of_product(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->width, FTH_REAL), qkv[3], places[3];
    fth_val all =
        fth_case_product(t, x, matrix(t, 3 * s->width, s->width), vector(t, 3 * s->width));
    if (!all) return;
    fth_val dall = output_like(t, NULL, 0, all), dx = output_like(t, NULL, 0, x);
    for (int k = 0; k < 3; k++) {
        qkv[k] = fth_graph_columns(&t->graph, all, k * s->width, s->width);
        places[k] = fth_graph_columns(&t->graph, dall, k * s->width, s->width);
    }
    attend(t, v, s, qkv, places);
    if (t->graph.err != FTH_OK) return;
    fth_case_linear_backward(t, 0, dall, 0, dx);
    fth_trial_pair(t, x, dx);
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

void fth_case_cached(fth_trial *t, const fth_variant *v, const fth_shape *s) {
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

/* The attention is run first: entropy needs its sums of exponentials. */
void fth_case_gauge_entropy(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_case_attention(t, v, s);
    if (t->graph.err != FTH_OK) return;
    t->graph.n_ops = 1;
    t->n_loss = t->n_pairs = 0;
    fth_op *op = op_of(t, FTH_KIND_gauge_entropy, GAUGE_ENTROPY_N_IN, GAUGE_N_OUT, -1);
    if (!op) return;
    const fth_op *attention = &t->graph.op[0];
    op->u = attention->u;
    op->in[GAUGE_ENTROPY_Q] = attention->in[ATT_Q];
    op->in[GAUGE_ENTROPY_K] = attention->in[ATT_K];
    op->in[GAUGE_ENTROPY_PREV] = attention->in[ATT_PREV];
    op->in[GAUGE_ENTROPY_LSE] = attention->out[ATT_LSE];
    fth_graph_output(&t->graph, op, GAUGE_SUMS, fth_trial_fixed(t, FTH_IN_ARENA, 1, 2, FTH_FULL));
}
