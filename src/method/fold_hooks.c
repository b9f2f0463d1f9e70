/* fold_hooks.c: finds parameters by name in a source and a target model, and multiplies the ends of
 * branches. */
#include "method/fold_hooks.h"

#include <stdio.h>

void fth_fold_scale_branches(fth_fold *f, fth_stack stack, double factor) {
    for (int32_t i = 0; i < f->to->n; i++) {
        const fth_param *p = &f->to->param[i];
        bool last = p->role == FTH_ROLE_O || p->role == FTH_ROLE_O_BIAS ||
                    p->role == FTH_ROLE_FC2 || p->role == FTH_ROLE_FC2_BIAS;
        if (!last || p->stack != stack) continue;
        for (int64_t k = 0; k < fth_param_size(p); k++)
            f->to_flat[p->offset + k] = (float)(f->to_flat[p->offset + k] * factor);
    }
}

/* Index of a parameter by its place, -1: not there. */
static int32_t at(const fth_params *params, fth_stack stack, int32_t layer, const char *suffix) {
    const char *name = stack == FTH_ENCODER ? "encoder" : "decoder";
    char full[160];
    if (stack == FTH_NO_STACK)
        snprintf(full, sizeof full, "%s", suffix);
    else if (layer < 0)
        snprintf(full, sizeof full, "%s.%s", name, suffix);
    else
        snprintf(full, sizeof full, "%s.layers.%d.%s", name, layer, suffix);
    return fth_params_find(params, full);
}

const float *fth_fold_source(const fth_fold *f, fth_stack stack, int32_t layer,
                             const char *suffix) {
    int32_t i = at(f->from, stack, layer, suffix);
    return i < 0 ? NULL : f->from_flat + f->from->param[i].offset;
}

float *fth_fold_target(fth_fold *f, fth_stack stack, int32_t layer, const char *suffix) {
    int32_t i = at(f->to, stack, layer, suffix);
    return i < 0 ? NULL : f->to_flat + f->to->param[i].offset;
}
