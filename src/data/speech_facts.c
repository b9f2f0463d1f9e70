/* speech_facts.c: the facts as JSON. */
#include "data/speech_facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

static json_t *list_of(const double *x, int32_t n) {
    json_t *list = json_array();
    for (int32_t i = 0; i < n; i++) json_array_append_new(list, json_real(x[i]));
    return list;
}

fth_err fth_speech_facts_write(const fth_speech_facts *f, const char *folder) {
    json_t *json = json_pack("{s:i, s:i, s:s}", "rate", f->rate, "features", f->features, "norm",
                             fth_feature_norm_name(f->norm));
    if (f->norm == FTH_FEATURE_NORM_GLOBAL) {
        json_object_set_new(json, "mean", list_of(f->mean, f->features));
        json_object_set_new(json, "deviation", list_of(f->deviation, f->features));
    }
    return fth_json_save(json, folder, "speech.json");
}

static fth_err bad(const char *path, const char *rule) {
    return fth_fail(FTH_BAD_INPUT, "%s: must have %s", path, rule);
}

static fth_err read_global(fth_speech_facts *f, const json_t *json, const char *path) {
    const json_t *mean = json_object_get(json, "mean"),
                 *deviation = json_object_get(json, "deviation");
    if (json_array_size(mean) != (size_t)f->features ||
        json_array_size(deviation) != (size_t)f->features)
        return bad(path, "a mean and a deviation of every feature");
    for (int32_t i = 0; i < f->features; i++) {
        const json_t *m = json_array_get(mean, (size_t)i),
                     *d = json_array_get(deviation, (size_t)i);
        f->mean[i] = json_number_value(m);
        f->deviation[i] = json_number_value(d);
        if (!json_is_number(m) || !isfinite(f->mean[i]))
            return bad(path, "means that are finite numbers");
        if (!(f->deviation[i] > 0) || !isfinite(f->deviation[i]))
            return bad(path, "deviations above 0");
    }
    return FTH_OK;
}

static fth_err read_json(fth_speech_facts *f, const json_t *json, const char *path) {
    const char *norm = json_string_value(json_object_get(json, "norm"));
    const json_int_t rate = json_integer_value(json_object_get(json, "rate"));
    const json_int_t features = json_integer_value(json_object_get(json, "features"));
    if (rate < 1000 || rate > 384000) return bad(path, "a rate of 1000 to 384000");
    if (features < 3 || features > FTH_MOST_FEATURES) return bad(path, "3 to 256 features");
    f->rate = (int32_t)rate;
    f->features = (int32_t)features;
    for (int i = FTH_FEATURE_NORM_UTTERANCE; norm && i <= FTH_FEATURE_NORM_NONE; i++)
        if (strcmp(norm, fth_feature_norm_name((fth_feature_norm)i)) == 0) {
            f->norm = (fth_feature_norm)i;
            return i == FTH_FEATURE_NORM_GLOBAL ? read_global(f, json, path) : FTH_OK;
        }
    return bad(path, "a norm of utterance, global or none");
}

fth_err fth_speech_facts_load(fth_speech_facts *f, const char *folder) {
    json_t *json = NULL;
    *f = (fth_speech_facts){0};
    if (!fth_folder_has(folder, "speech.json")) return FTH_OK;
    char *path = fth_strdup_printf("%s/speech.json", folder);
    if (!path) return fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", folder);
    fth_err err = fth_json_load(path, &json);
    if (err == FTH_OK) err = read_json(f, json, path);
    json_decref(json);
    free(path);
    return err;
}
