/* class.c: a class for every sentence or picture: logits = W D tanh(V D(pooled) + a) + b (BERT,
 * Devlin et al. 2019, sec. 4.1). */
#include "head/head.h"

static void build(fth_builder *b, const fth_head_spec *spec, fth_val x, fth_head_outputs *out) {
    const fth_config *c = b->config;
    fth_val h = fth_head_sample(b, x);
    fth_head_classify(b, spec, h, fth_head_map_at(b, c->classes, c->d_model, "head.out"), out);
}

const fth_head fth_head_class = {
    .rows = FTH_ROWS_SENTENCES, .targets = FTH_TARGET_CLASS, .build = build};
