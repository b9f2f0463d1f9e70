/* rates.c: the share of the learning rate that each parameter has: by its distance from the top of
 * its stack, and by patterns of names. */
#include "run/rates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- patterns ---- */

/* Whether a text is a whole number; *end: what follows it. */
static bool read_number(const char *text, const char *end, long *value, const char **rest) {
    if (text == end || *text < '0' || *text > '9') return false;
    char *after;
    *value = strtol(text, &after, 10);
    *rest = after;
    return after <= end;
}

/* "0-5" means 0 to 5. */
static bool in_range(const char *p, const char *p_end, const char *s, const char *s_end, bool *is) {
    long low, high, number;
    const char *rest;
    if (!read_number(p, p_end, &low, &rest) || rest == p_end || *rest != '-') return false;
    if (!read_number(rest + 1, p_end, &high, &rest) || rest != p_end) return false;
    *is = read_number(s, s_end, &number, &rest) && rest == s_end && low <= number && number <= high;
    return true;
}

/* One part; a star stands for any letters of it. */
static bool part_matches(const char *p, const char *p_end, const char *s, const char *s_end) {
    bool is;
    if (in_range(p, p_end, s, s_end, &is)) return is;
    const char *star = NULL, *again = s; /* the newest star, and where it ends so far */
    while (s < s_end) {
        if (p < p_end && *p == '*') {
            star = ++p;
            again = s;
        } else if (p < p_end && *p == *s) {
            p++, s++;
        } else if (star) {
            p = star;
            s = ++again;
        } else {
            return false;
        }
    }
    while (p < p_end && *p == '*') p++;
    return p == p_end;
}

bool fth_rates_match(const char *pattern, const char *name) {
    for (;;) {
        const char *p_end = pattern + strcspn(pattern, "."), *s_end = name + strcspn(name, ".");
        if (!part_matches(pattern, p_end, name, s_end)) return false;
        if (!*p_end) return true;
        if (!*s_end) return false;
        pattern = p_end + 1;
        name = s_end + 1;
    }
}

static fth_err freeze(const char *pattern, fth_params *params) {
    bool any = false;
    for (int32_t i = 0; i < params->n; i++) {
        if (!fth_rates_match(pattern, params->param[i].name)) continue;
        params->param[i].share = 0;
        any = true;
    }
    if (any) return FTH_OK;
    return fth_fail(FTH_USAGE,
                    "--freeze %s: no parameter of this model is called so; %s is one, and "
                    "encoder.layers.0-5 means six layers",
                    pattern, params->n ? params->param[0].name : "none");
}

/* ---- layers ---- */

/* What is read before the lowest layer. */
static bool is_at_bottom(fth_role role) {
    return role == FTH_ROLE_EMBED || role == FTH_ROLE_POSITIONS || role == FTH_ROLE_FRONT ||
           role == FTH_ROLE_FRONT_BIAS || role == FTH_ROLE_TOKEN;
}

/* Layers from a parameter up to the top of its stack, itself included; 0: it stands above them. A
 * shared embedding is below the deeper stack. */
static int32_t steps_down(const fth_param *p, const int32_t layers[2]) {
    const bool one = p->stack == FTH_ENCODER || p->stack == FTH_DECODER;
    const int32_t deeper = layers[0] > layers[1] ? layers[0] : layers[1];
    const int32_t all = one ? layers[p->stack] : deeper;
    if (p->layer >= 0) return all - p->layer;
    return is_at_bottom(p->role) ? all + 1 : 0;
}

static int64_t frozen_numbers(const fth_params *params, int32_t *frozen) {
    int64_t n = 0;
    *frozen = 0;
    for (int32_t i = 0; i < params->n; i++) {
        if (params->param[i].share > 0) continue;
        n += fth_param_size(&params->param[i]);
        (*frozen)++;
    }
    return n;
}

/* What is said of it. */
static fth_err describe(double decay, int32_t deepest, const fth_params *params, fth_str *said) {
    int32_t frozen;
    const int64_t numbers = frozen_numbers(params, &frozen);
    if (frozen > 0)
        FTH_TRY(fth_str_addf(said, "frozen: %d of %d parameters, %.2f of %.2f M numbers", frozen,
                             params->n, (double)numbers / 1e6,
                             (double)fth_params_count(params) / 1e6));
    if (decay == 1) return FTH_OK;
    return fth_str_addf(
        said, "%sthe rate falls by %g from layer to layer: what reads the input has %.2g of it",
        said->length ? "; " : "", decay, pow(decay, deepest + 1));
}

fth_err fth_rates_set(const fth_rates *rates, fth_model *model, fth_str *said) {
    fth_params *params = &model->params;
    const fth_config *c = &model->config;
    const int32_t layers[2] = {c->encoder_layers, c->decoder_layers};
    const double decay = rates->layer_decay > 0 ? rates->layer_decay : 1;
    for (int32_t i = 0; i < params->n; i++)
        params->param[i].share = (float)pow(decay, steps_down(&params->param[i], layers));
    for (size_t i = 0; i < rates->n_freeze; i++) FTH_TRY(freeze(rates->freeze[i], params));
    int32_t frozen;
    frozen_numbers(params, &frozen);
    if (frozen == params->n)
        return fth_fail(FTH_USAGE, "--freeze %s: nothing is left to train", rates->freeze[0]);
    if (!said) return FTH_OK;
    return describe(decay, layers[0] > layers[1] ? layers[0] : layers[1], params, said);
}
