/* admin.c: x <- LN(omega_i x + D(G(x))), omega_i a learned vector set by one profiling pass, or
 * by a formula of the depth (METHODS B.9). */
#include <math.h>
#include <string.h>

#include "method/method.h"

static const char *const skips[] = {"self_attn_skip", "encoder_attn_skip", "ffn_skip"};

/* Sub-layers of a stack. */
static int branches(const fth_config *c, fth_stack stack) {
    bool crossed = stack == FTH_DECODER && c->arch == FTH_ENCDEC;
    return fth_stack_layers(c, stack) * (crossed ? 3 : 2);
}

static bool by_formula(const fth_method_state *s) {
    return strcmp(fth_option_text(s, "mode"), "const") == 0;
}

static fth_val join(fth_builder *b, const fth_site *s, fth_val x, fth_val f) {
    fth_val omega =
        fth_param_at(b, FTH_ROLE_EXTRA, 0, s->config->d_model, fth_init_const(1), skips[s->sub]);
    return fth_norm(b, fth_join(b, fth_learned(b, omega), x, fth_const(1), f), s->norm);
}

static fth_init init(const fth_method_state *s, const fth_param *p, fth_init base) {
    if (p->role != FTH_ROLE_EXTRA || !by_formula(s)) return base;
    double r = branches(s->config, p->stack);
    return fth_init_const(sqrt((r + 1) / log(r + 1) - 1));
}

static const char *profiled(const fth_method_state *s, fth_sub sub) {
    return by_formula(s) ? NULL : skips[sub];
}

static const fth_option_spec options[] = {
    {"mode", "profile|const", "profile", 0, 0, "how omega is set before training"}, {0}};

const fth_method fth_method_admin = {
    .id = "admin",
    .title = "Adaptive model initialisation",
    .paper = "Liu et al. 2020, arXiv 2004.08249",
    .equation = "x <- LN(omega_i x + D(G(x))), omega_i learned, set by a profiling pass",
    .extra = "d per sub-layer",
    .export_to = "plain Post-LN, exact (embeddings become untied and positions explicit)",
    .advice = "warm-up",
    .norm = FTH_NORM_POST,
    .options = options,
    .join = join,
    .init = init,
    .profiled = profiled,
};
