/* op_build_heads.c: cases of op_build.h: what fronts and heads do with rows. */
#include "op_build.h"

void fth_case_square(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    (void)s;
    fth_val x = fth_trial_input(t, FTH_ROWS_SENTENCES, 1, FTH_REAL);
    fth_op *op = op_of(t, FTH_KIND_square, SQUARE_N_IN, SQUARE_N_OUT, -1);
    if (!op) return;
    op->in[SQUARE_X] = x;
    fth_val loss = fth_trial_fixed(t, FTH_IN_ARENA, 1, 2, FTH_FULL);
    fth_graph_output(&t->graph, op, SQUARE_LOSS, loss);
    if (v->flags & NO_DX) return;
    fth_val weight = fth_trial_upstream(t, loss); /* of the first sum times loss_scale */
    if (!weight) return;
    t->host[weight][0] = t->step.loss_scale;
    t->host[weight][1] = 0;
    fth_trial_pair(t, x, output_like(t, op, SQUARE_DX, x));
}

/* One value with rows of the source in, one with other rows out. */
static void rows_case(fth_trial *t, fth_kind kind, fth_kind back_kind, fth_extent to, int pick,
                      const fth_shape *s) {
    fth_val x = fth_trial_input(t, FTH_ROWS_SRC, s->width, FTH_REAL);
    fth_op *op = op_of(t, kind, PICK_N_IN, PICK_N_OUT, -1);
    if (!op) return;
    op->u.pick.what = (fth_pick)pick;
    op->in[PICK_X] = x;
    fth_val y = fth_trial_input(t, to, s->width, FTH_REAL);
    fth_graph_output(&t->graph, op, PICK_Y, y);
    fth_val dy = fth_trial_upstream(t, y);
    fth_op *back = op_of(t, back_kind, PICK_BWD_N_IN, PICK_BWD_N_OUT, 0);
    if (!back) return;
    back->in[PICK_BWD_DY] = dy;
    fth_trial_pair(t, x, output_like(t, back, PICK_BWD_DX, x));
}

void fth_case_pick(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    const bool first = (int)v->number == FTH_PICK_FIRST;
    rows_case(t, FTH_KIND_pick, FTH_KIND_pick_bwd, first ? FTH_ROWS_SENTENCES : FTH_ROWS_PICKED,
              (int)v->number, s);
}

void fth_case_mean(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    (void)v;
    rows_case(t, FTH_KIND_mean, FTH_KIND_mean_bwd, FTH_ROWS_SENTENCES, 0, s);
}

/* The batch's numbers through a matrix, then into rows of the source. */
void fth_case_patches(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    enum { NUMBERS = 6 };
    const bool cls = v->flags & CLS;
    if (fth_trial_numbers(t, NUMBERS, cls) != FTH_OK) {
        t->graph.err = FTH_NO_MEMORY;
        return;
    }
    fth_op *in = op_of(t, FTH_KIND_numbers, NUMBERS_N_IN, NUMBERS_N_OUT, -1);
    if (!in) return;
    fth_val numbers = fth_trial_input(t, FTH_ROWS_INPUT, NUMBERS, FTH_REAL);
    fth_graph_output(&t->graph, in, NUMBERS_X, numbers);
    fth_val w = matrix(t, s->width, NUMBERS), x = fth_case_product(t, numbers, w, 0);
    int64_t longest = t->batch.side[FTH_SRC].max_len + 1;
    fth_val pos = fth_trial_fixed(t, v->flags & LEARNED ? FTH_IN_PARAM : FTH_IN_CONST, longest,
                                  s->width, FTH_FULL);
    fth_val first = cls ? vector(t, s->width) : 0,
            mask = v->flags & MASKED ? vector(t, s->width) : 0;
    fth_op *op = op_of(t, FTH_KIND_patches, PATCHES_N_IN, PATCHES_N_OUT, -1);
    if (!op) return;
    op->u.patches.drop = drop_of(v, 11);
    op->u.patches.cls = cls;
    op->in[PATCHES_X] = x;
    op->in[PATCHES_POS] = pos;
    op->in[PATCHES_CLS] = first;
    op->in[PATCHES_MASK] = mask;
    fth_val y = fth_trial_input(t, FTH_ROWS_SRC, s->width, FTH_REAL);
    fth_graph_output(&t->graph, op, PATCHES_Y, y);
    fth_val dy = fth_trial_upstream(t, y);
    fth_op *back = op_of(t, FTH_KIND_patches_bwd, PATCHES_BWD_N_IN, PATCHES_BWD_N_OUT, 2);
    if (!back) return;
    back->in[PATCHES_BWD_DY] = dy;
    if (v->flags & LEARNED) back->out[PATCHES_BWD_DPOS] = fth_trial_param_grad(t, pos);
    back->out[PATCHES_BWD_DCLS] = fth_trial_param_grad(t, first);
    back->out[PATCHES_BWD_DMASK] = fth_trial_param_grad(t, mask);
    fth_val dx = fth_trial_output(t, back, PATCHES_BWD_DX, x, s->width, FTH_REAL);
    fth_op *dw = op_of(t, FTH_KIND_linear_dw, LINEAR_DW_N_IN, LINEAR_DW_N_OUT, 1);
    if (!dw) return;
    dw->in[LINEAR_DW_DY] = dx;
    dw->in[LINEAR_DW_X] = numbers;
    dw->out[LINEAR_DW_DW] = fth_trial_param_grad(t, w);
}

void fth_case_unfold(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    const int per_row = (int)v->number;
    fth_val x = fth_trial_input(t, FTH_ROWS_SRC, per_row * s->width, FTH_REAL);
    fth_op *op = op_of(t, FTH_KIND_unfold, UNFOLD_N_IN, UNFOLD_N_OUT, -1);
    if (!op) return;
    op->u.unfold.per_row = per_row;
    op->u.unfold.first = v->flags & SHIFT ? -2 : 0;
    op->in[UNFOLD_X] = x;
    fth_val y = fth_trial_output(t, op, UNFOLD_Y, x, FTH_KERNEL * s->width, FTH_REAL);
    fth_val dy = fth_trial_upstream(t, y);
    fth_op *back = op_of(t, FTH_KIND_unfold_bwd, UNFOLD_BWD_N_IN, UNFOLD_BWD_N_OUT, 0);
    if (!back) return;
    back->in[UNFOLD_BWD_DY] = dy;
    fth_trial_pair(t, x, output_like(t, back, UNFOLD_BWD_DX, x));
}

/* With two inputs the batch hides some rows of the second. */
void fth_case_glu(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    const int parts = v->flags & EXTRA ? 2 : 1;
    fth_val x[2];
    if (fth_trial_numbers(t, 1, false) != FTH_OK) {
        t->graph.err = FTH_NO_MEMORY;
        return;
    }
    for (int k = 0; k < parts; k++) x[k] = fth_trial_input(t, FTH_ROWS_SRC, 2 * s->width, FTH_REAL);
    fth_op *op = op_of(t, FTH_KIND_glu, GLU_N_IN, GLU_N_OUT, -1);
    if (!op) return;
    for (int k = 0; k < parts; k++) op->in[GLU_X + k] = x[k];
    fth_val y = fth_trial_output(t, op, GLU_Y, x[0], parts * s->width, FTH_REAL);
    fth_val dy = fth_trial_upstream(t, y);
    fth_op *back = op_of(t, FTH_KIND_glu_bwd, GLU_BWD_N_IN, GLU_BWD_N_OUT, 0);
    if (!back) return;
    back->in[GLU_BWD_DY] = dy;
    for (int k = 0; k < parts; k++) {
        back->in[GLU_BWD_X + k] = x[k];
        fth_trial_pair(t, x[k], output_like(t, back, GLU_BWD_DX + k, x[k]));
    }
}

/* The words of the target's upper part; the others are in another band. */
void fth_case_band(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    const int first = v->flags & EXTRA ? 0 : s->vocab / 3;
    fth_val table = matrix(t, v->flags & EXTRA ? s->vocab / 2 + 1 : s->vocab - first, s->width);
    fth_op *op = op_of(t, FTH_KIND_band, BAND_N_IN, BAND_N_OUT, -1);
    if (!op) return;
    op->u.band.first = first;
    op->in[BAND_TABLE] = table;
    fth_val y = fth_trial_input(t, FTH_ROWS_TGT, s->width, FTH_REAL);
    fth_graph_output(&t->graph, op, BAND_Y, y);
    fth_val dy = fth_trial_upstream(t, y);
    fth_op *back = op_of(t, FTH_KIND_band_bwd, BAND_BWD_N_IN, BAND_BWD_N_OUT, 0);
    if (!back) return;
    back->in[BAND_BWD_DY] = dy;
    back->out[BAND_BWD_DTABLE] = fth_trial_param_grad(t, table);
}

void fth_case_log_words(fth_trial *t, const fth_variant *v, const fth_shape *s) {
    (void)v;
    const int widths[LOG_WORDS_N_IN] = {s->width + FTH_TAILS, s->vocab, 1};
    fth_val x[LOG_WORDS_N_IN];
    for (int k = 0; k < LOG_WORDS_N_IN; k++)
        x[k] = fth_trial_input(t, FTH_ROWS_TGT, widths[k], FTH_REAL);
    fth_op *op = op_of(t, FTH_KIND_log_words, LOG_WORDS_N_IN, LOG_WORDS_N_OUT, -1);
    if (!op) return;
    for (int k = 0; k < LOG_WORDS_N_IN; k++) op->in[k] = x[k];
    fth_trial_output(t, op, LOG_WORDS_Y, x[0], s->width + s->vocab + 1, FTH_REAL);
}
