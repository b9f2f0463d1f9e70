/* config.c: the default model and the rules that every model keeps (see config.h). */
#include "base/config.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define WITH_ENCODER (1u << FTH_ENCDEC | 1u << FTH_ENC)
#define WITH_DECODER (1u << FTH_ENCDEC | 1u << FTH_DEC)
#define ANY_ARCH     (WITH_ENCODER | WITH_DECODER)

/* Upper bounds keep products of two sizes far inside int64 and refuse slips of the finger. */
static const struct size_rule {
    const char *key;
    size_t offset;
    int32_t low, high;
    unsigned archs; /* the archs that have the key; in the others it is 0 */
} size_rules[] = {
    {"encoder_layers", offsetof(fth_config, encoder_layers), 1, 100000, WITH_ENCODER},
    {"decoder_layers", offsetof(fth_config, decoder_layers), 1, 100000, WITH_DECODER},
    {"d_model", offsetof(fth_config, d_model), 4, 1 << 17, ANY_ARCH},
    {"ffn_dim", offsetof(fth_config, ffn_dim), 1, 1 << 20, ANY_ARCH},
    {"heads", offsetof(fth_config, heads), 1, 1 << 17, ANY_ARCH},
    {"src_vocab", offsetof(fth_config, src_vocab), 4, 1 << 24, WITH_ENCODER},
    {"tgt_vocab", offsetof(fth_config, tgt_vocab), 4, 1 << 24, WITH_DECODER},
    {"max_positions", offsetof(fth_config, max_positions), 1, 1 << 24, ANY_ARCH},
};

static const struct real_rule {
    const char *key;
    size_t offset;
    int is_eps; /* (0, 1) when set, else a rate in [0, 1) */
} real_rules[] = {
    {"layer_norm_eps", offsetof(fth_config, layer_norm_eps), 1},
    {"encoder_layer_norm_eps", offsetof(fth_config, encoder_layer_norm_eps), 1},
    {"decoder_layer_norm_eps", offsetof(fth_config, decoder_layer_norm_eps), 1},
    {"dropout", offsetof(fth_config, dropout), 0},
    {"attention_dropout", offsetof(fth_config, attention_dropout), 0},
    {"activation_dropout", offsetof(fth_config, activation_dropout), 0},
    {"word_dropout", offsetof(fth_config, word_dropout), 0},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

fth_config fth_config_default(void) {
    return (fth_config){
        .arch = FTH_ENCDEC,
        .encoder_layers = 6,
        .decoder_layers = 6,
        .d_model = 512,
        .ffn_dim = 2048,
        .heads = 8,
        .src_vocab = 8000,
        .tgt_vocab = 8000,
        .share = FTH_SHARE_ALL,
        .activation = FTH_RELU,
        .positions = FTH_SINUSOIDAL,
        .max_positions = 1024,
        .layer_norm_eps = 1e-5,
        .encoder_layer_norm_eps = 1e-5,
        .decoder_layer_norm_eps = 1e-5,
        .dropout = 0.1,
        .bos = 0,
        .pad = 1,
        .eos = 2,
        .unk = 3,
    };
}

static fth_err check_sizes(const fth_config *c) {
    for (size_t i = 0; i < COUNT(size_rules); i++) {
        const struct size_rule *rule = &size_rules[i];
        int32_t value;
        memcpy(&value, (const char *)c + rule->offset, sizeof value);
        if (!(rule->archs & 1u << c->arch)) {
            if (value != 0)
                return fth_fail(FTH_BAD_CONFIG, "%s %d: a model of arch %s has none", rule->key,
                                value, fth_arch_name(c->arch));
        } else if (value < rule->low || value > rule->high) {
            return fth_fail(FTH_BAD_CONFIG, "%s %d must be %d to %d", rule->key, value, rule->low,
                            rule->high);
        }
    }
    if (c->d_model % c->heads)
        return fth_fail(FTH_BAD_CONFIG, "d_model %d is not a multiple of heads %d", c->d_model,
                        c->heads);
    if (c->arch == FTH_ENCDEC && c->share == FTH_SHARE_ALL && c->src_vocab != c->tgt_vocab)
        return fth_fail(FTH_BAD_CONFIG,
                        "share \"all\" needs one vocabulary, but src_vocab is %d and tgt_vocab %d",
                        c->src_vocab, c->tgt_vocab);
    return FTH_OK;
}

static fth_err check_reals(const fth_config *c) {
    for (size_t i = 0; i < COUNT(real_rules); i++) {
        const struct real_rule *rule = &real_rules[i];
        double value;
        memcpy(&value, (const char *)c + rule->offset, sizeof value);
        if (rule->is_eps && !(value > 0.0 && value < 1.0))
            return fth_fail(FTH_BAD_CONFIG, "%s %g must be above 0 and below 1", rule->key, value);
        if (!rule->is_eps && !(value >= 0.0 && value < 1.0))
            return fth_fail(FTH_BAD_CONFIG, "%s %g must be at least 0 and below 1", rule->key,
                            value);
    }
    return FTH_OK;
}

static fth_err check_special_ids(const fth_config *c) {
    const struct {
        const char *key;
        int32_t id;
    } ids[] = {{"bos", c->bos}, {"pad", c->pad}, {"eos", c->eos}, {"unk", c->unk}};
    const struct {
        const char *key;
        int32_t size;
    } vocabs[] = {{"src_vocab", c->src_vocab}, {"tgt_vocab", c->tgt_vocab}};

    for (size_t i = 0; i < COUNT(ids); i++) {
        for (size_t v = 0; v < COUNT(vocabs); v++) {
            if (vocabs[v].size != 0 && (ids[i].id < 0 || ids[i].id >= vocabs[v].size))
                return fth_fail(FTH_BAD_CONFIG, "%s %d must be 0 to %d (below %s %d)", ids[i].key,
                                ids[i].id, vocabs[v].size - 1, vocabs[v].key, vocabs[v].size);
        }
        for (size_t j = 0; j < i; j++) {
            if (ids[i].id == ids[j].id)
                return fth_fail(FTH_BAD_CONFIG, "%s %d is the id of %s too: they must differ",
                                ids[i].key, ids[i].id, ids[j].key);
        }
    }
    return FTH_OK;
}

static fth_err check_options(const fth_config *c) {
    if (c->n_options < 0 || c->n_options > FTH_MAX_METHOD_OPTIONS)
        return fth_fail(FTH_BAD_CONFIG, "method_options has %d entries, at most %d are possible",
                        c->n_options, FTH_MAX_METHOD_OPTIONS);
    for (int32_t i = 0; i < c->n_options; i++) {
        const fth_method_option *o = &c->options[i];
        if (!o->key[0]) return fth_fail(FTH_BAD_CONFIG, "method_options has an empty key");
        if (o->type == FTH_OPT_NUMBER && !isfinite(o->number))
            return fth_fail(FTH_BAD_CONFIG, "method_options %s %g must be finite", o->key,
                            o->number);
        for (int32_t j = 0; j < i; j++) {
            if (!strcmp(o->key, c->options[j].key))
                return fth_fail(FTH_BAD_CONFIG, "method_options %s is given twice", o->key);
        }
    }
    return FTH_OK;
}

fth_err fth_config_validate(const fth_config *c) {
    if (!fth_arch_name(c->arch) || !fth_share_name(c->share) ||
        !fth_activation_name(c->activation) || !fth_positions_name(c->positions))
        return fth_fail(FTH_BAD_CONFIG,
                        "arch %d, share %d, activation %d or positions %d is outside its list",
                        (int)c->arch, (int)c->share, (int)c->activation, (int)c->positions);
    if (!c->method[0]) return fth_fail(FTH_BAD_CONFIG, "method is empty: it must name a method");
    FTH_TRY(check_options(c));
    FTH_TRY(check_sizes(c));
    FTH_TRY(check_reals(c));
    FTH_TRY(check_special_ids(c));
    if (c->step < 0 || c->step > FTH_MAX_COUNT)
        return fth_fail(FTH_BAD_CONFIG, "step %lld must be 0 or more and at most %lld",
                        (long long)c->step, (long long)FTH_MAX_COUNT);
    return FTH_OK;
}

int32_t fth_config_output_vocab(const fth_config *c) {
    return c->arch == FTH_ENC ? c->src_vocab : c->tgt_vocab;
}

const char *fth_arch_name(fth_arch arch) {
    static const char *const names[] = {"encdec", "enc", "dec"};
    return (unsigned)arch < COUNT(names) ? names[arch] : NULL;
}

const char *fth_share_name(fth_share share) {
    static const char *const names[] = {"none", "dec", "all"};
    return (unsigned)share < COUNT(names) ? names[share] : NULL;
}

const char *fth_activation_name(fth_activation activation) {
    static const char *const names[] = {"relu", "gelu"};
    return (unsigned)activation < COUNT(names) ? names[activation] : NULL;
}

const char *fth_positions_name(fth_positions positions) {
    static const char *const names[] = {"sinusoidal", "learned"};
    return (unsigned)positions < COUNT(names) ? names[positions] : NULL;
}
