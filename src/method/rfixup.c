/* rfixup.c: Fixup for Transformers: no LN, no bias vectors, learned scalar shifts around the maps
 * and a learned scalar on each branch; the last map of every branch starts at 0. */
#include <math.h>

#include "method/method.h"

static fth_val scalar(fth_builder *b, const char *name, double start) {
    return fth_param_at(b, FTH_ROLE_EXTRA, 0, 1, fth_init_const(start), name);
}

static fth_val shift(fth_builder *b, const char *name, fth_val x) {
    return fth_scale_shift(b, x, 0, scalar(b, name, 0));
}

static fth_val pre(fth_builder *b, const fth_site *s, fth_val x) {
    static const char *const names[] = {"self_attn_shift", "encoder_attn_shift", "fc1_shift"};
    return shift(b, names[s->sub], x);
}

static fth_val before_act(fth_builder *b, const fth_site *s, fth_val h) {
    (void)s;
    return shift(b, "act_shift", h);
}

static fth_val inner(fth_builder *b, const fth_site *s, fth_val h) {
    return s->sub == FTH_FFN ? shift(b, "fc2_shift", h) : h;
}

static fth_val join(fth_builder *b, const fth_site *s, fth_val x, fth_val f) {
    static const char *const names[] = {"self_attn_scale", "encoder_attn_scale", "ffn_scale"};
    return fth_join(b, fth_const(1), x, fth_learned(b, scalar(b, names[s->sub], 1)), f);
}

static fth_val stack_out(fth_builder *b, const fth_site *s, fth_val x) {
    if (s->stack == FTH_DECODER) return shift(b, "out_shift", x);
    fth_val scale = scalar(b, "out_scale", 1);
    return fth_scale_shift(b, x, scale, scalar(b, "out_shift", 0));
}

static fth_init init(const fth_method_state *s, const fth_param *p, fth_init base) {
    const fth_config *c = s->config;
    double r = 2.0 * c->encoder_layers + (c->arch == FTH_ENCDEC ? 3.0 : 2.0) * c->decoder_layers;
    switch (p->role) {
    case FTH_ROLE_Q:
    case FTH_ROLE_K:
    case FTH_ROLE_V: return fth_init_scaled(base, pow(r, -1.0 / 6));
    case FTH_ROLE_FC1: return fth_init_scaled(base, pow(r, -0.5));
    case FTH_ROLE_O:
    case FTH_ROLE_FC2:
    case FTH_ROLE_OUTPUT: return fth_init_const(0);
    default: return base;
    }
}

const fth_method fth_method_rfixup = {
    .id = "rfixup",
    .title = "Fixup for Transformers (R-Fixup)",
    .paper = "Zhang et al. 2019, arXiv 1901.09321",
    .equation = "x <- x + s D(G(x - c)), shifts c and scales s learned; last maps start at 0",
    .extra = "6 scalars per encoder layer, 8 per decoder layer, 3 on top",
    .export_to = "has no LN, so neither Post-LN nor Pre-LN",
    .advice = "warm-up, strong dropout",
    .norm = FTH_NORM_NONE,
    .no_bias = true,
    .pre = pre,
    .before_act = before_act,
    .inner = inner,
    .join = join,
    .stack_out = stack_out,
    .init = init,
};
