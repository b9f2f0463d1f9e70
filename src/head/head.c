/* head.c: finds the head that a config asks for in heads.def, and what heads have in common. */
#include "head/head.h"

#include <stdio.h>

#include "front/front.h"

const fth_head *fth_head_of(const fth_config *c) {
    static const fth_head *const all[] = {
#define HEAD(id, name) [id] = &fth_head_##name,
#include "head/heads.def"
#undef HEAD
    };
    return all[c->head];
}

fth_extent fth_head_rows(const fth_config *c) {
    return c->arch == FTH_ENC ? fth_head_of(c)->rows : FTH_ROWS_TGT;
}

fth_target_form fth_head_targets(const fth_config *c) {
    const fth_target_form form = fth_head_of(c)->targets;
    const bool words = fth_front_of(c)->input == FTH_INPUT_TOKENS || c->arch != FTH_ENC;
    return form == FTH_TARGET_WORDS && !words ? FTH_TARGET_ROWS : form;
}

fth_head_map fth_head_map_at(fth_builder *b, int64_t n, int64_t k, const char *name) {
    char weight[64], bias[64];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    return (fth_head_map){
        .weight = fth_param_at(b, FTH_ROLE_HEAD, n, k, fth_xavier_uniform(1), weight),
        .bias = fth_param_at(b, FTH_ROLE_HEAD_BIAS, 0, n, fth_init_const(0), bias)};
}

void fth_head_classify(fth_builder *b, const fth_head_spec *spec, fth_val x, fth_head_map map,
                       fth_head_outputs *out) {
    if (spec->logits) {
        out->logits = fth_linear(b, x, map.weight, map.bias, FTH_ACT_NONE);
        fth_keep(b, out->logits);
    }
    out->loss = fth_xent(b, x, map.weight, map.bias, spec->smoothing, spec->row_nll);
}

fth_val fth_head_sample(fth_builder *b, fth_val x) {
    const fth_config *c = b->config;
    fth_val pooled =
        c->pool == FTH_POOL_MEAN ? fth_mean_rows(b, x) : fth_pick_rows(b, x, FTH_PICK_FIRST);
    const fth_head_map dense = fth_head_map_at(b, c->d_model, c->d_model, "head.dense");
    pooled = fth_dropout(b, pooled, c->dropout);
    fth_val h = fth_linear(b, pooled, dense.weight, dense.bias, FTH_ACT_NONE);
    return fth_dropout(b, fth_activate(b, h, FTH_ACT_TANH), c->dropout);
}
