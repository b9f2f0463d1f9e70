/* preln.c: x <- x + D(G(LN(x))), and an LN on top of each stack. */
#include "method/method.h"

const fth_method fth_method_preln = {
    .id = "preln",
    .plain = true,
    .title = "Pre-LN",
    .paper = "Wang et al. 2019; Xiong et al. 2020, On Layer Normalization in the Transformer",
    .equation = "x <- x + D(G(LN(x))); LN on top of each stack",
    .extra = "one LN per stack",
    .export_to = "is plain Pre-LN",
    .advice = "trains without warm-up; upper layers of deep models change little",
    .norm = FTH_NORM_PRE,
    .final_norm = true,
};
