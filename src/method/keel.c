/* keel.c: x <- LN(alpha x + D(G(LN'(x)))): Post-LN with a residual as strong as the stack is deep
 * and a second LN before each branch. */
#include "method/method.h"

enum { ALPHA }; /* places in state->number, by stack */

static fth_err resolve(fth_method_state *s) {
    for (int stack = FTH_ENCODER; stack <= FTH_DECODER; stack++)
        s->number[ALPHA + stack] = fth_option_given(s, "alpha")
                                       ? fth_option_number(s, "alpha")
                                       : fth_stack_branches(s->config, (fth_stack)stack);
    return FTH_OK;
}

static fth_val pre(fth_builder *b, const fth_site *s, fth_val x) {
    static const char *const names[] = {"self_attn_pre_layer_norm", "encoder_attn_pre_layer_norm",
                                        "ffn_pre_layer_norm"};
    return fth_norm(b, x, fth_norm_at(b, s->config->d_model, names[s->sub]));
}

static fth_val join(fth_builder *b, const fth_site *s, fth_val x, fth_val f) {
    fth_coef alpha = fth_const(s->state->number[ALPHA + s->stack]);
    return fth_norm(b, fth_join(b, alpha, x, fth_const(1), f), s->norm);
}

static const fth_norm_kind norms[] = {{"self_attn_pre_layer_norm", "self_attn_pre", false},
                                      {"encoder_attn_pre_layer_norm", "encoder_attn_pre", false},
                                      {"ffn_pre_layer_norm", "ffn_pre", false},
                                      {0}};

static const fth_option_spec options[] = {
    {"alpha", "number", "sub-layers of the stack", 1e-6, 1e6, "factor of the residual"}, {0}};

const fth_method fth_method_keel = {
    .id = "keel",
    .title = "Keel",
    .paper = "Chen and Wei 2026, arXiv 2601.19895",
    .equation = "x <- LN(alpha x + D(G(LN'(x)))), alpha = sub-layers of the stack",
    .extra = "2d per sub-layer",
    .export_to = "cannot: every branch reads a norm of its own",
    .advice = "warm-up",
    .norm = FTH_NORM_POST,
    .norms = norms,
    .options = options,
    .resolve = resolve,
    .pre = pre,
    .join = join,
};
