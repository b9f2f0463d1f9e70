/* mixln.c: the first floor(a L) layers of a stack are Post-LN, the others Pre-LN, with an LN on top
 * of each stack. */
#include <math.h>

#include "method/method.h"

static fth_norm_place place(const fth_site *s) {
    const double share = fth_option_number(s->state, "post_share");
    return s->layer < floor(share * s->layers) ? FTH_NORM_POST : FTH_NORM_PRE;
}

static const fth_option_spec options[] = {
    {"post_share", "number", "0.25", 0, 1, "a: the part of a stack's layers that is Post-LN"}, {0}};

const fth_method fth_method_mixln = {
    .id = "mixln",
    .title = "Mix-LN",
    .paper = "Li et al. 2024, arXiv 2412.13795",
    .equation = "layers below a L: x <- LN(x + D(G(x))), others x <- x + D(G(LN(x))); LN on top",
    .extra = "one LN per stack",
    .export_to = "cannot: it is Post-LN below and Pre-LN above",
    .advice = "warm-up",
    .norm = FTH_NORM_PRE,
    .final_norm = true,
    .options = options,
    .place = place,
};
