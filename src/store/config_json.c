/* config_json.c: config.json to fth_config and back. One table says what the keys are; the rules
 * for their values are fth_config_validate's. */
#include "store/config_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/nearest.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What the name functions of base/config.h look like when any enum will do. */
#define NAME_OF(what)                                                                              \
    static const char *name_of_##what(int value) {                                                 \
        return fth_##what##_name((fth_##what)value);                                               \
    }
NAME_OF(arch)
NAME_OF(share)
NAME_OF(activation)
NAME_OF(positions)
NAME_OF(pool)

static const char *name_of_front(int value) {
    return fth_front_name((fth_front_id)value);
}

static const char *name_of_head(int value) {
    return fth_head_name((fth_head_id)value);
}

typedef enum key_type { CONSTANT, METHOD, OPTIONS, CHOICE, INT32, PAIR, INT64, REAL } key_type;

#define AT(field) offsetof(fth_config, field)

/* In the order in which the file is written; arch, front and head come before the keys that depend
 * on them (fth_config_has). An optional choice that is left out is the first of its list. */
static const struct key_row {
    const char *key;
    key_type type;
    size_t offset; /* of the field; unused by CONSTANT */
    int optional;
    const char *(*name)(int value); /* CHOICE: the word for a value */
} keys[] = {
    {"format", CONSTANT, 0, 0, NULL},
    {"version", CONSTANT, 0, 0, NULL},
    {"arch", CHOICE, AT(arch), 0, name_of_arch},
    {"front", CHOICE, AT(front), 1, name_of_front},
    {"head", CHOICE, AT(head), 1, name_of_head},
    {"method", METHOD, AT(method), 0, NULL},
    {"method_options", OPTIONS, AT(options), 1, NULL},
    {"encoder_layers", INT32, AT(encoder_layers), 0, NULL},
    {"decoder_layers", INT32, AT(decoder_layers), 0, NULL},
    {"d_model", INT32, AT(d_model), 0, NULL},
    {"ffn_dim", INT32, AT(ffn_dim), 0, NULL},
    {"heads", INT32, AT(heads), 0, NULL},
    {"src_vocab", INT32, AT(src_vocab), 0, NULL},
    {"tgt_vocab", INT32, AT(tgt_vocab), 0, NULL},
    {"adaptive_cutoffs", PAIR, AT(adaptive_cutoffs), 1, NULL}, /* before what depends on them */
    {"adaptive_factor", REAL, AT(adaptive_factor), 0, NULL},
    {"share", CHOICE, AT(share), 0, name_of_share},
    {"image_size", PAIR, AT(image_size), 0, NULL},
    {"channels", INT32, AT(channels), 0, NULL},
    {"patch", INT32, AT(patch), 0, NULL},
    {"visual_tokens", INT32, AT(visual_tokens), 0, NULL},
    {"features", INT32, AT(features), 0, NULL},
    {"conv_channels", INT32, AT(conv_channels), 0, NULL},
    {"classes", INT32, AT(classes), 0, NULL},
    {"pool", CHOICE, AT(pool), 1, name_of_pool},
    {"activation", CHOICE, AT(activation), 0, name_of_activation},
    {"positions", CHOICE, AT(positions), 0, name_of_positions},
    {"max_positions", INT32, AT(max_positions), 0, NULL},
    {"layer_norm_eps", REAL, AT(layer_norm_eps), 0, NULL},
    {"encoder_layer_norm_eps", REAL, AT(encoder_layer_norm_eps), 1, NULL},
    {"decoder_layer_norm_eps", REAL, AT(decoder_layer_norm_eps), 1, NULL},
    {"dropout", REAL, AT(dropout), 0, NULL},
    {"attention_dropout", REAL, AT(attention_dropout), 0, NULL},
    {"activation_dropout", REAL, AT(activation_dropout), 0, NULL},
    {"word_dropout", REAL, AT(word_dropout), 0, NULL},
    {"bos", INT32, AT(bos), 0, NULL},
    {"pad", INT32, AT(pad), 0, NULL},
    {"eos", INT32, AT(eos), 0, NULL},
    {"unk", INT32, AT(unk), 0, NULL},
    {"step", INT64, AT(step), 0, NULL},
};

static fth_err wrong_value(const char *key, json_t *value, const char *rule) {
    return fth_fail(FTH_BAD_CONFIG, "%s %s must be %s", key, fth_json_shown(value).text, rule);
}

static fth_err read_constant(const struct key_row *row, json_t *value) {
    if (!strcmp(row->key, "version"))
        return json_is_integer(value) && json_integer_value(value) == 1
                   ? FTH_OK
                   : wrong_value(row->key, value, "1, the version that this program reads");
    return json_is_string(value) && !strcmp(json_string_value(value), "fathom-model")
               ? FTH_OK
               : wrong_value(row->key, value, "\"fathom-model\"");
}

static fth_err read_choice(const struct key_row *row, json_t *value, int *out) {
    const char *text = json_string_value(value);
    char rule[128] = "one of";
    for (int i = 0; row->name(i); i++) {
        if (text && !strcmp(text, row->name(i))) {
            *out = i;
            return FTH_OK;
        }
        size_t used = strlen(rule);
        snprintf(rule + used, sizeof rule - used, " \"%s\"", row->name(i));
    }
    return wrong_value(row->key, value, rule);
}

static fth_err read_integer(const char *key, json_t *value, int64_t low, int64_t high,
                            int64_t *out) {
    if (!json_is_integer(value)) return wrong_value(key, value, "a whole number");
    *out = json_integer_value(value);
    if (*out < low || *out > high) return wrong_value(key, value, "a number of 32 bits");
    return FTH_OK;
}

/* Two numbers of 32 bits, as in [32, 32]. */
static fth_err read_pair(const char *key, json_t *value, int32_t out[2]) {
    if (!json_is_array(value) || json_array_size(value) != 2)
        return wrong_value(key, value, "two whole numbers");
    for (size_t i = 0; i < 2; i++) {
        int64_t number = 0;
        FTH_TRY(read_integer(key, json_array_get(value, i), INT32_MIN, INT32_MAX, &number));
        out[i] = (int32_t)number;
    }
    return FTH_OK;
}

/* Copies a string into a field of size bytes. */
static fth_err read_text(const char *key, json_t *value, char *out, size_t size) {
    char rule[64];
    snprintf(rule, sizeof rule, "a string of 1 to %zu bytes", size - 1);
    const char *text = json_string_value(value);
    if (!text || !text[0] || strlen(text) >= size) return wrong_value(key, value, rule);
    memcpy(out, text, strlen(text) + 1);
    return FTH_OK;
}

static fth_err read_option(const char *key, json_t *value, fth_method_option *o) {
    if (!key[0] || strlen(key) >= sizeof o->key)
        return fth_fail(FTH_BAD_CONFIG,
                        "method_options has the key \"%.40s\": it must have 1 to "
                        "%zu bytes",
                        key, sizeof o->key - 1);
    memcpy(o->key, key, strlen(key) + 1);
    if (json_is_number(value)) {
        o->type = FTH_OPT_NUMBER;
        o->number = json_number_value(value);
        return FTH_OK;
    }
    if (json_is_boolean(value)) {
        o->type = FTH_OPT_BOOL;
        o->number = json_is_true(value);
        return FTH_OK;
    }
    o->type = FTH_OPT_STRING;
    char name[64];
    snprintf(name, sizeof name, "method_options %s", key);
    if (!json_is_string(value)) return wrong_value(name, value, "a number, a string or a bool");
    return read_text(name, value, o->text, sizeof o->text);
}

static fth_err read_options(json_t *value, fth_config *c) {
    if (!json_is_object(value)) return wrong_value("method_options", value, "an object");
    if (json_object_size(value) > FTH_MAX_METHOD_OPTIONS)
        return fth_fail(FTH_BAD_CONFIG, "method_options has %zu entries, at most %d are possible",
                        json_object_size(value), FTH_MAX_METHOD_OPTIONS);
    const char *key;
    json_t *option;
    json_object_foreach(value, key, option)
        FTH_TRY(read_option(key, option, &c->options[c->n_options++]));
    return FTH_OK;
}

static fth_err read_key(const struct key_row *row, json_t *value, fth_config *c) {
    void *field = (char *)c + row->offset;
    int64_t number = 0;
    switch (row->type) {
    case CONSTANT: return read_constant(row, value);
    case METHOD: return read_text(row->key, value, c->method, sizeof c->method);
    case OPTIONS: return read_options(value, c);
    case CHOICE: return read_choice(row, value, field);
    case INT32:
        FTH_TRY(read_integer(row->key, value, INT32_MIN, INT32_MAX, &number));
        *(int32_t *)field = (int32_t)number;
        return FTH_OK;
    case PAIR: return read_pair(row->key, value, field);
    case INT64: return read_integer(row->key, value, INT64_MIN, INT64_MAX, field);
    case REAL:
        if (!json_is_number(value)) return wrong_value(row->key, value, "a number");
        *(double *)field = json_number_value(value);
        return FTH_OK;
    }
    return FTH_OK;
}

static fth_err refuse_unknown_keys(json_t *root) {
    const char *key, *words[COUNT(keys)];
    json_t *value;
    for (size_t i = 0; i < COUNT(keys); i++) words[i] = keys[i].key;
    json_object_foreach(root, key, value) {
        size_t i = 0;
        while (i < COUNT(keys) && strcmp(key, keys[i].key)) i++;
        if (i < COUNT(keys)) continue;
        const char *near = fth_nearest(key, words, COUNT(keys));
        return fth_fail(FTH_BAD_CONFIG, "unknown key \"%.40s\" with the value %s: %s%s%s", key,
                        fth_json_shown(value).text,
                        near ? "did you mean " : "a model has no such key", near ? near : "",
                        near ? "?" : "");
    }
    return FTH_OK;
}

/* "arch enc, front image, head class": what is no default of them. */
typedef struct kind_text {
    char text[96];
} kind_text;

static kind_text kind_of(const fth_config *c) {
    kind_text k;
    const bool front = c->front != FTH_FRONT_TEXT, head = c->head != FTH_HEAD_NEXT_TOKEN;
    snprintf(k.text, sizeof k.text, "arch %s%s%s%s%s", fth_arch_name(c->arch),
             front ? ", front " : "", front ? fth_front_name(c->front) : "", head ? ", head " : "",
             head ? fth_head_name(c->head) : "");
    return k;
}

/* Reads the keys in the order of the table. */
static fth_err read_keys(json_t *root, fth_config *c) {
    for (size_t i = 0; i < COUNT(keys); i++) {
        const struct key_row *row = &keys[i];
        json_t *value = json_object_get(root, row->key);
        if (fth_config_has(c, row->key)) {
            if (value) FTH_TRY(read_key(row, value, c));
            if (!value && !row->optional)
                return fth_fail(FTH_BAD_CONFIG, "%s is missing: every model of %s must have it",
                                row->key, kind_of(c).text);
        } else if (value) {
            return fth_fail(FTH_BAD_CONFIG, "%s %s must be left out: a model of %s has none",
                            row->key, fth_json_shown(value).text, kind_of(c).text);
        }
    }
    return FTH_OK;
}

static fth_err read_root(json_t *root, fth_config *c) {
    memset(c, 0, sizeof *c);
    if (!json_is_object(root)) return fth_fail(FTH_BAD_CONFIG, "must be a JSON object");
    FTH_TRY(refuse_unknown_keys(root));
    FTH_TRY(read_keys(root, c));
    if (!json_object_get(root, "encoder_layer_norm_eps"))
        c->encoder_layer_norm_eps = c->layer_norm_eps;
    if (!json_object_get(root, "decoder_layer_norm_eps"))
        c->decoder_layer_norm_eps = c->layer_norm_eps;
    return fth_config_validate(c);
}

fth_err fth_config_parse(const char *text, size_t length, const char *path, fth_config *out) {
    json_t *root = NULL;
    fth_config c;
    fth_err err = fth_json_parse(path, text, length, &root);
    if (err) return err == FTH_BAD_INPUT ? FTH_BAD_CONFIG : err;
    err = read_root(root, &c);
    json_decref(root);
    if (err) return fth_fail_in(err, "%s", path);
    *out = c;
    return FTH_OK;
}

fth_err fth_config_read(const char *path, fth_config *out) {
    char *text = NULL;
    size_t length = 0;
    FTH_TRY(fth_file_read(path, &text, &length));
    fth_err err = fth_config_parse(text, length, path, out);
    free(text);
    return err;
}

/* Whole numbers are written without a fraction. */
static json_t *number_value(double number) {
    if (fabs(number) < 0x1p53 && number == floor(number)) return json_integer((json_int_t)number);
    return json_real(number);
}

static json_t *options_value(const fth_config *c) {
    json_t *object = json_object();
    for (int32_t i = 0; i < c->n_options && object; i++) {
        const fth_method_option *o = &c->options[i];
        json_t *value = o->type == FTH_OPT_NUMBER ? number_value(o->number)
                        : o->type == FTH_OPT_BOOL ? json_boolean(o->number != 0)
                                                  : json_string(o->text);
        if (json_object_set_new(object, o->key, value) != 0) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

/* The JSON value of a key; NULL when out of memory (or a text is not UTF-8). */
static json_t *value_of(const struct key_row *row, const fth_config *c) {
    const void *field = (const char *)c + row->offset;
    switch (row->type) {
    case CONSTANT:
        return strcmp(row->key, "version") ? json_string("fathom-model") : json_integer(1);
    case METHOD: return json_string(c->method);
    case OPTIONS: return options_value(c);
    case CHOICE: return json_string(row->name(*(const int *)field));
    case INT32: return json_integer(*(const int32_t *)field);
    case PAIR: return json_pack("[i,i]", ((const int32_t *)field)[0], ((const int32_t *)field)[1]);
    case INT64: return json_integer(*(const int64_t *)field);
    case REAL: return json_real(*(const double *)field);
    }
    return NULL;
}

/* An optional eps is written where it says something: where it differs from layer_norm_eps; so is
 * an optional choice, where it is not the first of its list. */
static int is_written(const struct key_row *row, const fth_config *c) {
    const void *field = (const char *)c + row->offset;
    if (!fth_config_has(c, row->key)) return 0;
    if (!row->optional || row->type == OPTIONS) return 1;
    if (row->type == CHOICE || row->type == PAIR) return *(const int32_t *)field != 0;
    return *(const double *)field != c->layer_norm_eps;
}

static json_t *root_of(const fth_config *c) {
    json_t *root = json_object();
    for (size_t i = 0; i < COUNT(keys) && root; i++) {
        if (!is_written(&keys[i], c)) continue;
        if (json_object_set_new(root, keys[i].key, value_of(&keys[i], c)) != 0) {
            json_decref(root);
            root = NULL;
        }
    }
    return root;
}

fth_err fth_config_print(const fth_config *c, fth_str *out) {
    FTH_TRY(fth_config_validate(c));
    json_t *root = root_of(c);
    fth_err err = root ? fth_json_write(root, 2, out)
                       : fth_fail(FTH_FAILED, "config: no memory, or a text is not UTF-8");
    json_decref(root);
    return err ? err : fth_str_add(out, "\n", 1);
}

fth_err fth_config_difference(const fth_config *a, const fth_config *b, const char **key) {
    *key = NULL;
    for (size_t i = 0; i < COUNT(keys) && !*key; i++) {
        if (!strcmp(keys[i].key, "step")) continue;
        json_t *x = value_of(&keys[i], a), *y = value_of(&keys[i], b);
        const int there = x && y;
        if (!json_equal(x, y)) *key = keys[i].key;
        json_decref(x);
        json_decref(y);
        if (!there) return fth_fail(FTH_NO_MEMORY, "no memory to compare two models");
    }
    return FTH_OK;
}

fth_err fth_config_expect(const fth_config *was, const char *where, const fth_config *now) {
    const char *key;
    FTH_TRY(fth_config_difference(was, now, &key));
    if (!key) return FTH_OK;
    size_t i = 0;
    while (strcmp(keys[i].key, key)) i++;
    json_t *x = value_of(&keys[i], was), *y = value_of(&keys[i], now);
    fth_err err = fth_fail(FTH_BAD_CONFIG, "%s is %s in %s, now it is %s", key,
                           fth_json_shown(x).text, where, fth_json_shown(y).text);
    json_decref(x);
    json_decref(y);
    return err;
}
