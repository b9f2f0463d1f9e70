/* extras.c: reads diverged.json and samples into JSON of bounded size, long texts shortened. */
#include "inspect/extras.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "inspect/run_view.h"

enum { MAX_LIST = 16, MAX_DEPTH = 6, MAX_SAMPLES = 40, MAX_LINE = 1 << 20, MAX_FILE = 256 << 20 };

/* A copy in which long lists are told by their length. */
static json_t *shortened(const json_t *value, int depth) {
    char text[80];
    size_t n = json_is_array(value) ? json_array_size(value) : json_object_size(value);
    if ((json_is_array(value) && n > MAX_LIST) || (n > 0 && depth > MAX_DEPTH)) {
        snprintf(text, sizeof text, "(%zu values, see the file)", n);
        return json_string(text);
    }
    if (json_is_array(value)) {
        json_t *copy = json_array();
        for (size_t i = 0; copy && i < n; i++)
            json_array_append_new(copy, shortened(json_array_get(value, i), depth + 1));
        return copy;
    }
    if (json_is_object(value)) {
        json_t *copy = json_object(), *item;
        const char *key;
        json_object_foreach((json_t *)value, key, item) {
            json_object_set_new(copy, key, shortened(item, depth + 1));
        }
        return copy;
    }
    return json_copy((json_t *)value);
}

json_t *fth_extras_diverged(const char *folder) {
    char *path = fth_strdup_printf("%s/diverged.json", folder);
    struct stat st;
    json_t *value = NULL, *result;
    if (!path) return NULL;
    if (stat(path, &st) != 0)
        result = json_null();
    else if (!S_ISREG(st.st_mode) || st.st_size > MAX_FILE)
        result = json_string("diverged.json is no plain file of at most 256 MiB");
    else if (fth_json_load(path, &value) != FTH_OK)
        result = fth_run_view_text(fth_error_message(), strlen(fth_error_message()));
    else
        result = shortened(value, 0);
    json_decref(value);
    free(path);
    return result;
}

/* The best hypothesis of a line; NULL when the line is none of ours. */
static json_t *sample_of(const char *line, size_t length) {
    json_t *value = NULL, *sample = NULL;
    if (fth_json_parse("samples.jsonl", line, length, &value) != FTH_OK) return NULL;
    const json_t *source = json_object_get(value, "source");
    const json_t *best = json_array_get(json_object_get(value, "hypotheses"), 0);
    const json_t *text = json_object_get(best ? best : value, "text");
    const json_t *score = json_object_get(best ? best : value, "score");
    if (json_is_string(text)) {
        sample = json_object();
        if (json_is_string(source)) json_object_set(sample, "source", (json_t *)source);
        json_object_set(sample, "text", (json_t *)text);
        if (json_is_number(score)) json_object_set(sample, "score", (json_t *)score);
        const json_t *wanted = json_object_get(value, "reference");
        if (json_is_string(wanted)) json_object_set(sample, "reference", (json_t *)wanted);
    }
    json_decref(value);
    return sample;
}

json_t *fth_extras_samples(const char *folder) {
    char *path = fth_strdup_printf("%s/samples.jsonl", folder), *line = malloc(MAX_LINE);
    json_t *list = json_array(), *sample;
    struct stat st;
    bool plain = path && stat(path, &st) == 0 && S_ISREG(st.st_mode);
    FILE *file = plain ? fopen(path, "re") : NULL;
    while (file && line && list && json_array_size(list) < MAX_SAMPLES &&
           fgets(line, MAX_LINE, file))
        if ((sample = sample_of(line, strlen(line)))) json_array_append_new(list, sample);
    if (file) fclose(file);
    free(line);
    free(path);
    return list;
}
