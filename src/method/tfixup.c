/* tfixup.c: x <- x + D(G(x)), no LN and no warm-up, held by its initial values. */
#include <math.h>

#include "method/method.h"

static double map_factor(const fth_config *c, fth_stack stack) {
    return stack == FTH_ENCODER ? 0.67 * pow(c->encoder_layers, -0.25)
                                : pow(9.0 * c->decoder_layers, -0.25);
}

/* A matrix that serves both sides goes by the encoder's depth, where there is an encoder. */
static double embedding_factor(const fth_config *c, fth_stack stack) {
    bool decoder = stack == FTH_DECODER || c->arch == FTH_DEC;
    return pow(9.0 * (decoder ? c->decoder_layers : c->encoder_layers), -0.25);
}

static fth_init init(const fth_method_state *s, const fth_param *p, fth_init base) {
    switch (p->role) {
    case FTH_ROLE_V:
    case FTH_ROLE_O:
    case FTH_ROLE_FC1:
    case FTH_ROLE_FC2: return fth_xavier_uniform(map_factor(s->config, p->stack));
    case FTH_ROLE_EMBED: return fth_init_scaled(base, embedding_factor(s->config, p->stack));
    default: return base;
    }
}

const fth_method fth_method_tfixup = {
    .id = "tfixup",
    .title = "T-Fixup",
    .paper = "Huang et al. 2020, ICML",
    .equation = "x <- x + D(G(x)); weights and embeddings shrunk by depth",
    .extra = "none",
    .export_to = "has no LN, so neither Post-LN nor Pre-LN",
    .advice = "no warm-up: --lr-scheduler inverse_sqrt_nowarmup, dropout 0.5",
    .norm = FTH_NORM_NONE,
    .init = init,
};
