/* b2t_noln.c: the bottom-to-top connection without layer norms: a layer ends with
 * y = alpha x_layer + beta (c + D(FFN(c))). */
#include <math.h>

#include "method/b2t_init.h"

static fth_val join(fth_builder *b, const fth_site *s, fth_val x, fth_val f) {
    if (!s->last_in_layer) return fth_join(b, fth_const(1), x, fth_const(1), f);
    double layers = s->layers;
    fth_coef alpha = fth_const(fmin(layers / 12, pow(layers, -0.15)));
    fth_coef beta = fth_const(pow(s->config->d_model, -0.2));
    return fth_join3(b, beta, x, beta, f, alpha, s->layer_input);
}

static fth_val stack_out(fth_builder *b, const fth_site *s, fth_val x) {
    if (fth_option_number(s->state, "final_ln") == 0) return x;
    return fth_norm(b, x, fth_norm_at(b, s->config->d_model, "layer_norm"));
}

static const fth_option_spec options[] = {
    FTH_B2T_INIT_OPTION, {"final_ln", "bool", "false", 0, 0, "an LN after each stack"}, {0}};

const fth_method fth_method_b2t_noln = {
    .id = "b2t-noln",
    .title = "Bottom-to-top connection without LN",
    .paper = "Takase et al. 2023, arXiv 2206.00330, appendix D",
    .equation = "x <- x + D(G(x)); a layer ends with alpha x_layer + beta (x + D(FFN(x)))",
    .extra = "none",
    .export_to = "has no LN, so neither Post-LN nor Pre-LN",
    .advice = "warm-up; above 18 layers, and at small widths, the smaller initial scale",
    .norm = FTH_NORM_NONE,
    .options = options,
    .join = join,
    .stack_out = stack_out,
    .init = fth_b2t_init,
};
