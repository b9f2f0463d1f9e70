/* postln.c: x <- LN(x + D(G(x))), the original Transformer (METHODS B.1). */
#include "method/method.h"

const fth_method fth_method_postln = {
    .id = "postln",
    .title = "Post-LN",
    .paper = "Vaswani et al. 2017, Attention Is All You Need",
    .equation = "x <- LN(x + D(G(x)))",
    .extra = "none",
    .export_to = "is plain Post-LN",
    .advice = "warm-up; fails from about 18-18 layers on",
    .norm = FTH_NORM_POST,
};
