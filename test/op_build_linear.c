/* op_build_linear.c: cases of op_build.h: embeddings, products and what is between two of them. */
#include <math.h>

#include "op_build.h"

void fth_case_embed(fth_trial *t, const fth_variant *v, const fth_shape *s) {
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

void fth_case_linear_backward(fth_trial *t, int32_t of, fth_val dy, fth_val addend, fth_val dx) {
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

void fth_case_linear(fth_trial *t, const fth_variant *v, const fth_shape *s) {
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
    fth_case_linear_backward(t, 0, dy, 0, dx);
    fth_trial_pair(t, x, dx);
    if (t->graph.err != FTH_OK || !(v->flags & FRESH)) return;
    const fth_op *dw = &t->graph.op[t->graph.n_ops - 1];
    t->graph.value[dw->out[LINEAR_DW_DW]].storage = FTH_IN_ARENA;
}

/* act(u) W^T, where the product's backward takes the activation's with it. */
void fth_case_linear_after(fth_trial *t, const fth_variant *v, const fth_shape *s) {
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
    fth_case_linear_backward(t, 1, fth_trial_upstream(t, y), addend, du);
    fth_op *dx = &t->graph.op[2];
    dx->u.linear.act = v->act;
    dx->in[LINEAR_DX_SAVED] = v->act == FTH_ACT_GELU ? u : x;
    fth_trial_pair(t, u, du);
}

void fth_case_activation(fth_trial *t, const fth_variant *v, const fth_shape *s) {
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

fth_val fth_case_product(fth_trial *t, fth_val x, fth_val w, fth_val b) {
    fth_op *op = op_of(t, FTH_KIND_linear, LINEAR_N_IN, LINEAR_N_OUT, -1);
    if (!op) return 0;
    op->u.linear.act = FTH_ACT_NONE;
    op->in[LINEAR_X] = x, op->in[LINEAR_W] = w, op->in[LINEAR_B] = b;
    return fth_trial_output(t, op, LINEAR_Y, x, (int)t->graph.value[w].rows, FTH_REAL);
}

/* A feed-forward network: the slope of ReLU, and the bias before it, belong to the second product's
 * backward where a device can. */
void fth_case_feed_forward(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_val w = matrix(t, s->inner, s->width), second = matrix(t, s->width, s->inner);
    fth_val u = fth_case_product(t, x, w, vector(t, s->inner));
    if (!u) return;
    t->graph.op[0].u.linear.act = FTH_ACT_RELU;
    fth_val y = fth_case_product(t, u, second, 0);
    fth_val du = output_like(t, NULL, 0, u), dx = output_like(t, NULL, 0, x);
    fth_case_linear_backward(t, 1, fth_trial_upstream(t, y), 0, du);
    if (t->graph.err != FTH_OK) return;
    t->graph.op[2].u.linear.act = FTH_ACT_RELU;
    t->graph.op[2].in[LINEAR_DX_SAVED] = u;
    fth_case_linear_backward(t, 0, du, 0, dx);
    fth_trial_pair(t, x, dx);
}
