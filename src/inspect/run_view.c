/* run_view.c: takes each line of log.jsonl by its kind and keeps curves, heat maps, settings and
 * the state of the run. */
#include "inspect/run_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "base/yaml.h"
#include "inspect/values.h"

json_t *fth_run_view_text(const char *text, size_t length) {
    if (fth_utf8_valid_prefix(text, length) == length) return json_stringn(text, length);
    char *copy = malloc(length + 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    for (size_t at = 0; (at += fth_utf8_valid_prefix(copy + at, length - at)) < length;)
        copy[at] = '?';
    json_t *value = json_stringn(copy, length);
    free(copy);
    return value;
}

const char *fth_run_view_state_name(fth_run_view_state state) {
    static const char *const names[] = {"missing", "unfinished", "ended", "failed"};
    return names[state];
}

/* ---- lines ---- */

/* The first complaint is kept, all are counted. */
static fth_err complain(fth_run_view *v, const char *reason) {
    if (v->broken++ == 0) {
        v->broken_line = v->tail.line;
        snprintf(v->broken_reason, sizeof v->broken_reason, "%s", reason);
    }
    return FTH_OK;
}

/* Finds or makes the curve "split.key". Names beyond the bound are left out. */
static fth_err find_curve(fth_run_view *v, const char *split, const char *key, fth_curve **out) {
    char name[FTH_CURVE_NAME];
    *out = NULL;
    if (snprintf(name, sizeof name, "%s.%s", split, key) >= (int)sizeof name) return FTH_OK;
    for (int32_t i = 0; i < v->n_curves && !*out; i++)
        if (strcmp(v->curve[i].name, name) == 0) *out = &v->curve[i];
    if (*out || v->n_curves == FTH_VIEW_CURVES) return FTH_OK;
    FTH_TRY(fth_curve_init(&v->curve[v->n_curves], name));
    *out = &v->curve[v->n_curves++];
    return FTH_OK;
}

/* Every number of a line becomes a point of its curve. */
static fth_err add_numbers(fth_run_view *v, json_t *line, const char *split, int64_t update) {
    const char *key;
    json_t *value;
    json_object_foreach(line, key, value) {
        double x;
        fth_curve *curve;
        if (strcmp(key, "update") == 0 || strcmp(key, "type") == 0) continue;
        if (fth_json_to_double(value, &x) != FTH_OK) continue;
        FTH_TRY(find_curve(v, split, key, &curve));
        if (curve) fth_curve_add(curve, update, x);
    }
    return FTH_OK;
}

static int32_t layers_of(const fth_run_view *v, const char *stack) {
    char key[32];
    snprintf(key, sizeof key, "%s-layers", stack);
    return (int32_t)strtol(fth_run_view_setting(v, key), NULL, 10);
}

static fth_err find_heat(fth_run_view *v, const char *stack, const char *name, int32_t values,
                         fth_heat **out) {
    *out = NULL;
    for (int32_t i = 0; i < v->n_heats && !*out; i++)
        if (strcmp(v->heat[i].stack, stack) == 0 && strcmp(v->heat[i].name, name) == 0)
            *out = &v->heat[i];
    if (*out || v->n_heats == FTH_VIEW_HEATS) return FTH_OK;
    FTH_TRY(fth_heat_init(&v->heat[v->n_heats], stack, name, values, layers_of(v, stack)));
    *out = &v->heat[v->n_heats++];
    return FTH_OK;
}

/* One value for the whole stack is a curve: no layer has a single sub-layer. */
static fth_err add_single(fth_run_view *v, const char *name, int64_t update) {
    fth_curve *curve;
    FTH_TRY(find_curve(v, "layers", name, &curve));
    if (curve && v->values[0] != FTH_HEAT_NONE) fth_curve_add(curve, update, (double)v->values[0]);
    return FTH_OK;
}

/* v->values has the values of the line. */
static fth_err add_row(fth_run_view *v, const char *stack, const char *name, int64_t update,
                       size_t n) {
    fth_heat *heat;
    if (n == 0 || n > 1000000) return complain(v, "a layers line has no values, or too many");
    if (strlen(stack) >= sizeof heat->stack || strlen(name) >= sizeof heat->name)
        return complain(v, "a layers line has too long a name");
    if (n == 1) return add_single(v, name, update);
    FTH_TRY(find_heat(v, stack, name, (int32_t)n, &heat));
    if (!heat) return FTH_OK;
    if ((size_t)heat->values != n)
        return complain(v, "a layers line has another number of values than those before it");
    fth_heat_add(heat, update, v->values);
    return FTH_OK;
}

static fth_err reserve(fth_run_view *v, size_t n) {
    if (n <= v->n_values) return FTH_OK;
    float *values = realloc(v->values, n * sizeof *values);
    if (!values) return fth_no_memory("the log of a run");
    v->values = values;
    v->n_values = n;
    return FTH_OK;
}

static fth_err add_layers(fth_run_view *v, json_t *line, int64_t update) {
    const char *stack = json_string_value(json_object_get(line, "stack"));
    const char *name = json_string_value(json_object_get(line, "name"));
    const json_t *values = json_object_get(line, "values");
    if (!stack || !name || !json_is_array(values))
        return complain(v, "a layers line needs stack, name and values");
    size_t n = json_array_size(values);
    FTH_TRY(reserve(v, n));
    for (size_t i = 0; i < n; i++) {
        double x;
        const json_t *value = json_array_get(values, i);
        v->values[i] = FTH_HEAT_NONE;
        if (fth_json_to_double(value, &x) == FTH_OK) v->values[i] = (float)x;
    }
    return add_row(v, stack, name, update, n);
}

static fth_err add_warning(fth_run_view *v, const json_t *line, int64_t update) {
    json_t *text = json_object_get(line, "text");
    json_t *entry = json_pack("{s:I, s:O}", "update", (json_int_t)update, "text",
                              json_is_string(text) ? text : json_object_get(line, "type"));
    if (!entry || json_array_append_new(v->warnings, entry) != 0)
        return fth_no_memory("the log of a run");
    if (json_array_size(v->warnings) > FTH_VIEW_WARNINGS) json_array_remove(v->warnings, 0);
    v->n_warnings++;
    return FTH_OK;
}

static fth_err read_settings(fth_run_view *v, const char *name, const char *text, size_t size) {
    fth_arena arena;
    fth_yaml_entry *e;
    fth_arena_init(&arena);
    fth_err err = fth_yaml_read(name, text, size, &arena, &e);
    if (err == FTH_OK) json_object_clear(v->settings);
    for (; err == FTH_OK && e; e = e->next) {
        fth_str value = {0};
        for (size_t i = 0; i < e->count && err == FTH_OK; i++)
            err = fth_str_addf(&value, "%s%s", i ? ", " : "", e->items[i]);
        const char *shown = value.text && !e->is_null ? value.text : "";
        if (err == FTH_OK &&
            json_object_set_new(v->settings, e->key, fth_run_view_text(shown, strlen(shown))) != 0)
            err = fth_no_memory("the log of a run");
        fth_str_fini(&value);
    }
    fth_arena_fini(&arena);
    return err == FTH_NO_MEMORY ? err : FTH_OK;
}

/* A process began, or went on from a checkpoint: what an earlier one did beyond it is void. */
static fth_err add_start(fth_run_view *v, json_t *line, int64_t update) {
    for (int32_t i = 0; i < v->n_curves; i++) fth_curve_rewind(&v->curve[i], update);
    for (int32_t i = 0; i < v->n_heats; i++) fth_heat_rewind(&v->heat[i], update);
    json_decref(v->start);
    json_decref(v->end);
    v->start = json_incref(line);
    v->end = NULL;
    v->state = FTH_VIEW_OPEN;
    v->update = update;
    const json_t *config = json_object_get(line, "config");
    if (!json_is_string(config)) return FTH_OK;
    fth_err err = read_settings(v, "config", json_string_value(config), json_string_length(config));
    json_object_del(line, "config");
    return err;
}

static void add_end(fth_run_view *v, json_t *line, fth_run_view_state state) {
    json_decref(v->end);
    v->end = json_incref(line);
    v->state = state;
}

static fth_err add_line(fth_run_view *v, json_t *line) {
    const char *type = json_string_value(json_object_get(line, "type"));
    json_t *number = json_object_get(line, "update");
    if (!type) return complain(v, "a line must be an object with a type");
    bool counts = json_is_integer(number) && json_integer_value(number) >= 0;
    int64_t update = counts ? json_integer_value(number) : v->update;
    if (strcmp(type, "start") == 0) return add_start(v, line, counts ? update : 0);
    if (counts && update > v->update) v->update = update;
    if (strcmp(type, "warn") == 0) return add_warning(v, line, update);
    if (strcmp(type, "end") == 0) add_end(v, line, FTH_VIEW_ENDED);
    if (strcmp(type, "diverged") == 0) add_end(v, line, FTH_VIEW_FAILED);
    bool curves = strcmp(type, "train") == 0 || strcmp(type, "valid") == 0;
    bool layers = strcmp(type, "layers") == 0;
    if ((curves || layers) && !counts)
        return complain(v, "a line needs an update, a whole number of at least 0");
    if (layers) return add_layers(v, line, update);
    if (!curves || json_object_get(line, "direction")) return FTH_OK; /* the mean comes after */
    const char *split = json_string_value(json_object_get(line, "split"));
    return add_numbers(v, line, split ? split : type, update);
}

/* The lines of a thousand layers are read without making a JSON value of every number. */
static fth_err take_line(void *context, char *text, size_t length) {
    fth_run_view *v = context;
    fth_values_line head;
    if (text[strspn(text, " \t\r")] == '\0' && strlen(text) == length) return FTH_OK;
    if (fth_values_head(text, length, &head)) {
        size_t n;
        FTH_TRY(reserve(v, length / 2 + 1));
        if (fth_values_read(&head, v->values, &n)) {
            if (head.update > v->update) v->update = head.update;
            return add_row(v, head.stack, head.name, head.update, n);
        }
    }
    json_t *line;
    fth_err err = fth_json_parse("log.jsonl", text, length, &line);
    if (err == FTH_BAD_INPUT) {
        const char *reason = strstr(fth_error_message(), "not JSON");
        return complain(v, reason ? reason : "not JSON");
    }
    if (err == FTH_OK) err = add_line(v, line);
    json_decref(line);
    return err;
}

/* ---- the whole ---- */

static void forget(void *context) {
    fth_run_view *v = context;
    for (int32_t i = 0; i < v->n_curves; i++) fth_curve_fini(&v->curve[i]);
    for (int32_t i = 0; i < v->n_heats; i++) fth_heat_fini(&v->heat[i]);
    v->n_curves = v->n_heats = 0;
    json_decref(v->start);
    json_decref(v->end);
    v->start = v->end = NULL;
    json_array_clear(v->warnings);
    v->n_warnings = v->broken = v->update = 0;
    v->state = FTH_VIEW_OPEN;
}

/* The folder's own configuration comes first; a start line has the same text. */
static fth_err read_config(fth_run_view *v) {
    char *path = fth_strdup_printf("%s/config.yaml", v->folder), *text = NULL;
    size_t size;
    if (!path) return fth_no_memory("the log of a run");
    fth_err err = fth_file_read(path, &text, &size);
    if (err == FTH_OK) err = read_settings(v, path, text, size);
    free(text);
    free(path);
    return err == FTH_NO_MEMORY ? err : FTH_OK;
}

fth_err fth_run_view_init(fth_run_view *v, const char *folder) {
    *v = (fth_run_view){.folder = strdup(folder)};
    v->curve = calloc(FTH_VIEW_CURVES, sizeof *v->curve);
    v->heat = calloc(FTH_VIEW_HEATS, sizeof *v->heat);
    v->settings = json_object();
    v->warnings = json_array();
    char *path = fth_strdup_printf("%s/log.jsonl", folder);
    fth_err err = path && v->folder && v->curve && v->heat && v->settings && v->warnings
                      ? fth_tail_init(&v->tail, path)
                      : fth_no_memory("the log of a run");
    free(path);
    if (err != FTH_OK) {
        fth_run_view_fini(v);
        return err;
    }
    size_t n = strlen(v->folder);
    while (n > 1 && v->folder[n - 1] == '/') v->folder[--n] = '\0';
    const char *slash = strrchr(v->folder, '/');
    v->name = slash && slash[1] ? slash + 1 : v->folder;
    return FTH_OK;
}

void fth_run_view_fini(fth_run_view *v) {
    if (v->curve && v->heat) forget(v);
    fth_tail_fini(&v->tail);
    free(v->folder);
    free(v->curve);
    free(v->heat);
    free(v->values);
    json_decref(v->settings);
    json_decref(v->warnings);
    *v = (fth_run_view){0};
}

fth_err fth_run_view_poll(fth_run_view *v, bool *changed) {
    const fth_tail_reader reader = {take_line, forget, v};
    if (v->tail.offset == 0) FTH_TRY(read_config(v));
    fth_run_view_state before = v->state;
    fth_err err = fth_tail_poll(&v->tail, &reader, changed);
    if (err == FTH_NO_MEMORY) return err;
    if (err != FTH_OK) {
        snprintf(v->problem, sizeof v->problem, "%s", fth_error_message());
        v->state = FTH_VIEW_MISSING;
    } else {
        v->problem[0] = '\0';
        if (v->state == FTH_VIEW_MISSING) v->state = FTH_VIEW_OPEN;
    }
    if (v->state != before) *changed = true;
    return FTH_OK;
}

const fth_curve *fth_run_view_curve(const fth_run_view *v, const char *name) {
    for (int32_t i = 0; i < v->n_curves; i++)
        if (strcmp(v->curve[i].name, name) == 0) return &v->curve[i];
    return NULL;
}

const char *fth_run_view_setting(const fth_run_view *v, const char *key) {
    const char *text = json_string_value(json_object_get(v->settings, key));
    return text ? text : "";
}

double fth_run_view_best(const fth_run_view *v, int64_t *update) {
    const fth_curve *c = fth_run_view_curve(v, "valid.nll_loss");
    return c ? fth_curve_lowest(c, update) : (double)NAN;
}

double fth_run_view_last(const fth_run_view *v) {
    const fth_curve *c = fth_run_view_curve(v, "valid.nll_loss");
    if (!c) c = fth_run_view_curve(v, "train.nll_loss");
    return c ? c->newest : (double)NAN;
}

double fth_run_view_final(const fth_run_view *v) {
    const fth_curve *c = fth_run_view_curve(v, "valid.nll_loss");
    return c ? c->newest : (double)NAN;
}
