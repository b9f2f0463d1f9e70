/* plain.c: brings a model into the form that other programs hold: plain Post-LN or Pre-LN, one eps
 * for all layer norms, positions as a table. Each step keeps the outputs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange/format.h"
#include "graph/positions.h"
#include "model/fold.h"

void fth_weighted_fini(fth_weighted *w) {
    if (w->there) fth_model_fini(&w->model);
    free(w->flat);
    w->flat = NULL;
    w->there = false;
}

void fth_plain_method(fth_config *c, fth_norm_place norm) {
    snprintf(c->method, sizeof c->method, "%s", fth_method_plain(norm)->id);
}

static void scale(float *x, int64_t n, double factor) {
    for (int64_t i = 0; i < n; i++) x[i] = (float)(x[i] * factor);
}

void fth_scale_param(const fth_model *m, float *flat, const char *name, double factor) {
    const int32_t at = fth_params_find(&m->params, name);
    if (at >= 0)
        scale(flat + m->params.param[at].offset, fth_param_size(&m->params.param[at]), factor);
}

/* The name of the layer norm whose output becomes logits, without ".weight". */
static void top_norm(const fth_model *m, char out[64]) {
    const fth_config *c = &m->config;
    const bool encoder = c->arch == FTH_ENC;
    if (c->head == FTH_HEAD_MASKED_TOKEN)
        snprintf(out, 64, "head.layer_norm");
    else if (m->method.method->final_norm)
        snprintf(out, 64, "%s.layer_norm", encoder ? "encoder" : "decoder");
    else
        snprintf(out, 64, "%s.layers.%d.final_layer_norm", encoder ? "encoder" : "decoder",
                 (encoder ? c->encoder_layers : c->decoder_layers) - 1);
}

void fth_scale_top(const fth_model *m, float *flat, double factor) {
    char norm[64], name[80];
    top_norm(m, norm);
    snprintf(name, sizeof name, "%s.weight", norm);
    fth_scale_param(m, flat, name, factor);
    snprintf(name, sizeof name, "%s.bias", norm);
    fth_scale_param(m, flat, name, factor);
}

/* Whether the matrix of the logits is that of the words that are read. */
static bool tied_logits(const fth_config *c) {
    const bool words = c->head == FTH_HEAD_NEXT_TOKEN || c->head == FTH_HEAD_MASKED_TOKEN;
    return words && c->share != FTH_SHARE_NONE;
}

void fth_adjust_embeddings(const fth_model *m, float *flat, bool out) {
    static const char *const tables[] = {"embed_tokens.weight", "encoder.embed_tokens.weight",
                                         "decoder.embed_tokens.weight"};
    const double root = sqrt((double)m->config.d_model), factor = out ? root : 1 / root;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        fth_scale_param(m, flat, tables[i], factor);
    if (tied_logits(&m->config)) fth_scale_top(m, flat, 1 / factor);
}

/* ---- one eps ----
 *
 * LN_eps(z) = LN_{s^2 eps}(s z). So the residual stream is carried s times as large: embeddings,
 * positions and the ends of branches times s. In Post-LN what a norm gives is part of the stream,
 * so its gain and bias are too, and whatever reads the stream divides by s; only the last norm of a
 * stack is read by others and stays. */

static double eps_of(const fth_config *c, int stack) {
    return stack == FTH_ENCODER ? c->encoder_layer_norm_eps : c->decoder_layer_norm_eps;
}

/* The one that all norms are to have. Norms of heads have that of the model. */
static double common_eps(const fth_config *c, double wanted) {
    if (wanted > 0) return wanted;
    if (c->arch == FTH_DEC) return c->decoder_layer_norm_eps;
    const bool same = c->encoder_layer_norm_eps == c->decoder_layer_norm_eps;
    return c->arch == FTH_ENCDEC && same ? c->encoder_layer_norm_eps : c->layer_norm_eps;
}

/* By what a parameter of a stack is multiplied. */
static double level_factor(const fth_model *m, const fth_param *p, double s) {
    const bool post = m->method.method->norm == FTH_NORM_POST;
    const int32_t last = fth_stack_layers(&m->config, p->stack) - 1;
    const bool top = p->layer == last && p->sub == FTH_FFN;
    switch (p->role) {
    case FTH_ROLE_POSITIONS:
    case FTH_ROLE_O:
    case FTH_ROLE_O_BIAS:
    case FTH_ROLE_FC2:
    case FTH_ROLE_FC2_BIAS: return s;
    case FTH_ROLE_GAIN:
    case FTH_ROLE_NORM_BIAS:
        if (p->layer < 0) return strstr(p->name, "layernorm_embedding") ? s : 1;
        return post && !top ? s : 1;
    case FTH_ROLE_Q:
    case FTH_ROLE_FC1: return post ? 1 / s : 1;
    case FTH_ROLE_K:
    case FTH_ROLE_V: return post && p->sub == FTH_SELF ? 1 / s : 1;
    default: return 1;
    }
}

static void level_stack(fth_weighted *w, fth_stack stack, double s) {
    for (int32_t i = 0; i < w->model.params.n; i++) {
        const fth_param *p = &w->model.params.param[i];
        if (p->stack != stack) continue;
        const double factor = level_factor(&w->model, p, s);
        if (factor != 1) scale(w->flat + p->offset, fth_param_size(p), factor);
    }
    fth_scale_param(
        &w->model, w->flat,
        stack == FTH_ENCODER ? "encoder.embed_tokens.weight" : "decoder.embed_tokens.weight", s);
    if (fth_params_find(&w->model.params, "embed_tokens.weight") >= 0) { /* a stack alone, tied */
        fth_scale_param(&w->model, w->flat, "embed_tokens.weight", s);
        if (tied_logits(&w->model.config)) fth_scale_top(&w->model, w->flat, 1 / s);
    }
}

/* ---- another configuration of the same model ---- */

static const float *numbers_of(const fth_weighted *w, const char *name) {
    const int32_t at = fth_params_find(&w->model.params, name);
    return at < 0 ? NULL : w->flat + w->model.params.param[at].offset;
}

/* Where a parameter that `from` has not under its name gets its numbers. */
static const float *source_of(const fth_weighted *from, const fth_param *p) {
    const float *own = numbers_of(from, p->name);
    if (own) return own;
    const float *shared = numbers_of(from, "embed_tokens.weight");
    if (p->role == FTH_ROLE_EMBED) return shared;
    if (p->role != FTH_ROLE_OUTPUT) return NULL;
    return shared ? shared : numbers_of(from, "decoder.embed_tokens.weight");
}

static fth_err fill(const fth_weighted *from, fth_weighted *to) {
    for (int32_t i = 0; i < to->model.params.n; i++) {
        const fth_param *p = &to->model.params.param[i];
        const float *numbers = source_of(from, p);
        float *out = to->flat + p->offset;
        if (numbers)
            memcpy(out, numbers, sizeof *out * (size_t)fth_param_size(p));
        else if (p->role == FTH_ROLE_POSITIONS)
            for (int64_t k = 0; k < fth_param_size(p); k++)
                out[k] = (float)fth_sinusoid(k / p->shape[1], k % p->shape[1], p->shape[1]);
        else
            return fth_fail(FTH_FAILED, "%s has no source", p->name);
    }
    return FTH_OK;
}

static fth_err reshape(const fth_weighted *from, const fth_config *config, fth_weighted *to) {
    FTH_TRY(fth_model_init(&to->model, config));
    to->there = true;
    to->flat = calloc((size_t)to->model.params.size, sizeof *to->flat);
    if (!to->flat) return fth_fail(FTH_NO_MEMORY, "no memory for a copy of the model");
    return fill(from, to);
}

static fth_err folded(const fth_weighted *from, fth_weighted *out) {
    const fth_method *method = from->model.method.method;
    if (method->plain || !method->fold) return reshape(from, &from->model.config, out);
    FTH_TRY(fth_model_fold(&from->model, from->flat, &out->model, &out->flat));
    out->there = true;
    return FTH_OK;
}

/* Both stacks get the eps of the format, or that of the first stack there is. */
static fth_err leveled(const fth_format *format, const fth_weighted *from, fth_weighted *out) {
    fth_config config = from->model.config;
    const bool has[] = {config.arch != FTH_DEC, config.arch != FTH_ENC};
    const double eps = common_eps(&config, format->eps);
    double s[2] = {1, 1};
    for (int stack = 0; stack < 2; stack++)
        if (has[stack] && format->one_eps) s[stack] = sqrt(eps / eps_of(&config, stack));
    const bool level = s[0] != 1 || s[1] != 1;
    if (level && config.arch == FTH_ENCDEC) config.share = FTH_SHARE_NONE;
    if (level || format->table) config.positions = FTH_LEARNED;
    if (format->one_eps)
        config.layer_norm_eps = config.encoder_layer_norm_eps = config.decoder_layer_norm_eps = eps;
    FTH_TRY(reshape(from, &config, out));
    for (int stack = 0; stack < 2; stack++)
        if (s[stack] != 1) level_stack(out, (fth_stack)stack, s[stack]);
    return FTH_OK;
}

fth_err fth_plain_make(const fth_format *format, const fth_weighted *from, fth_weighted *out) {
    fth_weighted plain = {0};
    if (format->any_method) return reshape(from, &from->model.config, out);
    fth_err err = folded(from, &plain);
    if (err == FTH_OK) err = leveled(format, &plain, out);
    fth_weighted_fini(&plain);
    return err;
}

fth_err fth_untie(fth_weighted *w, int32_t more) {
    fth_weighted to = {0};
    fth_config config = w->model.config;
    config.share = FTH_SHARE_NONE;
    fth_err err = reshape(w, &config, &to);
    const int32_t at =
        err == FTH_OK ? fth_params_find(&to.model.params, "output_projection.weight") : -1;
    if (at >= 0) {
        const fth_param *p = &to.model.params.param[at];
        const int64_t n = more * p->shape[1];
        memset(to.flat + p->offset + fth_param_size(p) - n, 0, sizeof *to.flat * (size_t)n);
    }
    fth_weighted_fini(err == FTH_OK ? w : &to);
    if (err != FTH_OK) return err;
    FTH_TRY(fth_model_init(&w->model, &config)); /* a model does not move: it is made again */
    w->there = true;
    w->flat = to.flat;
    to.flat = NULL;
    fth_weighted_fini(&to);
    return FTH_OK;
}
