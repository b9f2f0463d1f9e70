/* record.c: writes the description as JSON, and compares an old one with the new, key by key. */
#include "sweep/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

static json_t *list_of(const char *const *words, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(list, json_string(words[i]));
    return list;
}

/* Every key of the file that says what runs are, with its values. */
static json_t *keys_of(const fth_sweep_spec *s) {
    json_t *keys = json_object();
    for (size_t i = 0; i < s->n_factors; i++)
        json_object_set_new(keys, s->factor[i].label, list_of(s->factor[i].value, s->factor[i].n));
    json_object_set_new(keys, "seeds", list_of(s->seeds, s->n_seeds));
    if (s->data) json_object_set_new(keys, "data", json_pack("[s]", s->data));
    if (s->has_corpus) json_object_set_new(keys, "corpus", list_of(s->corpus, s->n_corpus));
    if (s->has_prepare) json_object_set_new(keys, "prepare", list_of(s->prepare, s->n_prepare));
    return keys;
}

static json_t *runs_of(const fth_sweep_grid *g) {
    json_t *runs = json_array();
    for (size_t i = 0; i < g->n; i++) json_array_append_new(runs, json_string(g->run[i].name));
    return runs;
}

fth_err fth_sweep_record_write(const fth_sweep_spec *s, const fth_sweep_grid *g,
                               const char *out_dir, const char *const *set, size_t n_set) {
    fth_str text = {0};
    json_t *record = json_pack("{s:s, s:i, s:s, s:s, s:o, s:o, s:o}", "format", "fathom-sweep",
                               "version", 1, "program", FATHOM_VERSION, "file", s->file, "set",
                               list_of(set, n_set), "keys", keys_of(s), "runs", runs_of(g));
    char *path = fth_strdup_printf("%s/sweep.json", out_dir);
    fth_err err =
        record && path ? fth_json_write(record, 2, &text) : fth_no_memory("the record of a sweep");
    if (err == FTH_OK) err = fth_file_write(path, text.text, text.length);
    fth_str_fini(&text);
    json_decref(record);
    free(path);
    return err;
}

/* The first of a that is not among b; NULL: none. */
static const char *missing(const json_t *a, const json_t *b) {
    json_t *names = json_object();
    const char *found = NULL;
    for (size_t i = 0; i < json_array_size(b); i++) {
        const char *name = json_string_value(json_array_get(b, i));
        if (name) json_object_set_new(names, name, json_true());
    }
    for (size_t i = 0; i < json_array_size(a) && !found; i++) {
        const char *name = json_string_value(json_array_get(a, i));
        if (name && !json_object_get(names, name)) found = name;
    }
    json_decref(names);
    return found;
}

/* "[a, b]" of the values of a key, "nothing" where it is not there; malloc'd. */
static char *shown(const json_t *keys, const char *key) {
    const json_t *values = json_object_get(keys, key);
    return values ? fth_json_dump(values, JSON_COMPACT) : strdup("nothing");
}

/* The first key whose values differ. */
static const char *different(const json_t *a, const json_t *b) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)a, key, value) {
        if (!json_equal(value, json_object_get(b, key))) return key;
    }
    json_object_foreach((json_t *)b, key, value) {
        if (!json_object_get(a, key)) return key;
    }
    return NULL;
}

static fth_err refuse(const char *out_dir, const json_t *was, const json_t *is, const char *run) {
    const char *key = different(was, is);
    char *before = shown(was, key ? key : "method"), *now = shown(is, key ? key : "method");
    fth_err err = before && now
                      ? fth_fail(FTH_BAD_INPUT,
                                 "%s: is another sweep: %s was %.200s there and is %.200s here "
                                 "(run %s); use another --out",
                                 out_dir, key ? key : "method", before, now, run)
                      : fth_no_memory("the record of a sweep");
    free(before);
    free(now);
    return err;
}

fth_err fth_sweep_record_check(const fth_sweep_spec *s, const fth_sweep_grid *g,
                               const char *out_dir, bool same) {
    if (!fth_folder_has(out_dir, "sweep.json")) return FTH_OK;
    json_t *record = NULL, *keys = NULL, *runs = NULL;
    char *path = fth_strdup_printf("%s/sweep.json", out_dir);
    fth_err err = path ? fth_json_load(path, &record) : fth_no_memory("the record of a sweep");
    if (err == FTH_OK) {
        keys = keys_of(s);
        runs = runs_of(g);
        const json_t *made = json_object_get(record, "runs");
        const char *run = missing(made, runs);
        if (!run && same) run = missing(runs, made);
        if (run) err = refuse(out_dir, json_object_get(record, "keys"), keys, run);
    }
    json_decref(record);
    json_decref(keys);
    json_decref(runs);
    free(path);
    return err;
}

static fth_err keep_text(fth_arena *a, const json_t *value, const char **out) {
    const char *text = json_string_value(value);
    if (!text) return fth_fail(FTH_BAD_INPUT, "must have texts");
    *out = fth_arena_strdup(a, text);
    return *out ? FTH_OK : fth_no_memory("the record of a sweep");
}

static fth_err read_origin(const json_t *record, fth_sweep_origin *out) {
    const json_t *set = json_object_get(record, "set");
    FTH_TRY(keep_text(&out->arena, json_object_get(record, "file"), &out->file));
    out->set = fth_arena_alloc(&out->arena, (json_array_size(set) + 1) * sizeof *out->set);
    if (!out->set) return fth_no_memory("the record of a sweep");
    for (; out->n_set < json_array_size(set); out->n_set++)
        FTH_TRY(keep_text(&out->arena, json_array_get(set, out->n_set), &out->set[out->n_set]));
    return FTH_OK;
}

fth_err fth_sweep_origin_read(const char *out_dir, fth_sweep_origin *out) {
    json_t *record = NULL;
    char *path = fth_strdup_printf("%s/sweep.json", out_dir);
    *out = (fth_sweep_origin){0};
    fth_err err = path ? fth_json_load(path, &record) : fth_no_memory("the record of a sweep");
    if (err == FTH_OK) err = read_origin(record, out);
    if (err == FTH_BAD_INPUT) err = fth_fail_in(FTH_BAD_INPUT, "%s", path);
    json_decref(record);
    free(path);
    return err;
}

void fth_sweep_origin_fini(fth_sweep_origin *o) {
    fth_arena_fini(&o->arena);
    *o = (fth_sweep_origin){0};
}
