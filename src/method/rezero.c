/* rezero.c: x <- x + a_l D(G(x)), a_l learned from 0, no LN. */
#include "method/method.h"

static fth_val join(fth_builder *b, const fth_site *s, fth_val x, fth_val f) {
    static const char *const own[] = {"self_attn_resweight", "encoder_attn_resweight",
                                      "ffn_resweight"};
    const char *name = fth_option_number(s->state, "per_sublayer") != 0 ? own[s->sub] : "resweight";
    fth_val a = fth_param_at(b, FTH_ROLE_EXTRA, 0, 1, fth_init_const(0), name);
    return fth_join(b, fth_const(1), x, fth_learned(b, a), f);
}

static const fth_option_spec options[] = {
    {"per_sublayer", "bool", "false", 0, 0, "a scalar for each sub-layer instead of each layer"},
    {0}};

const fth_method fth_method_rezero = {
    .id = "rezero",
    .title = "ReZero",
    .paper = "Bachlechner et al. 2020, arXiv 2003.04887",
    .equation = "x <- x + a_l D(G(x)), a_l learned, starting at 0",
    .extra = "1 per layer",
    .export_to = "has no LN, so neither Post-LN nor Pre-LN",
    .advice = "no warm-up needed; keep fp32",
    .norm = FTH_NORM_NONE,
    .options = options,
    .join = join,
};
