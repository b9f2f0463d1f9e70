/* admin.c: x <- LN(omega_i x + D(G(x))), omega_i a learned vector set by one profiling pass, or
 * by a formula of the depth. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/positions.h"
#include "method/fold_hooks.h"

static const char *const skips[] = {"self_attn_skip", "encoder_attn_skip", "ffn_skip"};

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
    double r = fth_stack_branches(s->config, p->stack);
    return fth_init_const(sqrt((r + 1) / log(r + 1) - 1));
}

static const char *profiled(const fth_method_state *s, fth_sub sub) {
    return by_formula(s) ? NULL : skips[sub];
}

/* omega_1 scales the embeddings and positions, which must then be stored, and untied. */
static fth_err fold_config(fth_fold *f) {
    if (fth_config_is_adaptive(f->config))
        return fth_fail(FTH_BAD_CONFIG,
                        "a model with adaptive_cutoffs does not fold: its input is no "
                        "table that could be scaled");
    f->config->share = FTH_SHARE_NONE;
    f->config->positions = FTH_LEARNED;
    return FTH_OK;
}

static void divide_columns(float *weight, int64_t rows, int64_t width, const float *omega) {
    for (int64_t r = 0; weight && r < rows; r++)
        for (int64_t c = 0; c < width; c++) weight[r * width + c] /= omega[c];
}

static void multiply(float *row, const float *omega, int64_t width) {
    for (int64_t c = 0; c < width; c++) row[c] *= omega[c];
}

/* The input of a stack times omega_1. */
static void fold_input(fth_fold *f, fth_stack stack, const float *omega) {
    const fth_config *c = f->state->config;
    int64_t d = c->d_model, vocab = stack == FTH_ENCODER ? c->src_vocab : c->tgt_vocab;
    const float *from = fth_fold_source(f, FTH_NO_STACK, -1, "embed_tokens.weight");
    if (!from) from = fth_fold_source(f, stack, -1, "embed_tokens.weight");
    float *table = fth_fold_target(f, stack, -1, "embed_tokens.weight");
    memcpy(table, from, sizeof *table * (size_t)(vocab * d));
    for (int64_t v = 0; v < vocab; v++) multiply(table + v * d, omega, d);
    const float *learned = fth_fold_source(f, stack, -1, "embed_positions.weight");
    float *positions = fth_fold_target(f, stack, -1, "embed_positions.weight");
    for (int64_t k = 0; k < c->max_positions; k++) {
        for (int64_t i = 0; i < d; i++)
            positions[k * d + i] = learned ? learned[k * d + i] : (float)fth_sinusoid(k, i, d);
        multiply(positions + k * d, omega, d);
    }
}

/* The LN below sub-layer i gives omega_i x; what the sub-layer's branch reads is divided again. */
static fth_err fold_sublayer(fth_fold *f, fth_stack stack, int32_t layer, fth_sub sub,
                             const char *norm_below, int32_t layer_below) {
    const fth_config *c = f->state->config;
    int64_t d = c->d_model;
    char name[64];
    const float *omega = fth_fold_source(f, stack, layer, skips[sub]);
    for (int64_t i = 0; i < d; i++)
        if (omega[i] == 0)
            return fth_fail(FTH_BAD_INPUT,
                            "%s.layers.%d.%s[%lld] is 0 and cannot be folded: weights are divided "
                            "by it",
                            stack == FTH_ENCODER ? "encoder" : "decoder", layer, skips[sub],
                            (long long)i);
    if (norm_below) {
        snprintf(name, sizeof name, "%s.weight", norm_below);
        multiply(fth_fold_target(f, stack, layer_below, name), omega, d);
        snprintf(name, sizeof name, "%s.bias", norm_below);
        multiply(fth_fold_target(f, stack, layer_below, name), omega, d);
    } else {
        fold_input(f, stack, omega);
    }
    if (sub == FTH_FFN) {
        divide_columns(fth_fold_target(f, stack, layer, "fc1.weight"), c->ffn_dim, d, omega);
        return FTH_OK;
    }
    static const char *const maps[] = {"q_proj", "k_proj", "v_proj"};
    for (int k = 0; k < (sub == FTH_SELF ? 3 : 1); k++) {
        snprintf(name, sizeof name, "%s.%s.weight", sub == FTH_SELF ? "self_attn" : "encoder_attn",
                 maps[k]);
        divide_columns(fth_fold_target(f, stack, layer, name), d, d, omega);
    }
    return FTH_OK;
}

static fth_err fold(fth_fold *f) {
    static const char *const norms[] = {"self_attn_layer_norm", "encoder_attn_layer_norm",
                                        "final_layer_norm"};
    const fth_config *c = f->state->config;
    for (int stack = FTH_ENCODER; stack <= FTH_DECODER; stack++) {
        const char *below = NULL;
        int32_t layer_below = -1;
        for (int32_t l = 0; l < fth_stack_layers(c, (fth_stack)stack); l++)
            for (int sub = FTH_SELF; sub <= FTH_FFN; sub++) {
                if (sub == FTH_CROSS && (stack == FTH_ENCODER || c->arch != FTH_ENCDEC)) continue;
                FTH_TRY(fold_sublayer(f, (fth_stack)stack, l, (fth_sub)sub, below, layer_below));
                below = norms[sub];
                layer_below = l;
            }
    }
    const float *output = fth_fold_source(f, FTH_NO_STACK, -1, "output_projection.weight");
    if (!output) output = fth_fold_source(f, FTH_NO_STACK, -1, "embed_tokens.weight");
    if (!output) output = fth_fold_source(f, FTH_DECODER, -1, "embed_tokens.weight");
    memcpy(fth_fold_target(f, FTH_NO_STACK, -1, "output_projection.weight"), output,
           sizeof *output * (size_t)fth_config_output_vocab(c) * (size_t)c->d_model);
    return FTH_OK;
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
    .fold_config = fold_config,
    .fold = fold,
};
