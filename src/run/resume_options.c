/* resume_options.c: compares the options of a checkpoint with those of the call, line by line, by a
 * table of which may change. */
#include "run/resume_options.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

typedef enum rule {
    EQUAL,  /* must be as it was */
    SAID,   /* may change, and that is said */
    NOTHING /* has no influence on what is computed */
} rule;

/* What is not in the list must be as it was. */
static rule rule_of(const char *key, size_t length) {
    static const struct {
        const char *key;
        rule rule;
    } rules[] = {{"lr", SAID},
                 {"lr-scheduler", SAID},
                 {"warmup-updates", SAID},
                 {"warmup-init-lr", SAID},
                 {"max-update", SAID},
                 {"max-epoch", SAID},
                 {"patience", SAID},
                 {"stop-time-hours", SAID},
                 {"save-interval-updates", SAID},
                 {"validate-interval-updates", SAID},
                 {"keep-last", SAID},
                 {"judge-after", SAID},
                 {"validate-beam", SAID},
                 {"validate-sentences", SAID},
                 {"validate-score", SAID},
                 {"device", NOTHING},
                 {"log-interval", NOTHING},
                 {"memory-budget", NOTHING},
                 {"quiet", NOTHING},
                 {"rank-timeout", NOTHING},
                 {"ranks", NOTHING},
                 {"save-dir", NOTHING},
                 {"telemetry", NOTHING},
                 {"threads", NOTHING}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strlen(rules[i].key) == length && memcmp(rules[i].key, key, length) == 0)
            return rules[i].rule;
    return EQUAL;
}

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

fth_err fth_run_options_compare(const char *run, const char *before, const char *now,
                                fth_str *changed) {
    line is, was;
    while (next_line(&now, &is)) {
        if (!find_line(before, &is, &was) ||
            (was.value_length == is.value_length &&
             memcmp(was.value, is.value, (size_t)is.value_length) == 0))
            continue;
        switch (rule_of(is.key, (size_t)is.key_length)) {
        case EQUAL:
            return fth_fail(FTH_BAD_CONFIG,
                            "%s: the run was begun with --%.*s %.*s, now it is %.*s; use another "
                            "--save-dir, or the old value to go on",
                            run, is.key_length, is.key, was.value_length, was.value,
                            is.value_length, is.value);
        case SAID:
            FTH_TRY(fth_str_addf(changed, "%s--%.*s %.*s (was %.*s)", changed->length ? ", " : "",
                                 is.key_length, is.key, is.value_length, is.value, was.value_length,
                                 was.value));
            break;
        case NOTHING: break;
        }
    }
    return FTH_OK;
}

fth_err fth_run_options_stored(const char *run, const char *key, int64_t *value) {
    char *path = fth_strdup_printf("%s/config.yaml", run);
    char *begun = fth_strdup_printf("%s/checkpoints/last", run);
    char *yaml = NULL;
    size_t size;
    fth_err err = path && begun ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a name");
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

fth_err fth_run_options_keep(const char *run, const char *yaml) {
    char *path = fth_strdup_printf("%s/config.yaml", run);
    if (!path) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    fth_err err = fth_file_write(path, yaml, strlen(yaml));
    free(path);
    return err;
}
