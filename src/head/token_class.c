/* token_class.c: a class for every row: logits = W h + b. With pictures this is segmentation, patch
 * by patch. */
#include "head/head.h"

static void build(fth_builder *b, const fth_head_spec *spec, fth_val x, fth_head_outputs *out) {
    const fth_config *c = b->config;
    fth_head_classify(b, spec, x, fth_head_map_at(b, c->classes, c->d_model, "head.out"), out);
}

const fth_head fth_head_token_class = {
    .rows = FTH_ROWS_SRC, .targets = FTH_TARGET_ROWS, .build = build};
