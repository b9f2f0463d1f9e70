/* op_build_rest.c: cases of op_build.h: what is done to single numbers, the loss, updates and
 * telemetry. */
#include <math.h>

#include "op_build.h"

void fth_case_dropout(fth_trial *t, const fth_variant *v, const fth_shape *s) {
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

void fth_case_scale_shift(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_val scale = v->flags & LEARNED ? vector(t, 1) : 0,
            shift = v->flags & SHIFT ? vector(t, 1) : 0;
    fth_op *op = op_of(t, FTH_KIND_scale_shift, SHIFT_N_IN, SHIFT_N_OUT, -1);
    if (!op) return;
    op->in[SHIFT_X] = x;
    op->in[SHIFT_S] = scale;
    op->in[SHIFT_C] = shift;
    op->u.scale_shift.factor = v->number != 0 ? (float)v->number : 1.0f;
    fth_val dy = fth_trial_upstream(t, output_like(t, op, SHIFT_Y, x));
    fth_op *back = op_of(t, FTH_KIND_scale_shift_bwd, SHIFT_BWD_N_IN, SHIFT_BWD_N_OUT, 0);
    if (!back) return;
    back->u.scale_shift = op->u.scale_shift;
    back->in[SHIFT_BWD_DY] = dy;
    back->in[SHIFT_BWD_X] = scale ? x : 0;
    back->in[SHIFT_BWD_S] = scale;
    back->in[SHIFT_BWD_C] = shift;
    fth_trial_pair(t, x, output_like(t, back, SHIFT_BWD_DX, x));
    back->out[SHIFT_BWD_DS] = fth_trial_param_grad(t, scale);
    back->out[SHIFT_BWD_DC] = fth_trial_param_grad(t, shift);
}

void fth_case_head_scale(fth_trial *t, const fth_variant *v, const fth_shape *s) {
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
void fth_case_mix(fth_trial *t, const fth_variant *v, const fth_shape *s) {
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

void fth_case_add(fth_trial *t, const fth_variant *v, const fth_shape *s) {
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

void fth_case_xent(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_val w = matrix(t, s->vocab, s->width);
    fth_op *op = op_of(t, FTH_KIND_xent, XENT_N_IN, XENT_N_OUT, -1);
    if (!op) return;
    op->u.xent.smoothing = v->number;
    op->in[XENT_X] = x;
    op->in[XENT_W] = w;
    if (v->flags & BIAS) op->in[XENT_B] = vector(t, s->vocab);
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
    op->out[XENT_DB] = fth_trial_param_grad(t, op->in[XENT_B]);
}

/* A matrix [inner, width] with its moments; number: which update of Adam, 0: none. */
void fth_case_update(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    static const fth_storage storages[] = {FTH_IN_PARAM, FTH_IN_MOMENT1, FTH_IN_MOMENT2,
                                           FTH_IN_PARAM};
    fth_op *op = op_of(t, FTH_KIND_update, UPDATE_N_IN, UPDATE_N_OUT, -1);
    if (!op) return;
    op->u.update.rate = 3;
    op->u.update.share = 0.5F;
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
void fth_case_top(fth_trial *t, const fth_variant *v, const fth_shape *s) {
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

/* Two sums of a value or two; r and a as in a join. number: fth_gauge_what. */
void fth_case_gauge(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    const fth_gauge_what what = (fth_gauge_what)v->number;
    fth_val x = fth_trial_input(t, rows_on(v), s->width, FTH_REAL), f = 0;
    if (what >= FTH_GAUGE_COSINE) f = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_op *op = op_of(t, FTH_KIND_gauge, GAUGE_N_IN, GAUGE_N_OUT, -1);
    if (!op) return;
    for (int64_t i = 0; what == FTH_GAUGE_NONZERO && i < t->capacity[rows_on(v)] * s->width; i++)
        if (t->host[x][i] < 0.5) t->host[x][i] = 0;
    if (v->flags & (TINY | GREAT)) t->size = v->flags & TINY ? 1e-24 : 1e24;
    for (int64_t i = 0; i < t->capacity[rows_on(v)] * s->width; i++) t->host[x][i] *= t->size;
    op->u.gauge.what = what;
    op->in[GAUGE_X] = x;
    op->in[GAUGE_F] = f;
    op->u.gauge.r = fth_case_coefficient(t, (fth_coef_kind)v->r, 1.75, s->width, &op->in[GAUGE_R]);
    op->u.gauge.a = fth_case_coefficient(t, (fth_coef_kind)v->a, 0.5, s->width, &op->in[GAUGE_A]);
    fth_graph_output(&t->graph, op, GAUGE_SUMS, fth_trial_fixed(t, FTH_IN_ARENA, 1, 2, FTH_FULL));
}

void fth_case_gauge_positions(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_op *op = op_of(t, FTH_KIND_gauge_positions, GAUGE_POSITIONS_N_IN, GAUGE_N_OUT, -1);
    if (!op) return;
    /* Positions that agree in part: else the mean of the cosines is nothing but rounding. */
    for (int64_t i = 0; i < t->capacity[rows_on(v)] * s->width; i++) t->host[x][i] += 0.5;
    op->u.gauge.side = side_of(v);
    op->in[GAUGE_POSITIONS_X] = x;
    fth_graph_output(&t->graph, op, GAUGE_SUMS, fth_trial_fixed(t, FTH_IN_ARENA, 1, 2, FTH_FULL));
}
