/* json.c: reads strictly by jansson, with the line and column in the message, and writes doubles
 * with as many digits as read back. */
#include "base/json.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/number.h"
#include "base/str.h"

/* Where jansson's reader cannot have memory it goes on with half a token, past its end: it is left
 * at once instead, and what it held until then is lost. */
static _Thread_local jmp_buf *reading;

static void *leaving_malloc(size_t size) {
    void *p = malloc(size);
    if (!p && reading) longjmp(*reading, 1);
    return p;
}

static void set_malloc(void) {
    json_set_alloc_funcs(leaving_malloc, free);
}

json_t *fth_json_read(const char *text, size_t size, json_error_t *e) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_malloc);
    jmp_buf here;
    json_t *value = NULL;
    if (setjmp(here) == 0) {
        reading = &here;
        value = json_loadb(text, size, JSON_REJECT_DUPLICATES, e);
    } else {
        *e = (json_error_t){.text = "no memory"};
        e->text[sizeof e->text - 1] = json_error_out_of_memory; /* where jansson keeps the code */
    }
    reading = NULL;
    return value;
}

fth_err fth_json_parse(const char *name, const char *text, size_t size, json_t **value) {
    json_error_t e;
    *value = fth_json_read(text, size, &e);
    if (*value) return FTH_OK;
    if (json_error_code(&e) == json_error_out_of_memory)
        return fth_fail(FTH_NO_MEMORY, "%s: no memory for its content", name);
    return fth_fail(FTH_BAD_INPUT, "%s:%d:%d: not JSON: %s", name, e.line > 0 ? e.line : 1,
                    e.column > 0 ? e.column : 1, e.text);
}

fth_err fth_json_load(const char *path, json_t **value) {
    char *text;
    size_t size;
    *value = NULL;
    FTH_TRY(fth_file_read(path, &text, &size));
    fth_err err = fth_json_parse(path, text, size, value);
    free(text);
    return err;
}

/* What is dumped, and whether a part of it was lost: jansson does not look at every failure. */
typedef struct dumped {
    fth_str text;
    bool failed;
} dumped;

static int add_dumped(const char *text, size_t size, void *to) {
    dumped *d = to;
    d->failed = d->failed || fth_str_add(&d->text, text, size) != FTH_OK;
    return d->failed ? -1 : 0;
}

char *fth_json_dump(const json_t *value, size_t flags) {
    dumped d = {0};
    if (json_dump_callback(value, add_dumped, &d, flags) == 0 && !d.failed) return d.text.text;
    fth_str_fini(&d.text);
    return NULL;
}

json_t *fth_json_number(double x) {
    if (isnan(x)) return json_string("nan");
    if (isinf(x)) return json_string(x > 0 ? "inf" : "-inf");
    return json_real(x);
}

fth_err fth_json_to_double(const json_t *value, double *x) {
    const char *text = json_string_value(value);
    if (json_is_number(value))
        *x = json_number_value(value);
    else if (text && strcmp(text, "nan") == 0)
        *x = (double)NAN;
    else if (text && strcmp(text, "inf") == 0)
        *x = (double)INFINITY;
    else if (text && strcmp(text, "-inf") == 0)
        *x = -(double)INFINITY;
    else
        return fth_fail(FTH_BAD_INPUT, "must be a number, \"nan\", \"inf\" or \"-inf\"");
    return FTH_OK;
}

static fth_err write_string(const char *text, size_t length, fth_str *out) {
    FTH_TRY(fth_str_add(out, "\"", 1));
    for (const char *end = text + length; text < end; text++) {
        if (*text == '"' || *text == '\\')
            FTH_TRY(fth_str_addf(out, "\\%c", *text));
        else if ((unsigned char)*text < 0x20)
            FTH_TRY(fth_str_addf(out, "\\u%04x", (unsigned)*text));
        else
            FTH_TRY(fth_str_add(out, text, 1));
    }
    return fth_str_add(out, "\"", 1);
}

/* A real number keeps its point, so that it is read as a real number again. */
static fth_err write_real(double x, fth_str *out) {
    fth_number n = fth_double_text(x);
    return fth_str_addf(out, "%s%s", n.text, n.text[strcspn(n.text, ".e")] ? "" : ".0");
}

static fth_err write_value(const json_t *value, int indent, int depth, fth_str *out);

static fth_err write_array(const json_t *array, int indent, int depth, fth_str *out) {
    size_t n = json_array_size(array);
    FTH_TRY(fth_str_add(out, "[", 1));
    for (size_t i = 0; i < n; i++) {
        if (i) FTH_TRY(fth_str_addf(out, indent ? ", " : ","));
        FTH_TRY(write_value(json_array_get(array, i), indent, depth, out));
    }
    return fth_str_add(out, "]", 1);
}

static fth_err write_object(const json_t *object, int indent, int depth, fth_str *out) {
    const char *key;
    json_t *value;
    bool first = true;
    FTH_TRY(fth_str_add(out, "{", 1));
    json_object_foreach((json_t *)object, key, value) {
        if (!first) FTH_TRY(fth_str_add(out, ",", 1));
        if (indent) FTH_TRY(fth_str_addf(out, "\n%*s", indent * (depth + 1), ""));
        FTH_TRY(write_string(key, strlen(key), out));
        FTH_TRY(fth_str_addf(out, indent ? ": " : ":"));
        FTH_TRY(write_value(value, indent, depth + 1, out));
        first = false;
    }
    if (indent && !first) FTH_TRY(fth_str_addf(out, "\n%*s", indent * depth, ""));
    return fth_str_add(out, "}", 1);
}

static fth_err write_value(const json_t *value, int indent, int depth, fth_str *out) {
    switch (json_typeof(value)) {
    case JSON_OBJECT: return write_object(value, indent, depth, out);
    case JSON_ARRAY: return write_array(value, indent, depth, out);
    case JSON_STRING: return write_string(json_string_value(value), json_string_length(value), out);
    case JSON_INTEGER: return fth_str_addf(out, "%lld", (long long)json_integer_value(value));
    case JSON_REAL: return write_real(json_real_value(value), out);
    case JSON_TRUE: return fth_str_addf(out, "true");
    case JSON_FALSE: return fth_str_addf(out, "false");
    case JSON_NULL: return fth_str_addf(out, "null");
    }
    return fth_fail(FTH_FAILED, "a JSON value of no known kind");
}

fth_err fth_json_write(const json_t *value, int indent, fth_str *out) {
    if (!value) return fth_fail(FTH_NO_MEMORY, "no memory for a JSON value");
    return write_value(value, indent, 0, out);
}

fth_json_text fth_json_shown(const json_t *value) {
    fth_json_text shown = {"nothing"};
    fth_str s = {0};
    if (value && fth_json_write(value, 0, &s) == FTH_OK)
        snprintf(shown.text, sizeof shown.text, s.length < sizeof shown.text ? "%s" : "%.58s ...",
                 s.text);
    fth_str_fini(&s);
    return shown;
}

fth_err fth_json_save(json_t *root, const char *folder, const char *name) {
    fth_str text = {0};
    char *path = fth_strdup_printf("%s/%s", folder, name);
    fth_err err = root && path ? fth_json_write(root, 2, &text)
                               : fth_fail(FTH_NO_MEMORY, "no memory to write %s/%s", folder, name);
    if (err == FTH_OK) err = fth_file_write(path, text.text, text.length);
    json_decref(root);
    free(path);
    fth_str_fini(&text);
    return err;
}
