/* ffn.c: the feed-forward branch, W_2 drop(act(W_1 x + b_1)) + b_2 (doc/mathematics.md#sub-layers).
 */
#include "model/build.h"

static fth_val matrix(fth_build *w, fth_role role, int64_t rows, int64_t width, const char *name) {
    return fth_param_at(&w->b, role, rows, width, fth_xavier_uniform(1), name);
}

static fth_val bias(fth_build *w, fth_role role, int64_t width, const char *name) {
    if (w->method->no_bias) return 0;
    return fth_param_at(&w->b, role, 0, width, fth_init_const(0), name);
}

fth_val fth_build_ffn(fth_build *w, const fth_site *s, fth_val x) {
    const fth_config *c = w->config;
    const fth_method *method = w->method;
    fth_builder *b = &w->b;
    fth_act act = c->activation == FTH_RELU ? FTH_ACT_RELU : FTH_ACT_GELU;
    fth_val w1 = matrix(w, FTH_ROLE_FC1, c->ffn_dim, c->d_model, "fc1.weight");
    fth_val b1 = bias(w, FTH_ROLE_FC1_BIAS, c->ffn_dim, "fc1.bias");
    fth_val w2 = matrix(w, FTH_ROLE_FC2, c->d_model, c->ffn_dim, "fc2.weight");
    fth_val b2 = bias(w, FTH_ROLE_FC2_BIAS, c->d_model, "fc2.bias");

    fth_val h = fth_linear(b, x, w1, b1, method->before_act ? FTH_ACT_NONE : act);
    if (method->before_act) h = fth_activate(b, method->before_act(b, s, h), act);
    if (w->taps) fth_taps_here(w->taps)->act = h;
    h = fth_dropout(b, h, c->activation_dropout);
    if (method->inner) h = method->inner(b, s, h);
    fth_val y = fth_linear(b, h, w2, b2, FTH_ACT_NONE);
    return method->after ? method->after(b, s, y) : y;
}
