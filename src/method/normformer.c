/* normformer.c: Pre-LN with a gain per attention head, an LN after self-attention and an LN before
 * W_2; optionally a learned residual scale in the FFN. */
#include <string.h>

#include "method/method.h"

/* The parts can be left out of the encoder, as fairseq does. */
static bool applies(const fth_site *s) {
    return s->stack == FTH_DECODER || fth_option_number(s->state, "encoder") != 0;
}

static fth_val head_gains(fth_builder *b, const fth_site *s, fth_val x) {
    int heads = s->config->heads;
    fth_val gamma =
        fth_param_at(b, FTH_ROLE_EXTRA, 0, heads, fth_init_const(1), "self_attn.c_attn");
    return fth_head_scale(b, x, gamma, heads);
}

static bool gains_after(const fth_site *s) {
    return strcmp(fth_option_text(s->state, "head_scale"), "post") == 0;
}

static fth_val inner(fth_builder *b, const fth_site *s, fth_val h) {
    if (!applies(s)) return h;
    if (s->sub == FTH_SELF && !gains_after(s)) return head_gains(b, s, h);
    if (s->sub == FTH_FFN)
        return fth_norm(b, h, fth_norm_at(b, s->config->ffn_dim, "ffn_layernorm"));
    return h;
}

static fth_val after(fth_builder *b, const fth_site *s, fth_val f) {
    if (s->sub != FTH_SELF || !applies(s)) return f;
    if (gains_after(s)) f = head_gains(b, s, f);
    return fth_norm(b, f, fth_norm_at(b, s->config->d_model, "attn_ln"));
}

static fth_val join(fth_builder *b, const fth_site *s, fth_val x, fth_val f) {
    const fth_coef one = fth_const(1);
    if (s->sub != FTH_FFN || !applies(s) || fth_option_number(s->state, "residual_scale") == 0)
        return fth_join(b, one, x, one, f);
    fth_val lambda =
        fth_param_at(b, FTH_ROLE_EXTRA, 0, s->config->d_model, fth_init_const(1), "w_resid");
    return fth_join(b, fth_learned(b, lambda), x, one, f);
}

static const fth_option_spec options[] = {
    {"head_scale", "pre|post", "pre", 0, 0, "head gains before W_o (paper) or after it (fairseq)"},
    {"residual_scale", "bool", "false", 0, 0, "a learned vector on the FFN's residual"},
    {"encoder", "bool", "true", 0, 0, "false: only decoder layers have the parts, as in fairseq"},
    {0}};

static const fth_norm_kind norms[] = {
    {"attn_ln", "inner_attn", false}, {"ffn_layernorm", "inner_ffn", false}, {0}};

const fth_method fth_method_normformer = {
    .id = "normformer",
    .title = "NormFormer",
    .paper = "Shleifer et al. 2021, arXiv 2110.09456",
    .equation =
        "x <- x + D(LN'(W_o (gamma_j head_j))), x <- x + D(W_2 LN'(act(W_1 LN(x)))); LN on top",
    .extra = "h + 2d + 2f per layer (+ d with residual_scale), one LN per stack",
    .export_to = "cannot: the inner normalisation stays",
    .advice = "a higher learning rate than Pre-LN",
    .norm = FTH_NORM_PRE,
    .final_norm = true,
    .norms = norms,
    .options = options,
    .inner = inner,
    .after = after,
    .join = join,
};
