/* model_options.c: turns the options of a model into its configuration. */
#include "cli/model_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "k=v": a number, true or false, or a word. */
static fth_err add_method_option(fth_config *c, const char *text) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return fth_fail(FTH_USAGE, "--method-option %s: must be KEY=VALUE", text);
    if (c->n_options == FTH_MAX_METHOD_OPTIONS)
        return fth_fail(FTH_USAGE, "--method-option %s: at most %d options", text,
                        FTH_MAX_METHOD_OPTIONS);
    fth_method_option *o = &c->options[c->n_options];
    *o = (fth_method_option){0};
    size_t length = (size_t)(equals - text);
    if (length >= sizeof o->key || strlen(equals + 1) >= sizeof o->text || !equals[1])
        return fth_fail(FTH_USAGE, "--method-option %s: key or value is empty or too long", text);
    memcpy(o->key, text, length);
    for (int i = 0; i < c->n_options; i++)
        if (strcmp(c->options[i].key, o->key) == 0)
            return fth_fail(FTH_USAGE, "--method-option %s: %s is given twice", text, o->key);
    char *end;
    o->number = strtod(equals + 1, &end);
    if (*end == '\0') {
        o->type = FTH_OPT_NUMBER;
    } else if (strcmp(equals + 1, "true") == 0 || strcmp(equals + 1, "false") == 0) {
        o->type = FTH_OPT_BOOL;
        o->number = equals[1] == 't';
    } else {
        o->type = FTH_OPT_STRING;
        snprintf(o->text, sizeof o->text, "%s", equals + 1);
    }
    c->n_options++;
    return FTH_OK;
}

/* "20000,60000" */
static fth_err parse_cutoffs(const char *text, int32_t out[2]) {
    const char *at = text;
    for (int k = 0; k < 2; k++) {
        char *end;
        const long value = strtol(at, &end, 10);
        if (end == at || *end != (k ? '\0' : ',') || value < 1 || value > 1 << 24)
            return fth_fail(FTH_USAGE, "--adaptive-cutoffs %s: must be two numbers, as 20000,60000",
                            text);
        out[k] = (int32_t)value;
        at = end + 1;
    }
    return FTH_OK;
}

/* "auto" stays next-token until the data set is known. */
static void take_head(const fth_model_options *o, fth_config *c) {
    for (int head = FTH_HEAD_NEXT_TOKEN; head <= FTH_HEAD_TOKEN_CLASS; head++)
        if (strcmp(o->head, fth_head_name((fth_head_id)head)) == 0) c->head = (fth_head_id)head;
    c->pool = strcmp(o->pool, "mean") == 0 ? FTH_POOL_MEAN : FTH_POOL_FIRST;
}

fth_err fth_config_from_options(const fth_model_options *o, fth_config *out) {
    fth_config c = fth_config_default();
    c.arch = strcmp(o->arch, "enc") == 0   ? FTH_ENC
             : strcmp(o->arch, "dec") == 0 ? FTH_DEC
                                           : FTH_ENCDEC;
    if (c.arch == FTH_ENC) take_head(o, &c);
    if (strlen(o->method) >= sizeof c.method)
        return fth_fail(FTH_USAGE, "--method %.40s: does not exist", o->method);
    snprintf(c.method, sizeof c.method, "%s", o->method);
    for (size_t i = 0; i < o->method_option.count; i++)
        FTH_TRY(add_method_option(&c, o->method_option.items[i]));
    c.encoder_layers = c.arch == FTH_DEC ? 0 : (int32_t)o->encoder_layers;
    c.decoder_layers = c.arch == FTH_ENC ? 0 : (int32_t)o->decoder_layers;
    c.d_model = (int32_t)o->d_model;
    c.ffn_dim = (int32_t)o->ffn_dim;
    c.heads = (int32_t)o->heads;
    c.share = strcmp(o->share, "all") == 0   ? FTH_SHARE_ALL
              : strcmp(o->share, "dec") == 0 ? FTH_SHARE_DEC
                                             : FTH_SHARE_NONE;
    if (o->adaptive_cutoffs[0]) {
        FTH_TRY(parse_cutoffs(o->adaptive_cutoffs, c.adaptive_cutoffs));
        c.adaptive_factor = o->adaptive_factor;
        c.share = FTH_SHARE_NONE;
    }
    c.activation = strcmp(o->activation, "gelu") == 0 ? FTH_GELU : FTH_RELU;
    c.positions = strcmp(o->positions, "learned") == 0 ? FTH_LEARNED : FTH_SINUSOIDAL;
    c.max_positions = (int32_t)o->max_positions;
    c.layer_norm_eps = c.encoder_layer_norm_eps = c.decoder_layer_norm_eps = o->layer_norm_eps;
    c.dropout = o->dropout;
    c.attention_dropout = o->attention_dropout;
    c.activation_dropout = o->activation_dropout;
    c.word_dropout = o->word_dropout;
    *out = c;
    return FTH_OK;
}
