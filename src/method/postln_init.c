/* postln_init.c: Post-LN whose layer l starts divided by k_l = layers - l + 1: the bottom layer is
 * the smallest. */
#include <string.h>

#include "method/fold_hooks.h"

static fth_init init(const fth_method_state *s, const fth_param *p, fth_init base) {
    bool query_or_key = p->role == FTH_ROLE_Q || p->role == FTH_ROLE_K;
    if (p->layer < 0 || !fth_role_is_matrix(p->role)) return base;
    if (query_or_key && strcmp(fth_option_text(s, "scope"), "vo12") == 0) return base;
    return fth_init_scaled(base, 1.0 / (fth_stack_layers(s->config, p->stack) - p->layer));
}

static const fth_option_spec options[] = {
    {"scope", "all|vo12", "all", 0, 0, "which matrices: all six, or W_v W_o W_1 W_2"}, {0}};

/* It is plain Post-LN: only the name changes. */
static fth_err fold(fth_fold *f) {
    (void)f;
    return FTH_OK;
}

const fth_method fth_method_postln_init = {
    .id = "postln-init",
    .title = "Post-LN with smaller lower layers",
    .paper = "Wang et al. 2022 (DeepNet), section II",
    .equation = "x <- LN(x + D(G(x))); weights of layer l divided by (layers - l + 1)",
    .extra = "none",
    .export_to = "is plain Post-LN",
    .advice = "warm-up",
    .norm = FTH_NORM_POST,
    .options = options,
    .init = init,
    .fold = fold,
};
