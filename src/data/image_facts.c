/* image_facts.c: the facts as JSON; normalised pictures. */
#include "data/image_facts.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

/* NULL when out of memory. */
static json_t *json_of(const fth_image_facts *f) {
    json_t *mean = json_array(), *deviation = json_array();
    for (int32_t c = 0; c < f->channels; c++) {
        json_array_append_new(mean, json_real(f->mean[c]));
        json_array_append_new(deviation, json_real(f->deviation[c]));
    }
    return json_pack("{s:[i,i], s:i, s:i, s:i, s:o, s:o}", "size", f->height, f->width, "channels",
                     f->channels, "patch", f->patch, "visual_tokens", f->visual_tokens, "mean",
                     mean, "deviation", deviation);
}

static int32_t whole(const json_t *value, int32_t most) {
    const json_int_t n = json_integer_value(value);
    return n >= 0 && n <= most ? (int32_t)n : 0;
}

static fth_err bad(const char *path, const char *rule) {
    return fth_fail(FTH_BAD_INPUT, "%s: %s", path, rule);
}

static fth_err read_json(fth_image_facts *f, const json_t *json, const char *path) {
    const json_t *size = json_object_get(json, "size"), *mean = json_object_get(json, "mean"),
                 *deviation = json_object_get(json, "deviation");
    f->height = whole(json_array_get(size, 0), 1 << 14);
    f->width = whole(json_array_get(size, 1), 1 << 14);
    f->channels = whole(json_object_get(json, "channels"), FTH_IMAGE_CHANNELS);
    f->patch = whole(json_object_get(json, "patch"), 1 << 10);
    f->visual_tokens = whole(json_object_get(json, "visual_tokens"), 1 << 20);
    if (!f->height || !f->width)
        return bad(path, "must have a size of 1 to 16384 rows and columns");
    if (f->channels != 1 && f->channels != 3) return bad(path, "must have 1 or 3 channels");
    if (!f->patch || f->height % f->patch || f->width % f->patch)
        return bad(path, "must have a patch that divides its size");
    for (int32_t c = 0; c < f->channels; c++) {
        f->mean[c] = json_number_value(json_array_get(mean, (size_t)c));
        f->deviation[c] = json_number_value(json_array_get(deviation, (size_t)c));
        if (!(f->deviation[c] > 0))
            return bad(path, "must have a deviation above 0 for each channel");
    }
    return FTH_OK;
}

fth_err fth_image_facts_write(const fth_image_facts *f, const char *folder) {
    return fth_json_save(json_of(f), folder, "image.json");
}

fth_err fth_image_facts_load(fth_image_facts *f, const char *folder) {
    json_t *json = NULL;
    *f = (fth_image_facts){0};
    if (!fth_folder_has(folder, "image.json")) return FTH_OK;
    char *path = fth_strdup_printf("%s/image.json", folder);
    if (!path) return fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", folder);
    fth_err err = fth_json_load(path, &json);
    if (err == FTH_OK) err = read_json(f, json, path);
    json_decref(json);
    free(path);
    return err;
}

void fth_image_normalise(const fth_image_facts *f, const uint8_t *from, float *to) {
    const int32_t n = f->height * f->width;
    for (int32_t c = 0; c < f->channels; c++) {
        const float mean = (float)f->mean[c], factor = (float)(1 / f->deviation[c]);
        for (int32_t i = c * n; i < (c + 1) * n; i++) to[i] = ((float)from[i] - mean) * factor;
    }
}
