/* label_set.c: collects the labels of the training split, sorts them as numbers or as bytes, and
 * finds one by halving. */
#include "data/label_set.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

fth_err fth_label_set_add(fth_label_set *s, const char *name) {
    if (fth_label_set_find(s, name) >= 0) return FTH_OK;
    if (s->n == s->capacity) {
        const int32_t capacity = s->capacity ? 2 * s->capacity : 16;
        char **names = realloc(s->names, sizeof *names * (size_t)capacity);
        if (!names) return fth_fail(FTH_NO_MEMORY, "no memory for %d labels", capacity);
        s->names = names;
        s->capacity = capacity;
    }
    s->names[s->n] = strdup(name);
    if (!s->names[s->n]) return fth_fail(FTH_NO_MEMORY, "no memory for a label");
    s->n++;
    return FTH_OK;
}

static int whole_number(const char *text, long long *out) {
    char *end;
    *out = strtoll(text, &end, 10);
    return *text && !*end;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int by_number(const void *a, const void *b) {
    long long x, y;
    whole_number(*(char *const *)a, &x);
    whole_number(*(char *const *)b, &y);
    return (x > y) - (x < y);
}

void fth_label_set_sort(fth_label_set *s) {
    int numbers = 1;
    long long unused;
    for (int32_t i = 0; i < s->n; i++) numbers &= whole_number(s->names[i], &unused);
    if (s->n) qsort(s->names, (size_t)s->n, sizeof *s->names, numbers ? by_number : by_bytes);
}

int32_t fth_label_set_find_part(const fth_label_set *s, const char *name, size_t length) {
    for (int32_t i = 0; i < s->n; i++)
        if (strncmp(s->names[i], name, length) == 0 && !s->names[i][length]) return i;
    return -1;
}

int32_t fth_label_set_find(const fth_label_set *s, const char *name) {
    return fth_label_set_find_part(s, name, strlen(name));
}

void fth_label_set_fini(fth_label_set *s) {
    for (int32_t i = 0; i < s->n; i++) free(s->names[i]);
    free(s->names);
    *s = (fth_label_set){0};
}

/* NULL when out of memory. */
static json_t *json_of(const fth_label_set *s) {
    if (s->kind == FTH_LABELS_NUMBER) return json_pack("{s:s}", "kind", "number");
    json_t *names = json_array();
    for (int32_t i = 0; i < s->n; i++) json_array_append_new(names, json_string(s->names[i]));
    const char *kind = s->kind == FTH_LABELS_PLACES ? "places" : "class";
    return json_pack("{s:s, s:o}", "kind", kind, "names", names);
}

static fth_err bad(const char *path, const char *rule) {
    return fth_fail(FTH_BAD_INPUT, "%s: %s", path, rule);
}

static fth_err read_kind(fth_label_set *s, const json_t *json, const char *path) {
    static const char *const kinds[] = {[FTH_LABELS_CLASS] = "class",
                                        [FTH_LABELS_NUMBER] = "number",
                                        [FTH_LABELS_PLACES] = "places"};
    const char *kind = json_string_value(json_object_get(json, "kind"));
    for (int i = FTH_LABELS_CLASS; kind && i <= FTH_LABELS_PLACES; i++)
        if (strcmp(kind, kinds[i]) == 0) return s->kind = (fth_label_kind)i, FTH_OK;
    return bad(path, "must have the kind \"class\", \"places\" or \"number\"");
}

static fth_err read_json(fth_label_set *s, const json_t *json, const char *path) {
    FTH_TRY(read_kind(s, json, path));
    const bool named = s->kind != FTH_LABELS_NUMBER;
    const json_t *names = json_object_get(json, "names");
    for (size_t i = 0; named && i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        fth_err err = name ? fth_label_set_add(s, name) : bad(path, "names must be strings");
        if (err) {
            fth_label_set_fini(s);
            return err;
        }
    }
    if (named && (s->n < 1 || (size_t)s->n != json_array_size(names))) {
        fth_label_set_fini(s);
        return bad(path, "must have different names");
    }
    return FTH_OK;
}

fth_err fth_label_set_write(const fth_label_set *s, const char *folder) {
    if (s->kind == FTH_LABELS_NONE) return FTH_OK;
    return fth_json_save(json_of(s), folder, "labels.json");
}

fth_err fth_label_set_load(fth_label_set *s, const char *folder) {
    json_t *json = NULL;
    *s = (fth_label_set){0};
    if (!fth_folder_has(folder, "labels.json")) return FTH_OK;
    char *path = fth_strdup_printf("%s/labels.json", folder);
    if (!path) return fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", folder);
    fth_err err = fth_json_load(path, &json);
    if (err == FTH_OK) err = read_json(s, json, path);
    json_decref(json);
    free(path);
    return err;
}
