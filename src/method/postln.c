/* postln.c: x <- LN(x + D(G(x))), the original Transformer. */
#include "method/fold_hooks.h"

/* It is plain Post-LN: only the name changes. */
static fth_err fold(fth_fold *f) {
    (void)f;
    return FTH_OK;
}

static const char *embed_norm(const fth_method_state *s) {
    return fth_option_number(s, "embed_norm") != 0 ? "layernorm_embedding" : NULL;
}

static const fth_option_spec options[] = {
    {"embed_norm", "bool", "false", 0, 0,
     "an LN of the embedded input, before its dropout, as BERT has"},
    {0}};

const fth_method fth_method_postln = {
    .id = "postln",
    .plain = true,
    .title = "Post-LN",
    .paper = "Vaswani et al. 2017, Attention Is All You Need",
    .equation = "x <- LN(x + D(G(x)))",
    .extra = "none (with embed_norm an LN for each stack)",
    .export_to = "is plain Post-LN",
    .advice = "warm-up; fails from about 18-18 layers on",
    .norm = FTH_NORM_POST,
    .options = options,
    .embed_norm = embed_norm,
    .fold = fold,
};
