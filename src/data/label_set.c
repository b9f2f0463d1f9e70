/* label_set.c: collects the labels of the training split, sorts them as numbers or as bytes, and
 * finds one by halving. */
#include "data/label_set.h"

#include <stdlib.h>
#include <string.h>

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

int32_t fth_label_set_find(const fth_label_set *s, const char *name) {
    for (int32_t i = 0; i < s->n; i++)
        if (strcmp(s->names[i], name) == 0) return i;
    return -1;
}

void fth_label_set_fini(fth_label_set *s) {
    for (int32_t i = 0; i < s->n; i++) free(s->names[i]);
    free(s->names);
    *s = (fth_label_set){0};
}

json_t *fth_label_set_json(const fth_label_set *s) {
    if (s->kind == FTH_LABELS_NUMBER) return json_pack("{s:s}", "kind", "number");
    json_t *names = json_array();
    for (int32_t i = 0; i < s->n; i++) json_array_append_new(names, json_string(s->names[i]));
    return json_pack("{s:s, s:o}", "kind", "class", "names", names);
}

static fth_err bad(const char *path, const char *rule) {
    return fth_fail(FTH_BAD_INPUT, "%s: 'labels' %s", path, rule);
}

fth_err fth_label_set_read(fth_label_set *s, const json_t *json, const char *path) {
    *s = (fth_label_set){0};
    if (!json) return FTH_OK;
    const char *kind = json_string_value(json_object_get(json, "kind"));
    if (!kind || (strcmp(kind, "class") != 0 && strcmp(kind, "number") != 0))
        return bad(path, "must have the kind \"class\" or \"number\"");
    s->kind = kind[0] == 'c' ? FTH_LABELS_CLASS : FTH_LABELS_NUMBER;
    const json_t *names = json_object_get(json, "names");
    for (size_t i = 0; s->kind == FTH_LABELS_CLASS && i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        fth_err err = name ? fth_label_set_add(s, name) : bad(path, "names must be strings");
        if (err) {
            fth_label_set_fini(s);
            return err;
        }
    }
    if (s->kind == FTH_LABELS_CLASS && (s->n < 1 || (size_t)s->n != json_array_size(names))) {
        fth_label_set_fini(s);
        return bad(path, "must have different names");
    }
    return FTH_OK;
}
