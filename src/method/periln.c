/* periln.c: x <- x + LN'(D(G(LN(x)))): Pre-LN whose branches end with an LN too, and an LN on top
 * of each stack. */
#include "method/method.h"

static fth_val join(fth_builder *b, const fth_site *s, fth_val x, fth_val f) {
    static const char *const names[] = {"self_attn_out_layer_norm", "encoder_attn_out_layer_norm",
                                        "ffn_out_layer_norm"};
    f = fth_dropout(b, f, s->config->dropout);
    f = fth_norm(b, f, fth_norm_at(b, s->config->d_model, names[s->sub]));
    return fth_add(b, fth_const(1), x, f);
}

static const char *embed_norm(const fth_method_state *s) {
    return fth_option_number(s, "embed_norm") != 0 ? "layernorm_embedding" : NULL;
}

static const fth_norm_kind norms[] = {{"self_attn_out_layer_norm", "self_attn_out", false},
                                      {"encoder_attn_out_layer_norm", "encoder_attn_out", false},
                                      {"ffn_out_layer_norm", "ffn_out", false},
                                      {"layernorm_embedding", "embedding", true},
                                      {0}};

static const fth_option_spec options[] = {
    {"embed_norm", "bool", "false", 0, 0, "an LN of the embedded input, before its dropout"}, {0}};

const fth_method fth_method_periln = {
    .id = "periln",
    .title = "Peri-LN, sandwich norm",
    .paper = "Kim et al. 2025, arXiv 2502.02732; Ding et al. 2021 (CogView), arXiv 2105.13290",
    .equation = "x <- x + LN'(D(G(LN(x)))); LN on top of each stack",
    .extra = "2d per sub-layer, one LN per stack (with embed_norm two)",
    .export_to = "cannot: the norm of the branch's output stays",
    .advice = "trains without warm-up",
    .norm = FTH_NORM_PRE,
    .final_norm = true,
    .norms = norms,
    .options = options,
    .embed_norm = embed_norm,
    .join = join,
};
