/* fold_hooks.h: what a method needs to turn a trained model into plain Post-LN, or Pre-LN.
 *
 * The target starts with every parameter of the same name copied; the method's hooks change its
 * configuration and the values. */
#ifndef FTH_METHOD_FOLD_HOOKS_H
#define FTH_METHOD_FOLD_HOOKS_H

#include "method/method.h"

typedef struct fth_fold {
    const fth_method_state *state; /* of the trained model */
    const fth_params *from;
    const float *from_flat;
    fth_config *config;   /* of the target: the plain method, otherwise as the source */
    const fth_params *to; /* NULL while the configuration is made */
    float *to_flat;
} fth_fold;

/* Multiplies the last map of every branch of a stack, weights and bias. */
void fth_fold_scale_branches(fth_fold *f, fth_stack stack, double factor);

/* A parameter's numbers by its place; NULL: not there. */
const float *fth_fold_source(const fth_fold *f, fth_stack stack, int32_t layer, const char *suffix);
float *fth_fold_target(fth_fold *f, fth_stack stack, int32_t layer, const char *suffix);

#endif
