/* next_token.c: the word of every row: logits = E h, tied or not (doc/mathematics.md#output-layer,
 * A.6). */
#include "front/front.h"
#include "head/head.h"

static void build_adaptive(fth_builder *b, const fth_head_spec *spec, fth_val x,
                           fth_head_outputs *out) {
    if (spec->smoothing > 0 && b->graph->err == FTH_OK)
        b->graph->err = fth_fail(FTH_USAGE,
                                 "label smoothing %g must be 0 with adaptive_cutoffs: rare words "
                                 "have no probability of their own",
                                 spec->smoothing);
    if (spec->logits) out->logits = fth_front_logits(b, x);
    out->loss = fth_adaptive_loss(b, x, spec->row_nll);
}

static void build(fth_builder *b, const fth_head_spec *spec, fth_val x, fth_head_outputs *out) {
    if (fth_config_is_adaptive(b->config))
        build_adaptive(b, spec, x, out);
    else
        fth_head_classify(b, spec, x, (fth_head_map){.weight = fth_front_output(b)}, out);
}

const fth_head fth_head_next_token = {
    .rows = FTH_ROWS_SRC, .targets = FTH_TARGET_WORDS, .build = build};
