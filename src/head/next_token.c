/* next_token.c: the word of every row: logits = E h, tied or not (doc/mathematics.md#output-layer,
 * A.6). */
#include "front/front.h"
#include "head/head.h"

static void build(fth_builder *b, const fth_head_spec *spec, fth_val x, fth_head_outputs *out) {
    fth_head_classify(b, spec, x, (fth_head_map){.weight = fth_front_output(b)}, out);
}

const fth_head fth_head_next_token = {
    .rows = FTH_ROWS_SRC, .targets = FTH_TARGET_WORDS, .build = build};
