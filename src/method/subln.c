/* subln.c: Pre-LN with a second LN inside each branch, before W_o and before W_2, and initial
 * weights that grow with the logarithm of the depth. */
#include <math.h>

#include "method/method.h"

static double gain(const fth_config *c, fth_stack stack) {
    double n = c->encoder_layers, m = c->decoder_layers;
    if (c->arch == FTH_ENC) return sqrt(log(2 * n));
    if (c->arch == FTH_DEC) return sqrt(log(2 * m));
    return stack == FTH_ENCODER ? sqrt(log(3 * m) * log(2 * n) / 3) : sqrt(log(3 * m));
}

static fth_val inner(fth_builder *b, const fth_site *s, fth_val h) {
    if (s->sub == FTH_SELF)
        return fth_norm(b, h, fth_norm_at(b, s->config->d_model, "self_attn.inner_attn_ln"));
    if (s->sub == FTH_FFN)
        return fth_norm(b, h, fth_norm_at(b, s->config->ffn_dim, "ffn_layernorm"));
    return h;
}

static fth_init init(const fth_method_state *s, const fth_param *p, fth_init base) {
    if (p->layer < 0 || !fth_role_is_matrix(p->role)) return base;
    bool plain = p->sub == FTH_CROSS || p->role == FTH_ROLE_Q || p->role == FTH_ROLE_K;
    return fth_xavier_normal(plain ? 1 : gain(s->config, p->stack));
}

static const fth_norm_kind norms[] = {
    {"self_attn.inner_attn_ln", "inner_attn", false}, {"ffn_layernorm", "inner_ffn", false}, {0}};

const fth_method fth_method_subln = {
    .id = "subln",
    .title = "Sub-LN (Magneto)",
    .paper = "Wang et al. 2022, arXiv 2210.06423",
    .equation = "x <- x + D(W_o LN'(att(LN(x)))), x <- x + D(W_2 LN'(act(W_1 LN(x)))); LN on top",
    .extra = "2d per self-attention, 2f per FFN, one LN per stack",
    .export_to = "cannot: the inner normalisation stays",
    .advice = "trains without warm-up",
    .norm = FTH_NORM_PRE,
    .final_norm = true,
    .norms = norms,
    .inner = inner,
    .init = init,
};
