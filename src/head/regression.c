/* regression.c: a number for every sentence or picture: y = w D tanh(V D(pooled) + a) + b, trained
 * on the squared distance from its value. */
#include "head/head.h"

static void build(fth_builder *b, const fth_head_spec *spec, fth_val x, fth_head_outputs *out) {
    fth_val h = fth_head_sample(b, x);
    const fth_head_map map = fth_head_map_at(b, 1, b->config->d_model, "head.out");
    fth_val y = fth_linear(b, h, map.weight, map.bias, FTH_ACT_NONE);
    if (spec->logits) {
        out->logits = y;
        fth_keep(b, y);
    }
    out->loss = fth_square(b, y);
}

const fth_head fth_head_regression = {
    .rows = FTH_ROWS_SENTENCES, .targets = FTH_TARGET_VALUE, .build = build};
