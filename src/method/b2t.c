/* b2t.c: Post-LN, and the last sub-layer of a layer adds the layer's input: it skips every LN of
 * the layer but the last, or with skip_last that one too. */
#include "method/b2t_init.h"

static fth_val join(fth_builder *b, const fth_site *s, fth_val x, fth_val f) {
    const fth_coef one = fth_const(1);
    if (s->last_in_layer && fth_option_number(s->state, "skip_last") != 0)
        return fth_add(b, one, s->layer_input, fth_norm(b, fth_join(b, one, x, one, f), s->norm));
    fth_val sum = s->last_in_layer ? fth_join3(b, one, x, one, f, one, s->layer_input)
                                   : fth_join(b, one, x, one, f);
    return fth_norm(b, sum, s->norm);
}

static const fth_option_spec options[] = {
    FTH_B2T_INIT_OPTION,
    {"skip_last", "bool", "false", 0, 0,
     "the layer's input skips its last LN too: x <- x_layer + LN(x + D(FFN(x)))"},
    {0}};

const fth_method fth_method_b2t = {
    .id = "b2t",
    .title = "Bottom-to-top connection",
    .paper = "Takase et al. 2023, arXiv 2206.00330",
    .equation = "x <- LN(x + D(G(x))); in the FFN x <- LN(x_layer + x + D(FFN(x)))",
    .extra = "none",
    .export_to = "cannot be expressed as Post-LN or Pre-LN: the layer input skips norms",
    .advice = "warm-up; above 18 layers the smaller initial scale",
    .norm = FTH_NORM_POST,
    .options = options,
    .join = join,
    .init = fth_b2t_init,
};
