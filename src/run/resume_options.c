/* resume_options.c: compares the options of a checkpoint with those of the call, line by line, by
 * what the tables of options say of each. */
#include "run/resume_options.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

/* A line "key: value". */
typedef struct line {
    const char *key, *value;
    int key_length, value_length;
} line;

/* The next line "key: value" or "# key: not set", and the text after it; false: there is none.
 * Others are comments. */
static bool next_line(const char **text, line *out) {
    while (**text) {
        const char *begin = *text, *end = begin + strcspn(begin, "\n");
        const bool comment = begin[0] == '#' && begin[1] == ' ';
        const char *key = comment ? begin + 2 : begin, *colon = strchr(key, ':');
        *text = end + (*end == '\n');
        if (!colon || colon >= end || colon[1] != ' ') continue;
        *out = (line){.key = key,
                      .value = colon + 2,
                      .key_length = (int)(colon - key),
                      .value_length = (int)(end - colon - 2)};
        if (!comment || strncmp(out->value, "not set", (size_t)out->value_length) == 0) return true;
    }
    return false;
}

/* The line of the same key; an option that the older program did not have: none. */
static bool find_line(const char *text, const line *key, line *out) {
    while (next_line(&text, out))
        if (out->key_length == key->key_length &&
            memcmp(out->key, key->key, (size_t)key->key_length) == 0)
            return true;
    return false;
}

static fth_option_resume rule_of(const fth_run_spec *s, const line *l) {
    return fth_option_on_resume(s->options, s->n_options, l->key, (size_t)l->key_length);
}

static bool is_same(const line *a, const line *b) {
    return a->value_length == b->value_length &&
           memcmp(a->value, b->value, (size_t)a->value_length) == 0;
}

static fth_err compare_line(const fth_run_spec *s, const line *is, const line *was,
                            fth_str *changed) {
    switch (rule_of(s, is)) {
    case FTH_RESUME_FREE:
    case FTH_RESUME_OF_MACHINE: return FTH_OK;
    case FTH_RESUME_SAID:
        return fth_str_addf(changed, "%s--%.*s %.*s (was %.*s)", changed->length ? ", " : "",
                            is->key_length, is->key, is->value_length, is->value, was->value_length,
                            was->value);
    case FTH_RESUME_KEPT:
    case FTH_RESUME_UNSTATED: break;
    }
    return fth_fail(FTH_BAD_CONFIG,
                    "%s: the run was begun with --%.*s %.*s, now it is %.*s; use another "
                    "--save-dir, or the old value to go on",
                    s->save_dir, is->key_length, is->key, was->value_length, was->value,
                    is->value_length, is->value);
}

fth_err fth_run_options_compare(const fth_run_spec *spec, const char *before, fth_str *changed) {
    const char *now = spec->yaml;
    line is, was;
    while (next_line(&now, &is))
        if (find_line(before, &is, &was) && !is_same(&is, &was))
            FTH_TRY(compare_line(spec, &is, &was, changed));
    return FTH_OK;
}

/* A new option must not be forgotten here. */
static fth_err check_tables(const fth_run_spec *spec) {
    const char *text = spec->yaml;
    line l;
    while (next_line(&text, &l))
        if (rule_of(spec, &l) == FTH_RESUME_UNSTATED)
            return fth_fail(FTH_FAILED,
                            "--%.*s: its table does not say whether a run may go on with another "
                            "value",
                            l.key_length, l.key);
    return FTH_OK;
}

fth_err fth_run_options_stored(const char *run, const char *key, int64_t *value) {
    char *path = fth_strdup_printf("%s/config.yaml", run);
    char *begun = fth_strdup_printf("%s/checkpoints/last", run);
    char *yaml = NULL;
    size_t size;
    fth_err err = path && begun ? FTH_OK : fth_no_memory("a name");
    *value = -1;
    if (err == FTH_OK && fth_file_exists(begun) && fth_file_exists(path)) {
        const line wanted = {.key = key, .key_length = (int)strlen(key)};
        line found;
        err = fth_file_read(path, &yaml, &size);
        if (err == FTH_OK && find_line(yaml, &wanted, &found))
            *value = strtoll(found.value, NULL, 10);
    }
    free(yaml);
    free(begun);
    free(path);
    return err;
}

fth_err fth_run_options_keep(const fth_run_spec *spec) {
    FTH_TRY(check_tables(spec));
    char *path = fth_strdup_printf("%s/config.yaml", spec->save_dir);
    if (!path) return fth_no_memory("a name");
    fth_err err = fth_file_write(path, spec->yaml, strlen(spec->yaml));
    free(path);
    return err;
}
