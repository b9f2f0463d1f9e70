/* op_build.h: builders of cases. A builder makes the forward operation, a random upstream gradient
 * and the backward operations by the same rules as autodiff, but by hand: what it says is the
 * contract of op.h. op_cases.c has the table of what is built. */
#ifndef FTH_TEST_OP_BUILD_H
#define FTH_TEST_OP_BUILD_H

#include "op_harness.h"

enum {
    BIAS = 1,            /* linear: with a bias */
    ADDEND = 2,          /* the backward gets a gradient from another reader */
    IN_PLACE = 4,        /* the result takes the place of an input, where op.h allows it */
    TARGET = 8,          /* on the target side */
    CROSS = 16,          /* attention of the target to the source */
    CARRY = 32,          /* attention stores scores */
    PREVIOUS = 64,       /* attention gets scores from below */
    LEARNED = 128,       /* embed: learned positions; scale_shift: s; xent: the gradient of W */
    SHIFT = 256,         /* scale_shift: c */
    EXTRA = 512,         /* join: a third term; xent: nll of every row; top: -inf */
    NO_DX = 1024,        /* xent: no gradients */
    SEPARATE = 2048,     /* attention: q, k and v are values of their own */
    FRESH = 4096,        /* linear: the gradient of W is assigned, not added to */
    WATCHED = 8192,      /* update: all sums */
    BITS = 16384,        /* join: the forward keeps bits of its dropout for the backward */
    TINY = 32768,        /* gauge: numbers whose squares are too small for floats */
    GREAT = 65536,       /* gauge: too large */
    SENTENCES = 1 << 17, /* rows are those of sentences, */
    PICKED = 1 << 18,    /* or the source's with a target */
    CLS = 1 << 19,       /* patches: with a class token, */
    MASKED = 1 << 20     /* with a mask token */
};

typedef void fth_op_builder(fth_trial *t, const fth_variant *v, const fth_shape *s);

struct fth_variant {
    const char *name;
    fth_op_builder *build;
    unsigned flags;
    fth_act act;
    float p;       /* dropout */
    double number; /* xent: smoothing; attention: divisor; mix: how many; update: which update;
                      scale_shift: factor, 0 means 1 */
    int r, a, c;   /* join: fth_coef_kind of its coefficients */
};

static inline fth_extent rows_on(const fth_variant *v) {
    return v->flags & SENTENCES ? FTH_ROWS_SENTENCES
           : v->flags & PICKED  ? FTH_ROWS_PICKED
           : v->flags & TARGET  ? FTH_ROWS_TGT
                                : FTH_ROWS_SRC;
}

static inline fth_side side_of(const fth_variant *v) {
    return v->flags & TARGET ? FTH_TGT : FTH_SRC;
}

static inline fth_drop drop_of(const fth_variant *v, uint32_t site) {
    return (fth_drop){.p = v->p, .site = site};
}

/* Appends an operation; backward ones take the attributes of `of`. */
static inline fth_op *op_of(fth_trial *t, fth_kind kind, int n_in, int n_out, int32_t of) {
    fth_op *op = fth_graph_op(&t->graph, kind, n_in, n_out);
    if (op && of >= 0) {
        op->backward = true;
        op->u = t->graph.op[of].u;
    }
    return op;
}

static inline fth_val vector(fth_trial *t, int width) {
    return fth_trial_fixed(t, FTH_IN_PARAM, 1, width, FTH_FULL);
}

static inline fth_val matrix(fth_trial *t, int rows, int width) {
    return fth_trial_fixed(t, FTH_IN_PARAM, rows, width, FTH_REAL);
}

/* An output like `v`, width and class included. */
static inline fth_val output_like(fth_trial *t, fth_op *op, int index, fth_val v) {
    return fth_trial_output(t, op, index, v, t->graph.value[v].width, t->graph.value[v].class);
}

fth_op_builder fth_case_embed, fth_case_linear, fth_case_linear_after, fth_case_activation,
    fth_case_feed_forward, fth_case_attention, fth_case_attention_of_product, fth_case_cached,
    fth_case_gauge_entropy, fth_case_join, fth_case_join_norm, fth_case_join_norm_plain,
    fth_case_norm, fth_case_joined, fth_case_dropout, fth_case_scale_shift, fth_case_head_scale,
    fth_case_mix, fth_case_add, fth_case_xent, fth_case_update, fth_case_top, fth_case_gauge,
    fth_case_gauge_positions, fth_case_square, fth_case_pick, fth_case_mean, fth_case_patches,
    fth_case_unfold, fth_case_glu, fth_case_band, fth_case_log_words;

/* What several builders share. */

/* x W^T with its backward; dy is the gradient before the activation. */
void fth_case_linear_backward(fth_trial *t, int32_t of, fth_val dy, fth_val addend, fth_val dx);
/* A product without activation and its output. */
fth_val fth_case_product(fth_trial *t, fth_val x, fth_val w, fth_val b);
/* A coefficient of a kind, its parameter an operand of the operation. */
fth_coef fth_case_coefficient(fth_trial *t, fth_coef_kind kind, double value, int width,
                              fth_val *param);

#endif
