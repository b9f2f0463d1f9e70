/* languages.c: lists of codes and directions, their tags, and languages.json. */
#include "data/languages.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

static const char *const tag_names[] = {
    [FTH_TAGS_TARGET] = "target", [FTH_TAGS_SOURCE_TARGET] = "source-target"};

const char *fth_tags_name(fth_tags tags) {
    return tag_names[tags];
}

int fth_language_is_code(const char *text) {
    const size_t n = strlen(text);
    if (n == 0 || n >= FTH_LANGUAGE_CODE) return 0;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '-' && text[i] != '_') return 0;
    return (unsigned char)text[0] < 0x80;
}

/* ---- codes and directions ---- */

int32_t fth_languages_code(const fth_languages *l, const char *code) {
    for (int32_t i = 0; i < l->n_codes; i++)
        if (strcmp(l->codes[i], code) == 0) return i;
    return -1;
}

int32_t fth_languages_direction(const fth_languages *l, const char *source, const char *target) {
    const int32_t s = fth_languages_code(l, source), t = fth_languages_code(l, target);
    for (int32_t i = 0; i < l->n; i++)
        if (l->of[i].source == s && l->of[i].target == t) return i;
    return -1;
}

const char *fth_languages_source(const fth_languages *l, int32_t direction) {
    return l->codes[l->of[direction].source];
}

const char *fth_languages_target(const fth_languages *l, int32_t direction) {
    return l->codes[l->of[direction].target];
}

fth_direction_name fth_languages_name(const fth_languages *l, int32_t direction) {
    fth_direction_name name;
    snprintf(name.text, sizeof name.text, "%s-%s", fth_languages_source(l, direction),
             fth_languages_target(l, direction));
    return name;
}

static fth_err add_code(fth_languages *l, const char *code, int32_t *number) {
    *number = fth_languages_code(l, code);
    if (*number >= 0) return FTH_OK;
    if (!fth_language_is_code(code))
        return fth_fail(FTH_BAD_INPUT,
                        "language '%.40s': must be 1 to %d letters, digits, - or _, as in pt-br",
                        code, FTH_LANGUAGE_CODE - 1);
    char **codes = realloc(l->codes, sizeof *codes * ((size_t)l->n_codes + 1));
    if (!codes) return fth_no_memory("a list of languages");
    l->codes = codes;
    codes[l->n_codes] = strdup(code);
    if (!codes[l->n_codes]) return fth_no_memory("a list of languages");
    *number = l->n_codes++;
    return FTH_OK;
}

fth_err fth_languages_add(fth_languages *l, const char *source, const char *target) {
    fth_direction d;
    if (strcmp(source, target) == 0)
        return fth_fail(FTH_BAD_INPUT, "direction %.40s-%.40s: source and target are one language",
                        source, target);
    if (fth_languages_direction(l, source, target) >= 0)
        return fth_fail(FTH_BAD_INPUT, "direction %.40s-%.40s: given twice", source, target);
    FTH_TRY(add_code(l, source, &d.source));
    FTH_TRY(add_code(l, target, &d.target));
    fth_direction *of = realloc(l->of, sizeof *of * ((size_t)l->n + 1));
    if (!of) return fth_no_memory("a list of languages");
    l->of = of;
    of[l->n++] = d;
    return FTH_OK;
}

void fth_languages_fini(fth_languages *l) {
    for (int32_t i = 0; i < l->n_codes; i++) free(l->codes[i]);
    free(l->codes);
    free(l->of);
    *l = (fth_languages){0};
}

fth_err fth_languages_list(const fth_languages *l, fth_str *out) {
    for (int32_t i = 0; i < l->n_codes; i++)
        FTH_TRY(fth_str_addf(out, "%s%s", i ? ", " : "", l->codes[i]));
    return FTH_OK;
}

/* ---- tags ---- */

fth_err fth_languages_pieces(const fth_languages *l, fth_str *out) {
    for (int32_t i = 0; i < l->n_codes; i++)
        FTH_TRY(fth_str_addf(out, "%s__%s__", i ? "," : "", l->codes[i]));
    return FTH_OK;
}

static fth_err add_tag(const fth_tokenizer *t, const char *code, fth_ids *out) {
    char piece[FTH_LANGUAGE_TAG];
    snprintf(piece, sizeof piece, "__%s__", code);
    const int32_t id = fth_tokenizer_id(t, piece);
    if (id < 0)
        return fth_fail(
            FTH_BAD_INPUT,
            "the tokenizer has no piece %s; fathom prepare --pairs makes one with a tag "
            "for each language",
            piece);
    FTH_TRY(fth_ids_reserve(out, 1));
    out->ids[out->n++] = id;
    return FTH_OK;
}

static fth_err check_known(const fth_languages *l, const char *which, const char *code) {
    fth_str known = {0};
    if (fth_languages_code(l, code) >= 0) return FTH_OK;
    FTH_TRY(fth_languages_list(l, &known));
    const fth_err err = fth_fail(FTH_USAGE, "--%s-language %.40s: is none of %s", which, code,
                                 known.text ? known.text : "");
    fth_str_fini(&known);
    return err;
}

fth_err fth_languages_tag(const fth_languages *l, const fth_tokenizer *t, const char *source,
                          const char *target, fth_ids *out) {
    if (source) FTH_TRY(check_known(l, "source", source));
    FTH_TRY(check_known(l, "target", target));
    if (l->tags == FTH_TAGS_SOURCE_TARGET) FTH_TRY(add_tag(t, source, out));
    return add_tag(t, target, out);
}

/* ---- languages.json ---- */

static fth_err bad(const char *name, const char *key, const char *rule) {
    return fth_fail(FTH_BAD_INPUT, "%s: '%s' %s", name, key, rule);
}

static fth_err read_directions(fth_languages *l, const json_t *list, const char *name) {
    if (json_array_size(list) == 0) return bad(name, "directions", "is not a list of directions");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *pair = json_array_get(list, i);
        const char *source = json_string_value(json_array_get(pair, 0)),
                   *target = json_string_value(json_array_get(pair, 1));
        if (json_array_size(pair) != 2 || !source || !target)
            return bad(name, "directions", "has an entry that is not [source, target]");
        const fth_err err = fth_languages_add(l, source, target);
        if (err != FTH_OK) return fth_fail_in(err, "%s", name);
    }
    return FTH_OK;
}

static fth_err read_json(fth_languages *l, const json_t *json, const char *name) {
    const char *format = json_string_value(json_object_get(json, "format"));
    if (!format || strcmp(format, "fathom-languages") != 0)
        return bad(name, "format", "is not \"fathom-languages\"");
    if (json_integer_value(json_object_get(json, "version")) != 1)
        return bad(name, "version", "is not 1");
    const char *tags = json_string_value(json_object_get(json, "tags"));
    int known = -1;
    for (int i = FTH_TAGS_TARGET; tags && i <= FTH_TAGS_SOURCE_TARGET; i++)
        if (strcmp(tags, tag_names[i]) == 0) known = i;
    if (known < 0) return bad(name, "tags", "is not \"target\" or \"source-target\"");
    l->tags = (fth_tags)known;
    const json_t *temperature = json_object_get(json, "temperature");
    l->temperature = json_number_value(temperature);
    if (!json_is_number(temperature) || !(l->temperature >= 1) || !isfinite(l->temperature))
        return bad(name, "temperature", "is not a number of 1 or more");
    return read_directions(l, json_object_get(json, "directions"), name);
}

fth_err fth_languages_parse(fth_languages *l, const char *name, const char *text, size_t size) {
    json_t *json = NULL;
    *l = (fth_languages){0};
    FTH_TRY(fth_json_parse(name, text, size, &json));
    const fth_err err = read_json(l, json, name);
    if (err != FTH_OK) fth_languages_fini(l);
    json_decref(json);
    return err;
}

fth_err fth_languages_load(fth_languages *l, const char *folder) {
    char *text = NULL;
    size_t size = 0;
    *l = (fth_languages){0};
    if (!fth_folder_has(folder, "languages.json")) return FTH_OK;
    char *path = fth_strdup_printf("%s/languages.json", folder);
    fth_err err = path ? fth_file_read(path, &text, &size) : fth_no_memory("a list of languages");
    if (err == FTH_OK) err = fth_languages_parse(l, path, text, size);
    free(text);
    free(path);
    return err;
}

fth_err fth_languages_write(const fth_languages *l, const char *folder) {
    if (l->n == 0) return FTH_OK;
    json_t *directions = json_array();
    for (int32_t i = 0; i < l->n; i++)
        json_array_append_new(directions, json_pack("[s, s]", fth_languages_source(l, i),
                                                    fth_languages_target(l, i)));
    return fth_json_save(json_pack("{s:s, s:i, s:s, s:f, s:o}", "format", "fathom-languages",
                                   "version", 1, "tags", fth_tags_name(l->tags), "temperature",
                                   l->temperature, "directions", directions),
                         folder, "languages.json");
}
