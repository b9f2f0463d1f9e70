/* config.c: the default model and the rules that every model keeps (see config.h). */
#include "base/config.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define WITH_ENCODER (1u << FTH_ENCDEC | 1u << FTH_ENC)
#define WITH_DECODER (1u << FTH_ENCDEC | 1u << FTH_DEC)
#define ONLY_ENC     (1u << FTH_ENC)
#define ANY          (~0u)
#define TEXT         (1u << FTH_FRONT_TEXT)
#define IMAGE        (1u << FTH_FRONT_IMAGE)
#define SPEECH       (1u << FTH_FRONT_SPEECH)
#define OF_SAMPLE    (1u << FTH_HEAD_CLASS | 1u << FTH_HEAD_REGRESSION)
#define WITH_CLASSES (1u << FTH_HEAD_CLASS | 1u << FTH_HEAD_TOKEN_CLASS)

/* The keys that not every model has, and which do: bit sets by arch, front and head. A key with two
 * rows belongs to the models of either. */
static const struct owner {
    const char *key;
    unsigned archs, fronts, heads;
} owners[] = {
    {"encoder_layers", WITH_ENCODER, ANY, ANY},
    {"encoder_layer_norm_eps", WITH_ENCODER, ANY, ANY},
    {"decoder_layers", WITH_DECODER, ANY, ANY},
    {"decoder_layer_norm_eps", WITH_DECODER, ANY, ANY},
    {"src_vocab", WITH_ENCODER, TEXT, ANY},
    {"tgt_vocab", WITH_DECODER, ANY, ANY},
    {"share", ANY, TEXT | SPEECH, ANY},
    {"classes", ONLY_ENC, ANY, WITH_CLASSES},
    {"pool", ONLY_ENC, ANY, OF_SAMPLE},
    {"pool", ONLY_ENC, IMAGE, ANY},
    {"image_size", ANY, IMAGE, ANY},
    {"channels", ANY, IMAGE, ANY},
    {"patch", ANY, IMAGE, ANY},
    {"visual_tokens", ANY, IMAGE, 1u << FTH_HEAD_MASKED_TOKEN},
    {"features", ANY, SPEECH, ANY},
    {"adaptive_cutoffs", 1u << FTH_DEC, TEXT, ANY},
    {"adaptive_factor", 1u << FTH_DEC, TEXT, ANY},
    {"conv_channels", ANY, SPEECH, ANY},
};

/* Upper bounds keep products of two sizes far inside int64 and refuse slips of the finger. */
static const struct size_rule {
    const char *key;
    size_t offset;
    int32_t low, high; /* in a model that has the key; in the others it is 0 */
} size_rules[] = {
    {"encoder_layers", offsetof(fth_config, encoder_layers), 1, 100000},
    {"decoder_layers", offsetof(fth_config, decoder_layers), 1, 100000},
    {"d_model", offsetof(fth_config, d_model), 4, 1 << 17},
    {"ffn_dim", offsetof(fth_config, ffn_dim), 1, 1 << 20},
    {"heads", offsetof(fth_config, heads), 1, 1 << 17},
    {"src_vocab", offsetof(fth_config, src_vocab), 4, 1 << 24},
    {"tgt_vocab", offsetof(fth_config, tgt_vocab), 4, 1 << 24},
    {"max_positions", offsetof(fth_config, max_positions), 1, 1 << 24},
    {"classes", offsetof(fth_config, classes), 2, 1 << 24},
    {"visual_tokens", offsetof(fth_config, visual_tokens), 2, 1 << 24},
    {"image_size", offsetof(fth_config, image_size), 1, 1 << 14},
    {"image_size", offsetof(fth_config, image_size) + sizeof(int32_t), 1, 1 << 14},
    {"channels", offsetof(fth_config, channels), 1, 1 << 8},
    {"patch", offsetof(fth_config, patch), 1, 1 << 10},
    {"features", offsetof(fth_config, features), 1, 1 << 14},
    {"conv_channels", offsetof(fth_config, conv_channels), 2, 1 << 17},
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
        if (!fth_config_has(c, rule->key)) {
            if (value != 0)
                return fth_fail(FTH_BAD_CONFIG,
                                "%s %d: a model of arch %s, front %s and head %s "
                                "has none",
                                rule->key, value, fth_arch_name(c->arch), fth_front_name(c->front),
                                fth_head_name(c->head));
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

/* Which archs a front and a head go with. */
static fth_err check_parts(const fth_config *c) {
    const char *front = fth_front_name(c->front), *head = fth_head_name(c->head);
    const char *arch = fth_arch_name(c->arch);
    const bool plain = c->head == FTH_HEAD_NEXT_TOKEN;
    if (!plain && c->arch != FTH_ENC)
        return fth_fail(FTH_BAD_CONFIG, "head \"%s\" needs arch \"enc\", not \"%s\"", head, arch);
    if (c->front == FTH_FRONT_IMAGE && c->arch != FTH_ENC)
        return fth_fail(FTH_BAD_CONFIG, "front \"%s\" needs arch \"enc\", not \"%s\"", front, arch);
    if (c->front == FTH_FRONT_IMAGE && plain)
        return fth_fail(FTH_BAD_CONFIG,
                        "head is missing: front \"%s\" needs \"masked-token\", \"class\", "
                        "\"regression\" or \"token-class\"",
                        front);
    if (c->front == FTH_FRONT_SPEECH && c->arch != FTH_ENCDEC)
        return fth_fail(FTH_BAD_CONFIG, "front \"%s\" needs arch \"encdec\", not \"%s\"", front,
                        arch);
    if (c->front == FTH_FRONT_SPEECH && c->share == FTH_SHARE_ALL)
        return fth_fail(FTH_BAD_CONFIG,
                        "share \"all\" must be \"dec\" or \"none\": front \"%s\" has no words",
                        front);
    return FTH_OK;
}

static fth_err check_image(const fth_config *c) {
    if (c->front != FTH_FRONT_IMAGE) return FTH_OK;
    for (int k = 0; k < 2; k++)
        if (c->image_size[k] % c->patch)
            return fth_fail(FTH_BAD_CONFIG, "image_size [%d, %d]: %d is not a multiple of patch %d",
                            c->image_size[0], c->image_size[1], c->image_size[k], c->patch);
    const int32_t rows = fth_config_patches(c) + fth_config_has_cls(c);
    if (rows > c->max_positions)
        return fth_fail(FTH_BAD_CONFIG, "max_positions %d must be at least %d: %d patches%s",
                        c->max_positions, rows, fth_config_patches(c),
                        fth_config_has_cls(c) ? " and the class token" : "");
    return FTH_OK;
}

static fth_err check_speech(const fth_config *c) {
    if (c->front != FTH_FRONT_SPEECH || c->conv_channels % 2 == 0) return FTH_OK;
    return fth_fail(FTH_BAD_CONFIG, "conv_channels %d must be even: one half gates the other",
                    c->conv_channels);
}

bool fth_config_is_adaptive(const fth_config *c) {
    return c->adaptive_cutoffs[0] != 0 || c->adaptive_cutoffs[1] != 0;
}

int32_t fth_config_band_width(const fth_config *c, int i) {
    return (int32_t)floor(c->d_model / pow(c->adaptive_factor, i));
}

static fth_err check_adaptive(const fth_config *c) {
    const int32_t low = c->adaptive_cutoffs[0], high = c->adaptive_cutoffs[1];
    if (!fth_config_is_adaptive(c)) return FTH_OK;
    if (c->arch != FTH_DEC)
        return fth_fail(FTH_BAD_CONFIG, "adaptive_cutoffs [%d, %d] need arch \"dec\", not \"%s\"",
                        low, high, fth_arch_name(c->arch));
    if (low < 1 || high <= low || high >= c->tgt_vocab)
        return fth_fail(FTH_BAD_CONFIG,
                        "adaptive_cutoffs [%d, %d] must rise, from 1 to %d (below tgt_vocab %d)",
                        low, high, c->tgt_vocab - 1, c->tgt_vocab);
    if (!(c->adaptive_factor >= 1) || fth_config_band_width(c, 2) < 1)
        return fth_fail(
            FTH_BAD_CONFIG,
            "adaptive_factor %g must be 1 to %g: d_model %d divided by it twice is a width",
            c->adaptive_factor, sqrt((double)c->d_model), c->d_model);
    if (c->word_dropout > 0)
        return fth_fail(FTH_BAD_CONFIG, "word_dropout %g must be 0 with adaptive_cutoffs",
                        c->word_dropout);
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
        !fth_activation_name(c->activation) || !fth_positions_name(c->positions) ||
        !fth_pool_name(c->pool) || !fth_front_name(c->front) || !fth_head_name(c->head))
        return fth_fail(FTH_BAD_CONFIG,
                        "arch %d, share %d, activation %d, positions %d, pool %d, front %d or head "
                        "%d is outside its list",
                        (int)c->arch, (int)c->share, (int)c->activation, (int)c->positions,
                        (int)c->pool, (int)c->front, (int)c->head);
    if (!c->method[0]) return fth_fail(FTH_BAD_CONFIG, "method is empty: it must name a method");
    FTH_TRY(check_options(c));
    FTH_TRY(check_parts(c));
    FTH_TRY(check_sizes(c));
    FTH_TRY(check_image(c));
    FTH_TRY(check_speech(c));
    FTH_TRY(check_adaptive(c));
    FTH_TRY(check_reals(c));
    FTH_TRY(check_special_ids(c));
    if (c->step < 0 || c->step > FTH_MAX_COUNT)
        return fth_fail(FTH_BAD_CONFIG, "step %lld must be 0 or more and at most %lld",
                        (long long)c->step, (long long)FTH_MAX_COUNT);
    return FTH_OK;
}

int32_t fth_config_output_vocab(const fth_config *c) {
    if (c->head == FTH_HEAD_REGRESSION) return 1;
    if (fth_config_has(c, "classes")) return c->classes;
    if (fth_config_has(c, "visual_tokens")) return c->visual_tokens;
    return c->arch == FTH_ENC ? c->src_vocab : c->tgt_vocab;
}

int32_t fth_config_patches(const fth_config *c) {
    return c->patch ? c->image_size[0] / c->patch * (c->image_size[1] / c->patch) : 0;
}

bool fth_config_has_cls(const fth_config *c) {
    return c->front == FTH_FRONT_IMAGE && c->pool == FTH_POOL_FIRST;
}

bool fth_config_has(const fth_config *c, const char *key) {
    bool known = false;
    if (strcmp(key, "share") == 0 && fth_config_is_adaptive(c)) return false;
    if (strcmp(key, "adaptive_factor") == 0 && !fth_config_is_adaptive(c)) return false;
    for (size_t i = 0; i < COUNT(owners); i++) {
        const struct owner *o = &owners[i];
        if (strcmp(o->key, key) != 0) continue;
        known = true;
        if (o->archs >> c->arch & o->fronts >> c->front & o->heads >> c->head & 1u) return true;
    }
    return !known;
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

const char *fth_pool_name(fth_pool pool) {
    static const char *const names[] = {"first", "mean"};
    return (unsigned)pool < COUNT(names) ? names[pool] : NULL;
}

const char *fth_front_name(fth_front_id front) {
    static const char *const names[] = {"text", "image", "speech"};
    return (unsigned)front < COUNT(names) ? names[front] : NULL;
}

const char *fth_head_name(fth_head_id head) {
    static const char *const names[] = {"next-token", "masked-token", "class", "regression",
                                        "token-class"};
    return (unsigned)head < COUNT(names) ? names[head] : NULL;
}
