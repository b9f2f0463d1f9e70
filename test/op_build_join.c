/* op_build_join.c: cases of op_build.h: joins and norms, alone and between products. */
#include "op_build.h"

fth_coef fth_case_coefficient(fth_trial *t, fth_coef_kind kind, double value, int width,
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
    op->u.join.r = fth_case_coefficient(t, (fth_coef_kind)v->r, 1.75, s->width, &op->in[JOIN_R]);
    op->u.join.a = fth_case_coefficient(t, (fth_coef_kind)v->a, 0.5, s->width, &op->in[JOIN_A]);
    op->u.join.c = fth_case_coefficient(t, (fth_coef_kind)v->c, -0.25, s->width, &op->in[JOIN_C]);
    op->u.join.drop = drop_of(v, 5);
    for (int k = 0; k < 3; k++) op->in[JOIN_X + k] = term[k];
    fth_val z = output_like(t, op, JOIN_Z, term[0]), y = 0;
    if (normed) add_norm(t, op, z, &y);
    if (v->flags & BITS) fth_trial_output(t, op, JOIN_KEPT, z, (s->width + 7) / 8, FTH_BITS);
    fth_val dz = !normed || v->flags & ADDEND ? fth_trial_upstream(t, z) : 0;
    join_backward(t, 0, normed ? FTH_KIND_join_norm_bwd : FTH_KIND_join_bwd,
                  normed ? fth_trial_upstream(t, y) : 0, dz);
}

void fth_case_join(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    build_join_of(t, v, s, false);
}

void fth_case_join_norm(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    build_join_of(t, v, s, true);
}

/* x + f without dropout: both get the same gradient, so the backward makes only one. */
void fth_case_join_norm_plain(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    build_join_of(t, v, s, true);
    if (t->graph.err != FTH_OK) return;
    fth_op *f = &t->graph.op[0], *back = &t->graph.op[1];
    f->u.join.r.value = f->u.join.a.value = back->u.join.r.value = back->u.join.a.value = 1;
    for (int k = 0; k < t->n_pairs; k++)
        if (t->pair[k].grad == back->out[JOIN_BWD_DF]) t->pair[k].grad = back->out[JOIN_BWD_DX];
    back->out[JOIN_BWD_DF] = 0;
}

void fth_case_norm(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->width, FTH_REAL), y = 0;
    fth_op *op = op_of(t, FTH_KIND_norm, JOIN_N_IN, JOIN_N_OUT, -1);
    if (!op) return;
    op->in[JOIN_X] = x;
    add_norm(t, op, x, &y);
    fth_val dx = v->flags & ADDEND ? fth_trial_upstream(t, x) : 0;
    join_backward(t, 0, FTH_KIND_norm_bwd, fth_trial_upstream(t, y), dx);
}

/* A join between two products, as in a model: a device may join the first with it, and in the
 * backward the second. */
void fth_case_joined(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    fth_val x = fth_trial_input(t, rows_on(v), s->inner, FTH_REAL);
    fth_val skip = fth_trial_input(t, rows_on(v), s->width, FTH_REAL);
    fth_val first = matrix(t, s->width, s->inner), second = matrix(t, s->inner, s->width);
    fth_val f = fth_case_product(t, x, first, vector(t, s->width));
    fth_op *op = op_of(t, FTH_KIND_join_norm, JOIN_N_IN, JOIN_N_OUT, -1);
    if (!op) return;
    op->u.join.r = fth_case_coefficient(t, (fth_coef_kind)v->r, 1.75, s->width, &op->in[JOIN_R]);
    op->u.join.a = fth_case_coefficient(t, (fth_coef_kind)v->a, 0.5, s->width, &op->in[JOIN_A]);
    op->u.join.drop = drop_of(v, 5);
    op->in[JOIN_X] = skip, op->in[JOIN_F] = f;
    fth_val z = output_like(t, op, JOIN_Z, skip), y = 0;
    add_norm(t, op, z, &y);
    if (v->p > 0) fth_trial_output(t, op, JOIN_KEPT, z, (s->width + 7) / 8, FTH_BITS);
    fth_val dh = fth_trial_upstream(t, fth_case_product(t, y, second, 0));
    fth_val addend = v->flags & ADDEND ? fth_trial_upstream(t, y) : 0;
    fth_val dy = output_like(t, NULL, 0, y);
    fth_case_linear_backward(t, 2, dh, addend, dy);
    if (t->graph.err != FTH_OK) return;
    fth_op *last = &t->graph.op[t->graph.n_ops - 1], dw = *last; /* first, as in a model */
    *last = last[-1], last[-1] = dw;
    join_backward(t, 1, FTH_KIND_join_norm_bwd, dy, 0);
    if (t->graph.err != FTH_OK) return;
    fth_graph_find_producers(&t->graph);
    const fth_val df = t->graph.op[t->graph.n_ops - 1].out[JOIN_BWD_DF];
    t->n_pairs--; /* f is made, not given: the pair that came last */
    fth_val dx = output_like(t, NULL, 0, x);
    fth_case_linear_backward(t, 0, df, 0, dx);
    fth_trial_pair(t, x, dx);
}
