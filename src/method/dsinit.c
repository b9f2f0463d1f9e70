/* dsinit.c: Post-LN whose layer l starts multiplied by l^-power: upper layers are smaller. */
#include <math.h>

#include "method/fold_hooks.h"

static fth_init init(const fth_method_state *s, const fth_param *p, fth_init base) {
    if (p->layer < 0 || !fth_role_is_matrix(p->role)) return base;
    return fth_init_scaled(base, pow(p->layer + 1, -fth_option_number(s, "power")));
}

static const fth_option_spec options[] = {
    {"power", "number", "0.5", 0, 10, "0.5 is the paper's, 0.25 the official code's"}, {0}};

/* It is plain Post-LN: only the name changes. */
static fth_err fold(fth_fold *f) {
    (void)f;
    return FTH_OK;
}

const fth_method fth_method_dsinit = {
    .id = "dsinit",
    .title = "Depth-scaled initialisation",
    .paper = "Zhang, Titov and Sennrich 2019, arXiv 1908.11365",
    .equation = "x <- LN(x + D(G(x))); weights of layer l multiplied by l^(-1/2)",
    .extra = "none",
    .export_to = "is plain Post-LN",
    .advice = "warm-up; fails from about 18-18 layers on",
    .norm = FTH_NORM_POST,
    .options = options,
    .init = init,
    .fold = fold,
};
