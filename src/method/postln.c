/* postln.c: x <- LN(x + D(G(x))), the original Transformer. */
#include "method/fold.h"

/* It is plain Post-LN: only the name changes. */
static fth_err fold(fth_fold *f) {
    (void)f;
    return FTH_OK;
}

const fth_method fth_method_postln = {
    .id = "postln",
    .plain = true,
    .title = "Post-LN",
    .paper = "Vaswani et al. 2017, Attention Is All You Need",
    .equation = "x <- LN(x + D(G(x)))",
    .extra = "none",
    .export_to = "is plain Post-LN",
    .advice = "warm-up; fails from about 18-18 layers on",
    .norm = FTH_NORM_POST,
    .fold = fold,
};
