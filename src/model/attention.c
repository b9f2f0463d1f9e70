/* attention.c: the self-attention and cross-attention branches (doc/mathematics.md#sub-layers). */
#include <math.h>
#include <stdio.h>

#include "model/build.h"

/* Weights and biases of one attention: q, k and v lie behind one another. */
typedef struct projections {
    fth_val qkv, qkv_bias; /* [3d, d], [1, 3d] */
    fth_val out, out_bias; /* [d, d], [1, d] */
} projections;

static projections declare(fth_build *w, fth_sub sub) {
    static const fth_role weights[3] = {FTH_ROLE_Q, FTH_ROLE_K, FTH_ROLE_V};
    static const fth_role biases[3] = {FTH_ROLE_Q_BIAS, FTH_ROLE_K_BIAS, FTH_ROLE_V_BIAS};
    static const char *const names[2][8] = {
        {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight",
         "self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias",
         "self_attn.out_proj.weight", "self_attn.out_proj.bias"},
        {"encoder_attn.q_proj.weight", "encoder_attn.k_proj.weight", "encoder_attn.v_proj.weight",
         "encoder_attn.q_proj.bias", "encoder_attn.k_proj.bias", "encoder_attn.v_proj.bias",
         "encoder_attn.out_proj.weight", "encoder_attn.out_proj.bias"}};
    const char *const *name = names[sub == FTH_CROSS];
    const fth_init zero = fth_init_const(0);
    int64_t d = w->config->d_model;
    fth_builder *b = &w->b;
    projections p = {0};
    p.qkv = fth_params_at(b, weights, 3, d, d, fth_xavier_uniform(1 / sqrt(2)), name);
    if (!w->method->no_bias) p.qkv_bias = fth_params_at(b, biases, 3, 0, d, zero, name + 3);
    p.out = fth_param_at(b, FTH_ROLE_O, d, d, fth_xavier_uniform(1), name[6]);
    if (!w->method->no_bias) p.out_bias = fth_param_at(b, FTH_ROLE_O_BIAS, 0, d, zero, name[7]);
    return p;
}

/* x W^T + b with parts [first, first + count) of q, k, v. */
static fth_val project(fth_build *w, const projections *p, fth_val x, int first, int count) {
    int64_t d = w->config->d_model;
    fth_val weight = fth_param_part(&w->b, p->qkv, first * d * d, count * d, d);
    fth_val bias = p->qkv_bias ? fth_param_part(&w->b, p->qkv_bias, first * d, 1, count * d) : 0;
    return fth_linear(&w->b, x, weight, bias, FTH_ACT_NONE);
}

/* Keys and values of the cross-attention: computed here, or (in a step) made by the encode
 * graph. */
static fth_val cross_memory(fth_build *w, const projections *p, int32_t layer, fth_val memory) {
    if (!w->step) return project(w, p, memory, 1, 2);
    w->memory[layer] = fth_state(&w->b, w->src_capacity, 2 * (int64_t)w->config->d_model);
    return w->memory[layer];
}

static fth_val finish(fth_build *w, const fth_site *s, const projections *p, fth_val o) {
    fth_builder *b = &w->b;
    if (w->method->inner) o = w->method->inner(b, s, o);
    fth_val y = fth_linear(b, o, p->out, p->out_bias, FTH_ACT_NONE);
    return w->method->after ? w->method->after(b, s, y) : y;
}

fth_val fth_build_attention(fth_build *w, const fth_site *s, fth_val x, fth_val memory) {
    fth_builder *b = &w->b;
    int d = w->config->d_model;
    projections p = declare(w, s->sub);
    fth_side side = s->stack == FTH_ENCODER ? FTH_SRC : FTH_TGT;
    fth_attention_spec spec = {.q_side = side,
                               .k_side = s->sub == FTH_CROSS ? FTH_SRC : side,
                               .causal = s->sub == FTH_SELF && s->stack == FTH_DECODER};
    fth_val q, k, v, scores = 0;
    if (s->sub == FTH_SELF) {
        fth_val qkv = project(w, &p, x, 0, 3);
        q = fth_columns(b, qkv, 0, d);
        k = fth_columns(b, qkv, d, d);
        v = fth_columns(b, qkv, 2 * d, d);
        if (w->step) {
            spec.key_cache = fth_state(b, w->slots, d);
            spec.value_cache = fth_state(b, w->slots, d);
        }
    } else {
        q = project(w, &p, x, 0, 1);
        fth_val kv = cross_memory(w, &p, s->layer, memory);
        k = fth_columns(b, kv, 0, d);
        v = fth_columns(b, kv, d, d);
    }
    if (w->method->attend) w->method->attend(b, s, &spec);
    fth_val o = fth_attention(b, q, k, v, &spec, &scores);
    if (w->method->attended) w->method->attended(b, s, scores);
    if (w->taps) fth_taps_attention(w->taps, b, o, scores);
    return finish(w, s, &p, o);
}

fth_val fth_build_memory(fth_build *w, int32_t layer, fth_val encoder_out) {
    fth_builder *b = &w->b;
    b->stack = FTH_DECODER;
    b->layer = layer;
    b->sub = FTH_CROSS;
    projections p = declare(w, FTH_CROSS);
    fth_val kv = project(w, &p, encoder_out, 1, 2);
    fth_keep(b, kv);
    return kv;
}
