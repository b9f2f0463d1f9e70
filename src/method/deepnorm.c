/* deepnorm.c: x <- LN(alpha x + D(G(x))), alpha and the init gain beta by depth. */
#include <math.h>

#include "method/depth_init.h"
#include "method/fold_hooks.h"

/* Places in state->number, by stack. */
enum { ALPHA, BETA = 2 };

static double formula_alpha(const fth_config *c, fth_stack stack) {
    double n = c->encoder_layers, m = c->decoder_layers;
    if (c->arch != FTH_ENCDEC) return pow(2 * (c->arch == FTH_ENC ? n : m), 0.25);
    return stack == FTH_ENCODER ? 0.81 * pow(pow(n, 4) * m, 1.0 / 16) : pow(3 * m, 0.25);
}

static fth_err resolve(fth_method_state *s) {
    for (int stack = FTH_ENCODER; stack <= FTH_DECODER; stack++) {
        double alpha = fth_option_given(s, "alpha") ? fth_option_number(s, "alpha")
                                                    : formula_alpha(s->config, (fth_stack)stack);
        double beta = fth_option_given(s, "beta") ? fth_option_number(s, "beta")
                                                  : fth_depth_beta(s->config, (fth_stack)stack);
        s->number[ALPHA + stack] = alpha * fth_option_number(s, "alpha_scale");
        s->number[BETA + stack] = beta * fth_option_number(s, "beta_scale");
    }
    return FTH_OK;
}

static fth_val join(fth_builder *b, const fth_site *s, fth_val x, fth_val f) {
    fth_coef alpha = fth_const(s->state->number[ALPHA + s->stack]);
    return fth_norm(b, fth_join(b, alpha, x, fth_const(1), f), s->norm);
}

static fth_init init(const fth_method_state *s, const fth_param *p, fth_init base) {
    if (p->layer < 0) return base;
    return fth_depth_rule(p, base, s->number[BETA + p->stack]);
}

/* LN_eps(alpha x + F) = LN_{eps / alpha^2}(x + F / alpha) */
static fth_err fold_config(fth_fold *f) {
    const double *alpha = f->state->number + ALPHA;
    if (f->config->arch != FTH_DEC)
        f->config->encoder_layer_norm_eps /= alpha[FTH_ENCODER] * alpha[FTH_ENCODER];
    if (f->config->arch != FTH_ENC) /* the decoder's is that of heads too */
        f->config->decoder_layer_norm_eps /= alpha[FTH_DECODER] * alpha[FTH_DECODER];
    return FTH_OK;
}

static fth_err fold(fth_fold *f) {
    for (int stack = FTH_ENCODER; stack <= FTH_DECODER; stack++)
        fth_fold_scale_branches(f, (fth_stack)stack, 1 / f->state->number[ALPHA + stack]);
    return FTH_OK;
}

static const fth_option_spec options[] = {
    {"alpha_scale", "number", "1", 1e-6, 1e6, "multiplies the formula's alpha"},
    {"beta_scale", "number", "1", 0, 1e6, "multiplies the formula's beta"},
    {"alpha", "number", "by the formula", 1e-6, 1e6, "replaces alpha in both stacks"},
    {"beta", "number", "by the formula", 0, 1e6, "replaces beta in both stacks"},
    {0}};

const fth_method fth_method_deepnorm = {
    .id = "deepnorm",
    .title = "DeepNorm (DeepNet)",
    .paper = "Wang et al. 2022, arXiv 2203.00555; TPAMI 2024",
    .equation = "x <- LN(alpha x + D(G(x))), alpha and the init gain beta by depth",
    .extra = "none",
    .export_to = "plain Post-LN, exact with an LN eps per stack",
    .advice = "warm-up",
    .torchscale = "deepnorm",
    .norm = FTH_NORM_POST,
    .options = options,
    .resolve = resolve,
    .join = join,
    .init = init,
    .fold_config = fold_config,
    .fold = fold,
};
