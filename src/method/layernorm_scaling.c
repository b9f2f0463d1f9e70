/* layernorm_scaling.c: Pre-LN whose branches read LN(x) / sqrt(l), l the number of the layer
 * from 1. */
#include <math.h>
#include <stdio.h>

#include "method/fold_hooks.h"

static double scale_of(int32_t layer) {
    return 1 / sqrt((double)layer + 1);
}

static fth_val pre(fth_builder *b, const fth_site *s, fth_val x) {
    return fth_scaled(b, fth_norm(b, x, s->norm), scale_of(s->layer));
}

static void multiply(float *row, int64_t width, double factor) {
    for (int64_t i = 0; row && i < width; i++) row[i] = (float)(row[i] * factor);
}

/* The factor goes into gain and bias of the norm. */
static fth_err fold(fth_fold *f) {
    static const char *const names[] = {
        "self_attn_layer_norm.weight",    "self_attn_layer_norm.bias",
        "encoder_attn_layer_norm.weight", "encoder_attn_layer_norm.bias",
        "final_layer_norm.weight",        "final_layer_norm.bias"};
    const fth_config *c = f->state->config;
    for (int stack = FTH_ENCODER; stack <= FTH_DECODER; stack++)
        for (int32_t l = 0; l < fth_stack_layers(c, (fth_stack)stack); l++)
            for (size_t k = 0; k < sizeof names / sizeof *names; k++)
                multiply(fth_fold_target(f, (fth_stack)stack, l, names[k]), c->d_model,
                         scale_of(l));
    return FTH_OK;
}

const fth_method fth_method_layernorm_scaling = {
    .id = "lns",
    .title = "LayerNorm scaling",
    .paper = "Sun et al. 2025, arXiv 2502.05795",
    .equation = "x <- x + D(G(LN(x) / sqrt(l))), l the layer from 1; LN on top of each stack",
    .extra = "one LN per stack",
    .export_to = "plain Pre-LN, exact",
    .advice = "trains without warm-up",
    .norm = FTH_NORM_PRE,
    .final_norm = true,
    .pre = pre,
    .fold = fold,
};
