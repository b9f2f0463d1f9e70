/* autodiff.c: appends the backward operations, from the loss down to the embeddings.
 *
 * grad[v] is the value that holds the gradient of v so far. The first contribution is taken as it
 * is, a later one is added: by the operation itself where it has an addend (linear_dx, norm_bwd,
 * join_norm_bwd, mix_bwd), else by an `add`. Gradients of parameters go to FTH_IN_GRAD, where
 * operations add. */
#include <stdlib.h>

#include "graph/builder.h"
#include "graph/op.h"

typedef struct backward {
    fth_builder *b;
    fth_graph *g;
    fth_val *grad;     /* [n_values of the forward graph] */
    int32_t *asked;    /* [n_values of the forward graph] number in requests, from 1; NULL: none */
    int32_t n_forward; /* operations of the forward */
    bool *trained;     /* [n_values of the forward graph] made of parameters that are not frozen */
    fth_val n_values;  /* and its values */
} backward;

/* A backward operation in the place of its forward operation. */
static fth_op *emit(backward *w, int32_t forward, fth_kind kind, int n_in, int n_out) {
    fth_op *op = fth_graph_op(w->g, kind, n_in, n_out);
    if (!op) return NULL;
    const fth_op *f = &w->g->op[forward];
    op->backward = true;
    op->stack = f->stack;
    op->sub = f->sub;
    op->layer = f->layer;
    op->u = f->u;
    return op;
}

/* Whether a value is a parameter that is frozen, or several that all are. */
static bool is_frozen(const backward *w, fth_val param) {
    const fth_value *v = &w->g->value[param];
    return fth_params_frozen(w->b->params, v->offset, v->offset + v->rows * v->width);
}

/* The gradient's range of a parameter. */
static fth_val param_grad(backward *w, fth_val param) {
    if (!param) return 0;
    fth_value v = w->g->value[param];
    v.storage = FTH_IN_GRAD;
    v.class = FTH_FULL;
    return fth_graph_value(w->g, v);
}

/* Adds the gradient `part` to what v has. */
static void contribute(backward *w, int32_t forward, fth_val v, fth_val part) {
    if (!v || w->g->err != FTH_OK) return;
    fth_val old = w->grad[v];
    if (!old) {
        w->grad[v] = part;
        return;
    }
    fth_op *op = emit(w, forward, FTH_KIND_add, ADD_N_IN, ADD_N_OUT);
    if (!op) return;
    op->in[ADD_A] = old;
    op->in[ADD_B] = part;
    w->grad[v] = fth_graph_like(w->g, v);
    fth_graph_output(w->g, op, ADD_Y, w->grad[v]);
}

static bool is_asked(const backward *w, fth_val v) {
    return w->asked && w->asked[v];
}

/* Shows the complete gradient of v to whoever asked for it. */
static void show(backward *w, fth_val v, fth_val grad) {
    if (!v || !grad || !is_asked(w, v) || w->g->err != FTH_OK) return;
    fth_grad_request *item = &w->b->requests->item[w->asked[v] - 1];
    item->grad = grad;
    if (w->b->requests->made) w->b->requests->made(w->b->requests->context, w->b, item);
}

/* A place for the gradient of v that an operation assigns whole. A view's place is the same columns
 * of its base's gradient: the base is read through views only, each read once. */
static fth_val place_for(backward *w, fth_val v) {
    fth_val base = w->g->value[v].base;
    if (!base) return fth_graph_like(w->g, v);
    if (!w->grad[base]) w->grad[base] = fth_graph_like(w->g, base);
    return fth_graph_columns(w->g, w->grad[base], w->g->value[v].column, w->g->value[v].width);
}

/* Multiplies dy by act' of the operation: inside the product that made dy when nothing else has
 * read it (and nobody wants to see it), else by an operation of its own. */
static fth_val through_activation(backward *w, int32_t i, fth_val dy, fth_act act, fth_val saved) {
    int32_t maker = w->g->value[dy].producer;
    const bool known = act != FTH_ACT_TANH; /* to products */
    fth_op *product = maker >= 0 ? &w->g->op[maker] : NULL;
    if (known && product && product->kind == FTH_KIND_linear_dx &&
        product->u.linear.act == FTH_ACT_NONE && maker == w->g->n_ops - 1 &&
        !is_asked(w, w->g->op[i].out[0])) {
        product->u.linear.act = act;
        product->in[LINEAR_DX_SAVED] = saved;
        return dy;
    }
    fth_op *op = emit(w, i, FTH_KIND_activation_bwd, ACT_BWD_N_IN, ACT_BWD_N_OUT);
    if (!op) return 0;
    op->u.linear.act = act;
    op->in[ACT_BWD_DY] = dy;
    op->in[ACT_BWD_SAVED] = saved;
    fth_val dx = fth_graph_like(w->g, dy);
    fth_graph_output(w->g, op, ACT_BWD_DX, dx);
    return dx;
}

static bool is_trained(const backward *w, fth_val v) {
    const fth_val base = w->g->value[v].base;
    return w->trained[base ? base : v];
}

/* What comes from the batch, or from frozen parameters alone, needs no gradient. */
static bool is_input(const backward *w, fth_val x) {
    const int32_t maker = w->g->value[x].producer;
    return !is_trained(w, x) || (maker >= 0 && w->g->op[maker].kind == FTH_KIND_numbers);
}

/* dW and db of a linear map; nothing where both are frozen. */
static void weights_backward(backward *w, int32_t i, fth_val dy) {
    const fth_op f = w->g->op[i];
    if (is_frozen(w, f.in[LINEAR_W]) && (!f.in[LINEAR_B] || is_frozen(w, f.in[LINEAR_B]))) return;
    fth_op *dw = emit(w, i, FTH_KIND_linear_dw, LINEAR_DW_N_IN, LINEAR_DW_N_OUT);
    if (!dw) return;
    dw->in[LINEAR_DW_DY] = dy;
    dw->in[LINEAR_DW_X] = f.in[LINEAR_X];
    dw->out[LINEAR_DW_DW] = param_grad(w, f.in[LINEAR_W]);
    dw->out[LINEAR_DW_DB] = param_grad(w, f.in[LINEAR_B]);
}

static void linear_backward(backward *w, int32_t i) {
    fth_op f = w->g->op[i];
    fth_val dy = w->grad[f.out[LINEAR_Y]];
    if (!dy) return;
    if (f.u.linear.act != FTH_ACT_NONE) {
        fth_val saved = f.u.linear.act == FTH_ACT_GELU ? f.out[LINEAR_PRE] : f.out[LINEAR_Y];
        dy = through_activation(w, i, dy, f.u.linear.act, saved);
    }
    fth_val x = f.in[LINEAR_X];
    weights_backward(w, i, dy);
    if (is_input(w, x)) return;
    fth_op *op = emit(w, i, FTH_KIND_linear_dx, LINEAR_DX_N_IN, LINEAR_DX_N_OUT);
    if (!op) return;
    op->u.linear.act = FTH_ACT_NONE;
    op->in[LINEAR_DX_DY] = dy;
    op->in[LINEAR_DX_W] = f.in[LINEAR_W];
    op->in[LINEAR_DX_ADDEND] = w->grad[x];
    w->grad[x] = fth_graph_like(w->g, x);
    fth_graph_output(w->g, op, LINEAR_DX_DX, w->grad[x]);
}

/* Gives v a gradient that an operation has written into `place`. */
static void placed(backward *w, int32_t forward, fth_val v, fth_val place) {
    if (!w->g->value[v].base) contribute(w, forward, v, place);
}

static void attention_backward(backward *w, int32_t i) {
    fth_op f = w->g->op[i];
    fth_val d_o = w->grad[f.out[ATT_O]], scores = f.out[ATT_SCORES];
    if (!d_o) return;
    fth_val places[3];
    for (int k = 0; k < 3; k++) places[k] = place_for(w, f.in[k]);
    fth_op *op = emit(w, i, FTH_KIND_attention_bwd, ATT_BWD_N_IN, ATT_BWD_N_OUT);
    if (!op) return;
    for (int k = 0; k < 3; k++) op->in[k] = f.in[k];
    op->in[ATT_BWD_O] = f.out[ATT_O];
    op->in[ATT_BWD_LSE] = f.out[ATT_LSE];
    op->in[ATT_BWD_DO] = d_o;
    op->in[ATT_BWD_SCORES] = scores;
    op->in[ATT_BWD_DSCORES] = scores ? w->grad[scores] : 0;
    for (int k = 0; k < 3; k++) fth_graph_output(w->g, op, ATT_BWD_DQ + k, places[k]);
    if (f.in[ATT_PREV]) {
        w->grad[f.in[ATT_PREV]] = fth_graph_like(w->g, f.in[ATT_PREV]);
        fth_graph_output(w->g, op, ATT_BWD_DPREV, w->grad[f.in[ATT_PREV]]);
    }
    for (int k = 0; k < 3; k++) placed(w, i, f.in[k], places[k]);
}

static bool is_const(fth_coef c, double value) {
    return c.kind == FTH_COEF_CONST && c.value == value;
}

/* The operands that a learned coefficient of a join needs. */
static void learned_operands(backward *w, fth_op *op, const fth_op *f) {
    static const int from[3] = {JOIN_X, JOIN_F, JOIN_E};
    for (int k = 0; k < 3; k++) {
        fth_val param = f->in[JOIN_R + k];
        if (!param) continue;
        op->in[JOIN_BWD_X + k] = f->in[from[k]];
        op->in[JOIN_BWD_R + k] = param;
        op->out[JOIN_BWD_DR + k] = param_grad(w, param);
    }
}

/* The gradient of z in z = r x + a D(f) + c e, y = LN(z): it is what x or the branch gets where
 * that has the factor 1, else it is computed a second time, beside the operation that trains. */
static fth_val sum_gradient(backward *w, int32_t i, fth_val dx, fth_val df) {
    fth_op f = w->g->op[i];
    if (is_const(f.u.join.r, 1)) return dx;
    if (is_const(f.u.join.a, 1) && f.u.join.drop.p <= 0) return df;
    fth_op *op = emit(w, i, FTH_KIND_norm_bwd, JOIN_BWD_N_IN, JOIN_BWD_N_OUT);
    if (!op) return 0;
    op->in[JOIN_BWD_DY] = w->grad[f.out[JOIN_Y]];
    op->in[JOIN_BWD_DZ] = w->grad[f.out[JOIN_Z]];
    op->in[JOIN_BWD_Z] = f.out[JOIN_Z];
    op->in[JOIN_BWD_STATS] = f.out[JOIN_STATS];
    op->in[JOIN_BWD_GAIN] = f.in[JOIN_GAIN];
    fth_val dz = fth_graph_like(w->g, f.out[JOIN_Z]);
    fth_graph_output(w->g, op, JOIN_BWD_DX, dz);
    return dz;
}

/* join and join_norm: dz, then what of it goes to x, to the branch and to e. A term that gets just
 * dz (or just what x gets) shares that value. */
static void join_backward(backward *w, int32_t i) {
    fth_op f = w->g->op[i];
    bool normed = f.kind == FTH_KIND_join_norm;
    fth_val dy = normed ? w->grad[f.out[JOIN_Y]] : 0, dz = w->grad[f.out[JOIN_Z]];
    if (!dy && !dz) return;
    normed = dy != 0;
    fth_coef r = f.u.join.r, a = f.u.join.a, c = f.u.join.c;
    bool plain = r.kind == FTH_COEF_CONST;
    bool x_is_dz = !normed && is_const(r, 1);
    bool f_is_x = plain && is_const(a, r.value) && f.u.join.drop.p <= 0;
    bool e_is_x = f.in[JOIN_E] && plain && is_const(c, r.value);
    bool learned = f.in[JOIN_R] || f.in[JOIN_A] || f.in[JOIN_C];
    fth_val dx = dz, df = dz, de = dz;
    if (!x_is_dz || !f_is_x || (f.in[JOIN_E] && !e_is_x) || learned) {
        fth_op *op = emit(w, i, normed ? FTH_KIND_join_norm_bwd : FTH_KIND_join_bwd, JOIN_BWD_N_IN,
                          JOIN_BWD_N_OUT);
        if (!op) return;
        op->in[JOIN_BWD_DY] = dy;
        op->in[JOIN_BWD_DZ] = dz;
        op->in[JOIN_BWD_KEPT] = f.out[JOIN_KEPT];
        if (normed) {
            op->in[JOIN_BWD_Z] = f.out[JOIN_Z];
            op->in[JOIN_BWD_STATS] = f.out[JOIN_STATS];
            op->in[JOIN_BWD_GAIN] = f.in[JOIN_GAIN];
            op->out[JOIN_BWD_DGAIN] = param_grad(w, f.in[JOIN_GAIN]);
            op->out[JOIN_BWD_DBIAS] = param_grad(w, f.in[JOIN_BIAS]);
        }
        learned_operands(w, op, &f);
        if (!x_is_dz)
            fth_graph_output(w->g, op, JOIN_BWD_DX, dx = fth_graph_like(w->g, f.in[JOIN_X]));
        df = de = dx;
        if (!f_is_x)
            fth_graph_output(w->g, op, JOIN_BWD_DF, df = fth_graph_like(w->g, f.in[JOIN_F]));
        if (f.in[JOIN_E] && !e_is_x)
            fth_graph_output(w->g, op, JOIN_BWD_DE, de = fth_graph_like(w->g, f.in[JOIN_E]));
    }
    if (normed && is_asked(w, f.out[JOIN_Z])) show(w, f.out[JOIN_Z], sum_gradient(w, i, dx, df));
    contribute(w, i, f.in[JOIN_X], dx);
    contribute(w, i, f.in[JOIN_F], df);
    contribute(w, i, f.in[JOIN_E], de);
}

static void norm_backward(backward *w, int32_t i) {
    fth_op f = w->g->op[i];
    fth_val dy = w->grad[f.out[JOIN_Y]], x = f.in[JOIN_X];
    if (!dy) return;
    fth_op *op = emit(w, i, FTH_KIND_norm_bwd, JOIN_BWD_N_IN, JOIN_BWD_N_OUT);
    if (!op) return;
    op->in[JOIN_BWD_DY] = dy;
    op->in[JOIN_BWD_DZ] = w->grad[x];
    op->in[JOIN_BWD_Z] = x;
    op->in[JOIN_BWD_STATS] = f.out[JOIN_STATS];
    op->in[JOIN_BWD_GAIN] = f.in[JOIN_GAIN];
    op->out[JOIN_BWD_DGAIN] = param_grad(w, f.in[JOIN_GAIN]);
    op->out[JOIN_BWD_DBIAS] = param_grad(w, f.in[JOIN_BIAS]);
    w->grad[x] = fth_graph_like(w->g, x);
    fth_graph_output(w->g, op, JOIN_BWD_DX, w->grad[x]);
}

static void activation_backward(backward *w, int32_t i) {
    fth_op f = w->g->op[i];
    fth_val dy = w->grad[f.out[ACT_Y]];
    if (!dy) return;
    fth_act act = f.u.linear.act;
    fth_val saved = act == FTH_ACT_GELU ? f.in[ACT_X] : f.out[ACT_Y];
    contribute(w, i, f.in[ACT_X], through_activation(w, i, dy, act, saved));
}

static void dropout_backward(backward *w, int32_t i) {
    fth_op f = w->g->op[i];
    fth_val dy = w->grad[f.out[DROP_Y]];
    if (!dy) return;
    fth_op *op = emit(w, i, FTH_KIND_dropout, DROP_N_IN, DROP_N_OUT);
    if (!op) return;
    op->in[DROP_X] = dy;
    fth_val dx = fth_graph_like(w->g, dy);
    fth_graph_output(w->g, op, DROP_Y, dx);
    contribute(w, i, f.in[DROP_X], dx);
}

static void scale_shift_backward(backward *w, int32_t i) {
    fth_op f = w->g->op[i];
    fth_val dy = w->grad[f.out[SHIFT_Y]];
    if (!dy) return;
    fth_op *op = emit(w, i, FTH_KIND_scale_shift_bwd, SHIFT_BWD_N_IN, SHIFT_BWD_N_OUT);
    if (!op) return;
    op->in[SHIFT_BWD_DY] = dy;
    op->in[SHIFT_BWD_X] = f.in[SHIFT_S] ? f.in[SHIFT_X] : 0;
    op->in[SHIFT_BWD_S] = f.in[SHIFT_S];
    op->in[SHIFT_BWD_C] = f.in[SHIFT_C];
    op->out[SHIFT_BWD_DS] = param_grad(w, f.in[SHIFT_S]);
    op->out[SHIFT_BWD_DC] = param_grad(w, f.in[SHIFT_C]);
    fth_val dx = fth_graph_like(w->g, dy);
    fth_graph_output(w->g, op, SHIFT_BWD_DX, dx);
    contribute(w, i, f.in[SHIFT_X], dx);
}

static void head_scale_backward(backward *w, int32_t i) {
    fth_op f = w->g->op[i];
    fth_val dy = w->grad[f.out[HEADS_Y]];
    if (!dy) return;
    fth_op *op = emit(w, i, FTH_KIND_head_scale_bwd, HEADS_BWD_N_IN, HEADS_BWD_N_OUT);
    if (!op) return;
    op->in[HEADS_BWD_DY] = dy;
    op->in[HEADS_BWD_X] = f.in[HEADS_X];
    op->in[HEADS_BWD_GAMMA] = f.in[HEADS_GAMMA];
    op->out[HEADS_BWD_DGAMMA] = param_grad(w, f.in[HEADS_GAMMA]);
    fth_val dx = fth_graph_like(w->g, dy);
    fth_graph_output(w->g, op, HEADS_BWD_DX, dx);
    contribute(w, i, f.in[HEADS_X], dx);
}

static void mix_backward(backward *w, int32_t i) {
    fth_op f = w->g->op[i];
    fth_val dy = w->grad[f.out[MIX_Y]];
    int n = f.n_in - 1;
    if (!dy) return;
    fth_op *op = emit(w, i, FTH_KIND_mix_bwd, 2 + 2 * n, 1 + n);
    if (!op) return;
    op->in[MIX_BWD_DY] = dy;
    op->in[MIX_BWD_W] = f.in[MIX_W];
    op->out[MIX_BWD_DW] = param_grad(w, f.in[MIX_W]);
    for (int k = 0; k < n; k++) {
        fth_val x = f.in[MIX_X0 + k];
        op->in[MIX_BWD_X0 + k] = x;
        op->in[MIX_BWD_X0 + n + k] = w->grad[x];
        w->grad[x] = fth_graph_like(w->g, x);
        fth_graph_output(w->g, op, MIX_BWD_DX0 + k, w->grad[x]);
    }
}

static void add_backward(backward *w, int32_t i) {
    fth_op f = w->g->op[i];
    fth_val dy = w->grad[f.out[ADD_Y]];
    if (!dy) return;
    contribute(w, i, f.in[ADD_A], dy);
    contribute(w, i, f.in[ADD_B], dy);
}

static void embed_backward(backward *w, int32_t i) {
    fth_op f = w->g->op[i];
    fth_val dy = w->grad[f.out[EMBED_Y]];
    if (!dy) return;
    fth_op *op = emit(w, i, FTH_KIND_embed_bwd, EMBED_BWD_N_IN, EMBED_BWD_N_OUT);
    if (!op) return;
    op->in[EMBED_BWD_DY] = dy;
    op->out[EMBED_BWD_DTABLE] = param_grad(w, f.in[EMBED_TABLE]);
    if (w->g->value[f.in[EMBED_POS]].storage == FTH_IN_PARAM)
        op->out[EMBED_BWD_DPOS] = param_grad(w, f.in[EMBED_POS]);
}

static void patches_backward(backward *w, int32_t i) {
    fth_op f = w->g->op[i];
    fth_val dy = w->grad[f.out[PATCHES_Y]];
    if (!dy) return;
    fth_op *op = emit(w, i, FTH_KIND_patches_bwd, PATCHES_BWD_N_IN, PATCHES_BWD_N_OUT);
    if (!op) return;
    op->in[PATCHES_BWD_DY] = dy;
    if (w->g->value[f.in[PATCHES_POS]].storage == FTH_IN_PARAM)
        op->out[PATCHES_BWD_DPOS] = param_grad(w, f.in[PATCHES_POS]);
    op->out[PATCHES_BWD_DCLS] = param_grad(w, f.in[PATCHES_CLS]);
    op->out[PATCHES_BWD_DMASK] = param_grad(w, f.in[PATCHES_MASK]);
    fth_val dx = fth_graph_like(w->g, f.in[PATCHES_X]);
    fth_graph_output(w->g, op, PATCHES_BWD_DX, dx);
    contribute(w, i, f.in[PATCHES_X], dx);
}

static void band_backward(backward *w, int32_t i) {
    fth_op f = w->g->op[i];
    fth_val dy = w->grad[f.out[BAND_Y]];
    if (!dy) return;
    fth_op *op = emit(w, i, FTH_KIND_band_bwd, BAND_BWD_N_IN, BAND_BWD_N_OUT);
    if (!op) return;
    op->in[BAND_BWD_DY] = dy;
    op->out[BAND_BWD_DTABLE] = param_grad(w, f.in[BAND_TABLE]);
}

/* y = x W, so dx = dy W^T and dW = x^T dy: a linear map's operations the other way round. */
static void turned_backward(backward *w, int32_t i) {
    fth_op f = w->g->op[i];
    fth_val x = f.in[LINEAR_DX_DY], dy = w->grad[f.out[LINEAR_DX_DX]];
    if (!dy) return;
    fth_op *dw = emit(w, i, FTH_KIND_linear_dw, LINEAR_DW_N_IN, LINEAR_DW_N_OUT);
    if (!dw) return;
    dw->in[LINEAR_DW_DY] = x;
    dw->in[LINEAR_DW_X] = dy;
    dw->out[LINEAR_DW_DW] = param_grad(w, f.in[LINEAR_DX_W]);
    fth_op *op = emit(w, i, FTH_KIND_linear, LINEAR_N_IN, LINEAR_N_OUT);
    if (!op) return;
    op->u.linear.act = FTH_ACT_NONE;
    op->in[LINEAR_X] = dy;
    op->in[LINEAR_W] = f.in[LINEAR_DX_W];
    fth_val dx = fth_graph_like(w->g, x);
    fth_graph_output(w->g, op, LINEAR_Y, dx);
    contribute(w, i, x, dx);
}

static void unfold_backward(backward *w, int32_t i) {
    fth_op f = w->g->op[i];
    fth_val dy = w->grad[f.out[UNFOLD_Y]];
    if (!dy || is_input(w, f.in[UNFOLD_X])) return;
    fth_op *op = emit(w, i, FTH_KIND_unfold_bwd, UNFOLD_BWD_N_IN, UNFOLD_BWD_N_OUT);
    if (!op) return;
    op->in[UNFOLD_BWD_DY] = dy;
    fth_val dx = fth_graph_like(w->g, f.in[UNFOLD_X]);
    fth_graph_output(w->g, op, UNFOLD_BWD_DX, dx);
    contribute(w, i, f.in[UNFOLD_X], dx);
}

static void glu_backward(backward *w, int32_t i) {
    fth_op f = w->g->op[i];
    fth_val dy = w->grad[f.out[GLU_Y]];
    if (!dy) return;
    fth_op *op = emit(w, i, FTH_KIND_glu_bwd, GLU_BWD_N_IN, GLU_BWD_N_OUT);
    if (!op) return;
    op->in[GLU_BWD_DY] = dy;
    fth_val dx[2] = {0, 0};
    for (int part = 0; part < 2 && f.in[GLU_X + part]; part++) {
        op->in[GLU_BWD_X + part] = f.in[GLU_X + part];
        dx[part] = fth_graph_like(w->g, f.in[GLU_X + part]);
        fth_graph_output(w->g, op, GLU_BWD_DX + part, dx[part]);
    }
    for (int part = 0; part < 2 && dx[part]; part++) contribute(w, i, f.in[GLU_X + part], dx[part]);
}

/* pick and mean: one value in, one out, the gradient made from the gradient alone. */
static void rows_backward(backward *w, int32_t i, fth_kind kind) {
    fth_op f = w->g->op[i];
    fth_val dy = w->grad[f.out[0]];
    if (!dy) return;
    fth_op *op = emit(w, i, kind, PICK_BWD_N_IN, PICK_BWD_N_OUT);
    if (!op) return;
    op->in[PICK_BWD_DY] = dy;
    fth_val dx = fth_graph_like(w->g, f.in[0]);
    fth_graph_output(w->g, op, PICK_BWD_DX, dx);
    contribute(w, i, f.in[0], dx);
}

/* Losses make their own gradient: no logits need to be kept for it. */
static void square_backward(backward *w, int32_t i) {
    fth_val x = w->g->op[i].in[SQUARE_X], dx = fth_graph_like(w->g, x);
    if (w->g->err != FTH_OK) return;
    fth_graph_output(w->g, &w->g->op[i], SQUARE_DX, dx);
    contribute(w, i, x, dx);
}

static void xent_backward(backward *w, int32_t i) {
    const fth_op f = w->g->op[i];
    fth_val x = f.in[XENT_X], dw = param_grad(w, f.in[XENT_W]), db = param_grad(w, f.in[XENT_B]);
    fth_val dx = fth_graph_like(w->g, x);
    if (w->g->err != FTH_OK) return;
    fth_op *op = &w->g->op[i];
    op->out[XENT_DW] = dw;
    op->out[XENT_DB] = db;
    fth_graph_output(w->g, op, XENT_DX, dx);
    contribute(w, i, x, dx);
}

static void one_backward(backward *w, int32_t i) {
    switch (w->g->op[i].kind) {
    case FTH_KIND_embed: embed_backward(w, i); break;
    case FTH_KIND_linear: linear_backward(w, i); break;
    case FTH_KIND_attention: attention_backward(w, i); break;
    case FTH_KIND_join:
    case FTH_KIND_join_norm: join_backward(w, i); break;
    case FTH_KIND_norm: norm_backward(w, i); break;
    case FTH_KIND_activation: activation_backward(w, i); break;
    case FTH_KIND_dropout: dropout_backward(w, i); break;
    case FTH_KIND_scale_shift: scale_shift_backward(w, i); break;
    case FTH_KIND_head_scale: head_scale_backward(w, i); break;
    case FTH_KIND_mix: mix_backward(w, i); break;
    case FTH_KIND_add: add_backward(w, i); break;
    case FTH_KIND_numbers: break; /* the batch's own */
    case FTH_KIND_patches: patches_backward(w, i); break;
    case FTH_KIND_unfold: unfold_backward(w, i); break;
    case FTH_KIND_band: band_backward(w, i); break;
    case FTH_KIND_linear_dx: turned_backward(w, i); break;
    case FTH_KIND_log_words: break; /* to be looked at: losses are not made of it */
    case FTH_KIND_glu: glu_backward(w, i); break;
    case FTH_KIND_pick: rows_backward(w, i, FTH_KIND_pick_bwd); break;
    case FTH_KIND_mean: rows_backward(w, i, FTH_KIND_mean_bwd); break;
    case FTH_KIND_square: square_backward(w, i); break;
    case FTH_KIND_xent: xent_backward(w, i); break;
    case FTH_KIND_gauge:
    case FTH_KIND_gauge_positions:
    case FTH_KIND_gauge_entropy: break; /* nothing depends on what they write */
    default:
        w->g->err =
            fth_fail(FTH_FAILED, "operation %s has no backward", fth_kind_name(w->g->op[i].kind));
    }
}

/* Shows the gradients of what operation i has made: everything that reads it comes behind it, so
 * they are complete now. Only the sum inside of a join_norm is read by the operation itself. */
static void show_outputs(backward *w, int32_t i) {
    const fth_op *op = &w->g->op[i];
    bool inside = op->kind == FTH_KIND_join_norm && w->grad[op->out[JOIN_Y]];
    for (int k = 0, n = op->n_out; k < n; k++) {
        fth_val v = w->g->op[i].out[k];
        if (v >= w->n_values) continue; /* bits of dropout, which the backward has asked for */
        if (!(inside && k == JOIN_Z)) show(w, v, v ? w->grad[v] : 0);
    }
}

static bool number_asked(backward *w, const fth_grad_requests *requests, int32_t n_values) {
    w->asked = calloc((size_t)n_values, sizeof *w->asked);
    for (int32_t k = 0; w->asked && k < requests->n; k++) w->asked[requests->item[k].value] = k + 1;
    return w->asked != NULL;
}

/* Which values depend on a parameter that is not frozen: below them all there is nothing to train,
 * and the backward ends. Where gradients are asked for it goes down to the embeddings. */
static bool find_trained(backward *w) {
    w->trained = calloc((size_t)w->n_values, sizeof *w->trained);
    for (int32_t i = 0; w->trained && i < w->n_forward; i++) {
        const fth_op *op = &w->g->op[i];
        bool any = w->asked != NULL;
        for (int k = 0; k < op->n_in && !any; k++) {
            const fth_val v = op->in[k];
            if (v)
                any = w->g->value[v].storage == FTH_IN_PARAM ? !is_frozen(w, v) : is_trained(w, v);
        }
        for (int k = 0; k < op->n_out && any; k++) {
            const fth_val v = op->out[k], base = w->g->value[v].base;
            w->trained[base ? base : v] = true;
        }
    }
    return w->trained != NULL;
}

/* Whether an operation has a part in the gradient. */
static bool takes_part(const backward *w, int32_t i) {
    const fth_op *op = &w->g->op[i];
    for (int k = 0; k < op->n_out; k++)
        if (op->out[k] && is_trained(w, op->out[k])) return true;
    return false;
}

fth_err fth_backward(fth_builder *b) {
    fth_graph *g = b->graph;
    if (g->err != FTH_OK) return g->err;
    backward w = {.b = b, .g = g, .n_forward = g->n_ops, .n_values = g->n_values};
    bool requested = b->requests && b->requests->n > 0;
    w.grad = calloc((size_t)g->n_values, sizeof *w.grad);
    if (!w.grad || (requested && !number_asked(&w, b->requests, g->n_values)) || !find_trained(&w))
        g->err = fth_fail(FTH_NO_MEMORY, "no memory for a backward graph");
    for (int32_t i = w.n_forward - 1; i >= 0 && g->err == FTH_OK; i--) {
        if (takes_part(&w, i)) one_backward(&w, i);
        if (requested)
            show_outputs(&w, i); /* behind it: nothing stands between a product and its join */
    }
    free(w.grad);
    free(w.asked);
    free(w.trained);
    return g->err;
}
