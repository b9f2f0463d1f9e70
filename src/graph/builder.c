/* builder.c: appends forward operations and checks their shapes; a join and the norm after it
 * become one operation. */
#include "graph/builder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"

static bool broken(const fth_builder *b) {
    return b->graph->err != FTH_OK;
}

static void set_error(fth_builder *b, fth_err err) {
    if (b->graph->err == FTH_OK) b->graph->err = err;
}

/* Adds an operation that belongs to the current place. */
static fth_op *add_op(fth_builder *b, fth_kind kind, int n_in, int n_out) {
    if (broken(b)) return NULL;
    fth_op *op = fth_graph_op(b->graph, kind, n_in, n_out);
    if (!op) return NULL;
    op->stack = b->stack;
    op->sub = b->sub;
    op->layer = b->layer;
    return op;
}

static const fth_value *value_of(const fth_builder *b, fth_val v) {
    return &b->graph->value[v];
}

/* A new value with the rows of another and its own width and class. */
static fth_val rows_like(fth_builder *b, fth_val v, int64_t width, fth_class class) {
    fth_value made = {.storage = FTH_IN_ARENA,
                      .class = class,
                      .extent = value_of(b, v)->extent,
                      .rows = value_of(b, v)->rows,
                      .width = (int32_t)width,
                      .producer = -1};
    return fth_graph_value(b->graph, made);
}

static fth_drop drop_of(fth_builder *b, double p) {
    /* Every place takes its number, dropped or not: a rate set to 0 changes no other mask. */
    uint32_t site = b->sites++;
    return (fth_drop){.p = b->dropout ? (float)p : 0.0f, .site = site};
}

/* ---- parameters ---- */

static void full_name(const fth_builder *b, const char *suffix, char *name, size_t size) {
    const char *stack = b->stack == FTH_ENCODER ? "encoder." : "decoder.";
    if (b->stack == FTH_NO_STACK)
        snprintf(name, size, "%s", suffix);
    else if (b->layer < 0)
        snprintf(name, size, "%s%s", stack, suffix);
    else
        snprintf(name, size, "%slayers.%d.%s", stack, b->layer, suffix);
}

/* kernel: what the last of three dimensions is in files; 0: there are two. adjacent: right behind
 * the parameter that was declared last. */
static fth_val params_at(fth_builder *b, const fth_role *roles, int count, int64_t rows,
                         int64_t width, int32_t kernel, bool adjacent, fth_init init,
                         const char *const *suffixes) {
    if (broken(b)) return 0;
    int64_t offset = 0;
    for (int i = 0; i < count; i++) {
        char name[128];
        full_name(b, suffixes[i], name, sizeof name);
        fth_param wanted = {.name = name,
                            .role = roles[i],
                            .stack = b->stack,
                            .sub = b->sub,
                            .layer = b->layer,
                            .rank = rows ? 2 : 1,
                            .kernel = kernel,
                            .shape = {rows ? rows : width, rows ? width : 1},
                            .adjacent = adjacent || i > 0,
                            .init = init};
        int32_t index = 0;
        fth_err err = fth_params_declare(b->params, &wanted, &index);
        if (err != FTH_OK) {
            set_error(b, err);
            return 0;
        }
        if (i == 0) offset = b->params->param[index].offset;
    }
    fth_value v = {.storage = FTH_IN_PARAM,
                   .class = fth_role_is_matrix(roles[0]) ? FTH_REAL : FTH_FULL,
                   .extent = FTH_ROWS_FIXED,
                   .rows = rows ? rows * count : 1,
                   .width = (int32_t)(rows ? width : width * count),
                   .offset = offset,
                   .producer = -1};
    return fth_graph_value(b->graph, v);
}

fth_val fth_params_at(fth_builder *b, const fth_role *roles, int count, int64_t rows, int64_t width,
                      fth_init init, const char *const *suffixes) {
    return params_at(b, roles, count, rows, width, 0, false, init, suffixes);
}

fth_val fth_kernel_at(fth_builder *b, fth_role role, int64_t rows, int64_t channels, fth_init init,
                      const char *suffix) {
    return params_at(b, &role, 1, rows, channels * FTH_KERNEL, FTH_KERNEL, false, init, &suffix);
}

fth_val fth_param_behind(fth_builder *b, fth_role role, int64_t rows, int64_t width, fth_init init,
                         const char *suffix) {
    return params_at(b, &role, 1, rows, width, 0, true, init, &suffix);
}

fth_val fth_param_at(fth_builder *b, fth_role role, int64_t rows, int64_t width, fth_init init,
                     const char *suffix) {
    return fth_params_at(b, &role, 1, rows, width, init, &suffix);
}

fth_val fth_param_part(fth_builder *b, fth_val param, int64_t first, int64_t rows, int64_t width) {
    if (broken(b)) return 0;
    fth_value v = *value_of(b, param);
    v.offset += first;
    v.rows = rows;
    v.width = (int32_t)width;
    return fth_graph_value(b->graph, v);
}

fth_norm_params fth_norm_at(fth_builder *b, int64_t width, const char *suffix) {
    const fth_init one = {.rule = FTH_INIT_CONST, .value = 1}, zero = {.rule = FTH_INIT_CONST};
    char name[96];
    snprintf(name, sizeof name, "%s.weight", suffix);
    fth_val gain = fth_param_at(b, FTH_ROLE_GAIN, 0, width, one, name);
    snprintf(name, sizeof name, "%s.bias", suffix);
    fth_val bias = fth_param_at(b, FTH_ROLE_NORM_BIAS, 0, width, zero, name);
    double eps = b->stack == FTH_ENCODER ? b->config->encoder_layer_norm_eps
                                         : b->config->decoder_layer_norm_eps;
    return (fth_norm_params){.gain = gain, .bias = bias, .eps = eps};
}

/* ---- operations ---- */

fth_val fth_embed(fth_builder *b, fth_side side, fth_val table, fth_val positions,
                  bool with_dropout) {
    fth_drop word = drop_of(b, b->config->word_dropout);
    fth_drop drop = with_dropout ? drop_of(b, b->config->dropout) : (fth_drop){0};
    fth_op *op = add_op(b, FTH_KIND_embed, EMBED_N_IN, EMBED_N_OUT);
    if (!op) return 0;
    op->u.embed.side = side;
    op->u.embed.scale = (float)sqrt((double)b->config->d_model);
    op->u.embed.drop = drop;
    op->u.embed.word = word;
    op->u.embed.keep_first = side == FTH_TGT; /* doc/mathematics.md#dropout */
    op->in[EMBED_TABLE] = table;
    op->in[EMBED_POS] = positions;
    fth_value y = {.storage = FTH_IN_ARENA,
                   .class = FTH_REAL,
                   .extent = side == FTH_SRC ? FTH_ROWS_SRC : FTH_ROWS_TGT,
                   .width = b->config->d_model,
                   .producer = -1};
    fth_val v = fth_graph_value(b->graph, y);
    fth_graph_output(b->graph, op, EMBED_Y, v);
    return v;
}

/* A new value of the arena with rows of the batch. */
static fth_val rows_of_batch(fth_builder *b, fth_extent extent, int64_t width) {
    return fth_graph_value(b->graph, (fth_value){.storage = FTH_IN_ARENA,
                                                 .class = FTH_REAL,
                                                 .extent = extent,
                                                 .width = (int32_t)width,
                                                 .producer = -1});
}

fth_val fth_numbers_in(fth_builder *b, int64_t width) {
    fth_op *op = add_op(b, FTH_KIND_numbers, NUMBERS_N_IN, NUMBERS_N_OUT);
    if (!op) return 0;
    fth_val x = rows_of_batch(b, FTH_ROWS_INPUT, width);
    fth_graph_output(b->graph, op, NUMBERS_X, x);
    return broken(b) ? 0 : x;
}

fth_val fth_patches(fth_builder *b, fth_val x, fth_val positions, fth_val cls, fth_val mask,
                    bool with_dropout) {
    fth_drop drop = with_dropout ? drop_of(b, b->config->dropout) : (fth_drop){0};
    fth_op *op = add_op(b, FTH_KIND_patches, PATCHES_N_IN, PATCHES_N_OUT);
    if (!op) return 0;
    op->u.patches.drop = drop;
    op->u.patches.cls = cls != 0;
    op->in[PATCHES_X] = x;
    op->in[PATCHES_POS] = positions;
    op->in[PATCHES_CLS] = cls;
    op->in[PATCHES_MASK] = mask;
    const bool target = value_of(b, x)->extent == FTH_ROWS_TGT;
    op->u.patches.side = target ? FTH_TGT : FTH_SRC;
    fth_val y = rows_of_batch(b, target ? FTH_ROWS_TGT : FTH_ROWS_SRC, b->config->d_model);
    fth_graph_output(b->graph, op, PATCHES_Y, y);
    return broken(b) ? 0 : y;
}

fth_val fth_unfold(fth_builder *b, fth_val x, int per_row, int first) {
    fth_op *op = add_op(b, FTH_KIND_unfold, UNFOLD_N_IN, UNFOLD_N_OUT);
    if (!op) return 0;
    op->u.unfold.per_row = per_row;
    op->u.unfold.first = first;
    op->in[UNFOLD_X] = x;
    fth_val y = rows_of_batch(b, FTH_ROWS_SRC, value_of(b, x)->width / per_row * FTH_KERNEL);
    fth_graph_output(b->graph, op, UNFOLD_Y, y);
    return broken(b) ? 0 : y;
}

fth_val fth_glu(fth_builder *b, fth_val x, fth_val x1) {
    fth_op *op = add_op(b, FTH_KIND_glu, GLU_N_IN, GLU_N_OUT);
    if (!op) return 0;
    op->in[GLU_X] = x;
    op->in[GLU_X1] = x1;
    fth_val y = rows_of_batch(b, FTH_ROWS_SRC, value_of(b, x)->width / (x1 ? 1 : 2));
    fth_graph_output(b->graph, op, GLU_Y, y);
    return broken(b) ? 0 : y;
}

fth_val fth_linear(fth_builder *b, fth_val x, fth_val weight, fth_val bias, fth_act act) {
    fth_op *op = add_op(b, FTH_KIND_linear, LINEAR_N_IN, LINEAR_N_OUT);
    if (!op) return 0;
    int64_t n = value_of(b, weight)->rows;
    op->u.linear.act = act;
    op->in[LINEAR_X] = x;
    op->in[LINEAR_W] = weight;
    op->in[LINEAR_B] = bias;
    fth_val y = rows_like(b, x, n, FTH_REAL);
    fth_graph_output(b->graph, op, LINEAR_Y, y);
    if (act == FTH_ACT_GELU && b->backward)
        fth_graph_output(b->graph, op, LINEAR_PRE, rows_like(b, x, n, FTH_REAL));
    return broken(b) ? 0 : y;
}

fth_val fth_columns(fth_builder *b, fth_val x, int column, int width) {
    return broken(b) ? 0 : fth_graph_columns(b->graph, x, column, width);
}

static fth_extent pairs_of(const fth_attention_spec *spec) {
    if (spec->q_side != spec->k_side) return FTH_ROWS_CROSS_PAIRS;
    return spec->q_side == FTH_SRC ? FTH_ROWS_SRC_PAIRS : FTH_ROWS_TGT_PAIRS;
}

static fth_val cached_attention(fth_builder *b, fth_op *op, const fth_val qkv[3],
                                const fth_attention_spec *spec, fth_val scores) {
    memcpy(op->in, qkv, sizeof(fth_val) * 3);
    op->in[ATT_CACHED_PREV] = spec->previous;
    op->in[ATT_CACHED_KCACHE] = spec->key_cache;
    op->in[ATT_CACHED_VCACHE] = spec->value_cache;
    fth_val o = rows_like(b, qkv[0], value_of(b, qkv[0])->width, FTH_REAL);
    fth_graph_output(b->graph, op, ATT_CACHED_O, o);
    if (scores) fth_graph_output(b->graph, op, ATT_CACHED_SCORES, scores);
    return o;
}

static fth_val full_attention(fth_builder *b, fth_op *op, const fth_val qkv[3],
                              const fth_attention_spec *spec, fth_val scores) {
    memcpy(op->in, qkv, sizeof(fth_val) * 3);
    op->in[ATT_PREV] = spec->previous;
    fth_val o = rows_like(b, qkv[0], value_of(b, qkv[0])->width, FTH_REAL);
    fth_graph_output(b->graph, op, ATT_O, o);
    if (b->backward)
        fth_graph_output(b->graph, op, ATT_LSE, rows_like(b, qkv[0], b->config->heads, FTH_FULL));
    if (scores) fth_graph_output(b->graph, op, ATT_SCORES, scores);
    return o;
}

fth_val fth_attention(fth_builder *b, fth_val q, fth_val k, fth_val v,
                      const fth_attention_spec *spec, fth_val *scores) {
    bool cached = spec->key_cache != 0;
    fth_drop drop = drop_of(b, b->config->attention_dropout);
    fth_val stored = 0;
    if (spec->carry && !broken(b))
        stored = fth_graph_value(b->graph, (fth_value){.storage = FTH_IN_ARENA,
                                                       .class = FTH_FULL,
                                                       .extent = pairs_of(spec),
                                                       .width = b->config->heads,
                                                       .producer = -1});
    if (scores) *scores = stored;
    fth_op *op = cached ? add_op(b, FTH_KIND_attention_cached, ATT_CACHED_N_IN, ATT_CACHED_N_OUT)
                        : add_op(b, FTH_KIND_attention, ATT_N_IN, ATT_N_OUT);
    if (!op) return 0;
    op->u.attention.q_side = spec->q_side;
    op->u.attention.k_side = spec->k_side;
    op->u.attention.heads = b->config->heads;
    op->u.attention.causal = spec->causal;
    op->u.attention.scale = (float)(1 / sqrt((double)b->config->d_model / b->config->heads));
    op->u.attention.divisor = spec->divisor > 0 ? (float)spec->divisor : 1.0f;
    op->u.attention.drop = drop;
    const fth_val qkv[3] = {q, k, v};
    fth_val o = cached ? cached_attention(b, op, qkv, spec, stored)
                       : full_attention(b, op, qkv, spec, stored);
    return broken(b) ? 0 : o;
}

/* One value in, one of the same shape out. */
static fth_op *unary(fth_builder *b, fth_kind kind, int n_in, fth_val x, fth_val *y) {
    *y = 0;
    fth_op *op = add_op(b, kind, n_in, 1);
    if (!op) return NULL;
    op->in[0] = x;
    *y = fth_graph_like(b->graph, x);
    fth_graph_output(b->graph, op, 0, *y);
    return broken(b) ? NULL : op;
}

fth_val fth_activate(fth_builder *b, fth_val x, fth_act act) {
    fth_val y;
    fth_op *op = unary(b, FTH_KIND_activation, ACT_N_IN, x, &y);
    if (op) op->u.linear.act = act;
    return y;
}

fth_val fth_dropout(fth_builder *b, fth_val x, double p) {
    fth_drop drop = drop_of(b, p);
    if (drop.p <= 0) return x;
    fth_val y;
    fth_op *op = unary(b, FTH_KIND_dropout, DROP_N_IN, x, &y);
    if (op) op->u.dropout.drop = drop;
    return y;
}

fth_val fth_scale_shift(fth_builder *b, fth_val x, fth_val scale, fth_val shift) {
    fth_val y;
    fth_op *op = unary(b, FTH_KIND_scale_shift, SHIFT_N_IN, x, &y);
    if (!op) return 0;
    op->in[SHIFT_S] = scale;
    op->in[SHIFT_C] = shift;
    op->u.scale_shift.factor = 1;
    return y;
}

fth_val fth_scaled(fth_builder *b, fth_val x, double factor) {
    fth_val y;
    fth_op *op = unary(b, FTH_KIND_scale_shift, SHIFT_N_IN, x, &y);
    if (op) op->u.scale_shift.factor = (float)factor;
    return y;
}

fth_val fth_head_scale(fth_builder *b, fth_val x, fth_val gamma, int heads) {
    fth_val y;
    fth_op *op = unary(b, FTH_KIND_head_scale, HEADS_N_IN, x, &y);
    if (!op) return 0;
    op->in[HEADS_GAMMA] = gamma;
    op->u.head_scale.heads = heads;
    return y;
}

fth_val fth_mix(fth_builder *b, fth_val weights, const fth_val *x, int n) {
    fth_op *op = add_op(b, FTH_KIND_mix, n + 1, 1);
    if (!op) return 0;
    op->in[MIX_W] = weights;
    memcpy(op->in + MIX_X0, x, sizeof *x * (size_t)n);
    fth_val y = fth_graph_like(b->graph, x[0]);
    fth_graph_output(b->graph, op, MIX_Y, y);
    return broken(b) ? 0 : y;
}

/* ---- join and norm ---- */

fth_coef fth_const(double value) {
    return (fth_coef){.kind = FTH_COEF_CONST, .value = value};
}

fth_coef fth_slot(int slot) {
    return (fth_coef){.kind = FTH_COEF_STEP, .slot = slot, .value = 1};
}

fth_coef fth_learned(fth_builder *b, fth_val param) {
    bool scalar = broken(b) || value_of(b, param)->width == 1;
    return (fth_coef){
        .kind = scalar ? FTH_COEF_SCALAR : FTH_COEF_VECTOR, .value = 1, .param = param};
}

static fth_val join(fth_builder *b, fth_coef r, fth_val x, fth_coef a, fth_val branch, fth_coef c,
                    fth_val e, fth_drop drop) {
    fth_op *op = add_op(b, FTH_KIND_join, JOIN_N_IN, JOIN_N_OUT);
    if (!op) return 0;
    op->u.join.r = r;
    op->u.join.a = a;
    op->u.join.c = c;
    op->u.join.drop = drop;
    op->in[JOIN_X] = x;
    op->in[JOIN_F] = branch;
    op->in[JOIN_E] = e;
    op->in[JOIN_R] = r.param;
    op->in[JOIN_A] = a.param;
    op->in[JOIN_C] = c.param;
    fth_val z = fth_graph_like(b->graph, x);
    fth_graph_output(b->graph, op, JOIN_Z, z);
    if (drop.p > 0 && b->backward && b->keep_bits) {
        const int64_t bytes = (value_of(b, x)->width + 7) / 8;
        fth_graph_output(b->graph, op, JOIN_KEPT, rows_like(b, x, bytes, FTH_BITS));
    }
    return broken(b) ? 0 : z;
}

fth_val fth_join3(fth_builder *b, fth_coef r, fth_val x, fth_coef a, fth_val branch, fth_coef c,
                  fth_val e) {
    return join(b, r, x, a, branch, c, e, drop_of(b, b->config->dropout));
}

fth_val fth_join(fth_builder *b, fth_coef r, fth_val x, fth_coef a, fth_val branch) {
    return fth_join3(b, r, x, a, branch, fth_const(0), 0);
}

fth_val fth_add(fth_builder *b, fth_coef r, fth_val x, fth_val y) {
    return join(b, r, x, fth_const(1), y, fth_const(0), 0, (fth_drop){0});
}

fth_val fth_norm(fth_builder *b, fth_val x, fth_norm_params norm) {
    if (broken(b)) return 0;
    int32_t made_by = value_of(b, x)->producer;
    fth_op *op;
    if (made_by >= 0 && b->graph->op[made_by].kind == FTH_KIND_join) {
        op = &b->graph->op[made_by]; /* the sum and its norm are one pass over memory */
        op->kind = FTH_KIND_join_norm;
    } else {
        op = add_op(b, FTH_KIND_norm, JOIN_N_IN, JOIN_N_OUT);
        if (!op) return 0;
        op->in[JOIN_X] = x;
    }
    op->u.join.eps = norm.eps;
    op->in[JOIN_GAIN] = norm.gain;
    op->in[JOIN_BIAS] = norm.bias;
    fth_val y = fth_graph_like(b->graph, x);
    fth_graph_output(b->graph, op, JOIN_Y, y);
    fth_graph_output(b->graph, op, JOIN_STATS, rows_like(b, x, 2, FTH_FULL));
    return broken(b) ? 0 : y;
}

/* ---- rows ---- */

fth_val fth_pick_rows(fth_builder *b, fth_val x, fth_pick what) {
    fth_op *op = add_op(b, FTH_KIND_pick, PICK_N_IN, PICK_N_OUT);
    if (!op) return 0;
    op->u.pick.what = what;
    op->in[PICK_X] = x;
    fth_val y = rows_of_batch(b, what == FTH_PICK_FIRST ? FTH_ROWS_SENTENCES : FTH_ROWS_PICKED,
                              value_of(b, x)->width);
    fth_graph_output(b->graph, op, PICK_Y, y);
    return broken(b) ? 0 : y;
}

fth_val fth_mean_rows(fth_builder *b, fth_val x) {
    fth_op *op = add_op(b, FTH_KIND_mean, MEAN_N_IN, MEAN_N_OUT);
    if (!op) return 0;
    op->in[MEAN_X] = x;
    fth_val y = rows_of_batch(b, FTH_ROWS_SENTENCES, value_of(b, x)->width);
    fth_graph_output(b->graph, op, MEAN_Y, y);
    return broken(b) ? 0 : y;
}

/* ---- loss, choice, constants ---- */

static fth_val loss_sums(fth_builder *b) {
    return fth_graph_value(b->graph, (fth_value){.storage = FTH_IN_ARENA,
                                                 .class = FTH_FULL,
                                                 .extent = FTH_ROWS_FIXED,
                                                 .rows = 1,
                                                 .width = 2,
                                                 .keep = true,
                                                 .producer = -1});
}

fth_loss fth_square(fth_builder *b, fth_val x) {
    fth_loss loss = {0};
    fth_op *op = add_op(b, FTH_KIND_square, SQUARE_N_IN, SQUARE_N_OUT);
    if (!op) return loss;
    op->in[SQUARE_X] = x;
    loss.sums = loss_sums(b);
    fth_graph_output(b->graph, op, SQUARE_LOSS, loss.sums);
    return loss;
}

fth_loss fth_xent(fth_builder *b, fth_val x, fth_val weight, fth_val bias, double smoothing,
                  bool per_row) {
    fth_loss loss = {0};
    fth_op *op = add_op(b, FTH_KIND_xent, XENT_N_IN, XENT_N_OUT);
    if (!op) return loss;
    op->u.xent.smoothing = smoothing;
    op->in[XENT_X] = x;
    op->in[XENT_W] = weight;
    op->in[XENT_B] = bias;
    loss.sums = loss_sums(b);
    fth_graph_output(b->graph, op, XENT_LOSS, loss.sums);
    if (per_row) {
        loss.token_nll = rows_like(b, x, 1, FTH_FULL);
        fth_graph_output(b->graph, op, XENT_NLL, loss.token_nll);
        fth_keep(b, loss.token_nll);
    }
    return loss;
}

fth_loss fth_xent_cut(fth_builder *b, fth_val x, fth_val weight, fth_cut cut, fth_loss before,
                      bool per_row) {
    fth_loss loss = fth_xent(b, x, weight, 0, 0, per_row);
    if (broken(b)) return loss;
    fth_op *op = &b->graph->op[value_of(b, loss.sums)->producer];
    op->u.xent.cut = cut;
    op->in[XENT_BEFORE] = before.sums;
    op->in[XENT_NLL_BEFORE] = before.token_nll;
    return loss;
}

fth_val fth_band(fth_builder *b, fth_val table, int64_t first) {
    fth_op *op = add_op(b, FTH_KIND_band, BAND_N_IN, BAND_N_OUT);
    if (!op) return 0;
    op->u.band.first = (int32_t)first;
    op->in[BAND_TABLE] = table;
    fth_val y = rows_of_batch(b, FTH_ROWS_TGT, value_of(b, table)->width);
    fth_graph_output(b->graph, op, BAND_Y, y);
    return broken(b) ? 0 : y;
}

fth_val fth_linear_turned(fth_builder *b, fth_val x, fth_val weight) {
    fth_op *op = add_op(b, FTH_KIND_linear_dx, LINEAR_DX_N_IN, LINEAR_DX_N_OUT);
    if (!op) return 0;
    op->u.linear.act = FTH_ACT_NONE;
    op->in[LINEAR_DX_DY] = x;
    op->in[LINEAR_DX_W] = weight;
    fth_val y = rows_like(b, x, value_of(b, weight)->width, FTH_REAL);
    fth_graph_output(b->graph, op, LINEAR_DX_DX, y);
    return broken(b) ? 0 : y;
}

fth_val fth_log_words(fth_builder *b, const fth_val *products) {
    fth_op *op = add_op(b, FTH_KIND_log_words, LOG_WORDS_N_IN, LOG_WORDS_N_OUT);
    if (!op) return 0;
    int64_t words = -FTH_TAILS;
    for (int k = 0; k < LOG_WORDS_N_IN; k++) {
        op->in[k] = products[k];
        words += value_of(b, products[k])->width;
    }
    fth_val y = rows_like(b, products[0], words, FTH_REAL);
    fth_graph_output(b->graph, op, LOG_WORDS_Y, y);
    return broken(b) ? 0 : y;
}

fth_val fth_top(fth_builder *b, fth_val logits, int k) {
    fth_op *op = add_op(b, FTH_KIND_top, TOP_N_IN, TOP_N_OUT);
    if (!op) return 0;
    if (k < 1 || k > FTH_TOP_MOST || value_of(b, logits)->width > FTH_TOP_VOCAB) {
        set_error(b, fth_fail(FTH_FAILED, "the %d best of %d words: must be 1 to %d of at most %d",
                              k, value_of(b, logits)->width, FTH_TOP_MOST, FTH_TOP_VOCAB));
        return 0;
    }
    op->in[TOP_X] = logits;
    fth_val y = rows_like(b, logits, TOP_BEST + 2 * k, FTH_FULL);
    fth_graph_output(b->graph, op, TOP_Y, y);
    fth_keep(b, y);
    return broken(b) ? 0 : y;
}

fth_val fth_constant(fth_builder *b, int64_t rows, int64_t width, fth_numbers numbers) {
    if (broken(b)) return 0;
    for (fth_val v = 1; v < b->graph->n_values; v++) { /* the same numbers are kept once */
        const fth_value *x = &b->graph->value[v];
        if (x->storage == FTH_IN_CONST && x->constant == numbers && x->rows == rows &&
            x->width == width)
            return v;
    }
    return fth_graph_value(b->graph, (fth_value){.storage = FTH_IN_CONST,
                                                 .class = FTH_FULL,
                                                 .extent = FTH_ROWS_FIXED,
                                                 .rows = rows,
                                                 .width = (int32_t)width,
                                                 .constant = numbers,
                                                 .producer = -1});
}

fth_val fth_state(fth_builder *b, int64_t rows, int64_t width) {
    if (broken(b)) return 0;
    return fth_graph_value(b->graph, (fth_value){.storage = FTH_IN_STATE,
                                                 .class = FTH_REAL,
                                                 .extent = FTH_ROWS_FIXED,
                                                 .rows = rows,
                                                 .width = (int32_t)width,
                                                 .producer = -1});
}

void fth_keep(fth_builder *b, fth_val v) {
    if (!broken(b)) b->graph->value[v].keep = true;
}

/* ---- gradients to be shown ---- */

void fth_want_gradient(fth_builder *b, fth_val v) {
    fth_grad_requests *w = b->requests;
    if (broken(b) || !v) return;
    for (int32_t k = w->n - 1; k >= 0; k--)
        if (w->item[k].value == v) return;
    if (w->n == w->capacity) {
        int32_t capacity = w->capacity ? w->capacity * 2 : 64;
        fth_grad_request *more = realloc(w->item, sizeof *more * (size_t)capacity);
        if (!more) {
            set_error(b, fth_fail(FTH_NO_MEMORY, "no memory for %d gradients", capacity));
            return;
        }
        w->item = more;
        w->capacity = capacity;
    }
    w->item[w->n++] = (fth_grad_request){.value = v};
}

void fth_grad_requests_fini(fth_grad_requests *w) {
    free(w->item);
    *w = (fth_grad_requests){0};
}
