/* masked_token.c: what was hidden, from the rows with a target alone. Words: logits = E LN(gelu(W h
 * + b)) + c (BERT, Devlin et al. 2019); of pictures visual tokens: logits = W h + b (BEiT, Bao et
 * al. 2022, eq. 2). */
#include "front/front.h"
#include "head/head.h"

static fth_val transform(fth_builder *b, fth_val h) {
    const int64_t d = b->config->d_model;
    const fth_head_map dense = fth_head_map_at(b, d, d, "head.dense");
    h = fth_linear(b, h, dense.weight, dense.bias, FTH_ACT_GELU);
    return fth_norm(b, h, fth_norm_at(b, d, "head.layer_norm"));
}

static void build(fth_builder *b, const fth_head_spec *spec, fth_val x, fth_head_outputs *out) {
    const fth_config *c = b->config;
    fth_val h = fth_pick_rows(b, x, FTH_PICK_TARGETS);
    if (fth_config_has(c, "visual_tokens")) {
        fth_head_classify(b, spec, h, fth_head_map_at(b, c->visual_tokens, c->d_model, "head.out"),
                          out);
        return;
    }
    h = transform(b, h);
    fth_val bias =
        fth_param_at(b, FTH_ROLE_HEAD_BIAS, 0, c->src_vocab, fth_init_const(0), "head.bias");
    fth_head_classify(b, spec, h, (fth_head_map){fth_front_output(b), bias}, out);
}

const fth_head fth_head_masked_token = {
    .rows = FTH_ROWS_PICKED, .targets = FTH_TARGET_WORDS, .build = build};
