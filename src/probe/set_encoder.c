/* set_encoder.c: fills padded matrices with the items that training would see, pictures
 * unchanged. */
#include "probe/set_encoder.h"

#include <stdlib.h>
#include <string.h>

#include "data/folder_masking.h"
#include "data/items.h"
#include "head/head.h"
#include "store/safetensors.h"

/* The shares that train has by default. */
static const fth_masking usual = {.share = 0.15, .keep = 0.1, .random = 0.1};
#define USUAL_PATCHES 0.4

typedef struct sheet {
    const fth_dataset *data;
    const fth_config *c;
    fth_items items;
    fth_masking masking;
    uint8_t *word_start;
    int64_t n, width;       /* samples; words or patches of the longest */
    int32_t *src, *src_out; /* [n, width] */
    int32_t *masked;        /* [n, patches] */
    int32_t *labels;        /* [n] */
    float *values;          /* [n] */
    float *images;          /* [n, numbers of a picture] */
    float *patches;         /* [numbers of a picture] room for a sample */
    int32_t *rows;          /* [2, width + 1] likewise */
} sheet;

static void sheet_fini(sheet *s) {
    fth_items_fini(&s->items);
    free(s->word_start);
    free(s->src);
    free(s->src_out);
    free(s->masked);
    free(s->labels);
    free(s->values);
    free(s->images);
    free(s->patches);
    free(s->rows);
}

static fth_err open_items(sheet *s, const fth_folder *folder, uint64_t seed) {
    const fth_config *c = s->c;
    fth_item_spec spec = {.encoder = true, .seed = seed};
    const bool hides = c->head == FTH_HEAD_MASKED_TOKEN;
    spec.places = c->head == FTH_HEAD_TOKEN_CLASS;
    if (s->data->images) {
        spec.class_token = fth_config_has_cls(c);
        spec.masked = hides ? USUAL_PATCHES : 0;
    } else if (hides) {
        s->masking = usual;
        s->masking.seed = seed;
        FTH_TRY(fth_folder_masking(folder, s->data, &s->masking, &s->word_start));
        spec.masking = &s->masking;
    }
    return fth_items_init(&s->items, s->data, &spec);
}

static fth_err open_room(sheet *s, const int64_t *chosen) {
    int64_t rows, none;
    for (int64_t i = 0; i < s->n; i++) {
        FTH_TRY(fth_items_rows(&s->items, chosen[i], &rows, &none));
        if (rows > s->width) s->width = rows;
    }
    const size_t n = (size_t)s->n, cells = n * (size_t)s->width;
    const size_t numbers = s->data->images ? (size_t)fth_image_numbers(&s->data->image) : 0;
    s->src = malloc(sizeof *s->src * (cells + 1));
    s->src_out = malloc(sizeof *s->src_out * (cells + 1));
    s->masked = calloc(cells + 1, sizeof *s->masked);
    s->labels = calloc(n + 1, sizeof *s->labels);
    s->values = calloc(n + 1, sizeof *s->values);
    s->images = malloc(sizeof *s->images * (n * numbers + 1));
    s->patches = malloc(sizeof *s->patches * (numbers + 1));
    s->rows = malloc(2 * sizeof *s->rows * ((size_t)s->width + 1));
    if (s->src && s->src_out && s->masked && s->labels && s->values && s->images && s->patches &&
        s->rows)
        return FTH_OK;
    return fth_fail(FTH_NO_MEMORY, "no memory for %lld samples", (long long)s->n);
}

/* Words, padded; a row without a target has the pad there too, or -1 where classes are targets. */
static fth_err take_text(sheet *s, int64_t i, int64_t item, const fth_item_rows *to) {
    int32_t *src = s->src + i * s->width, *out = s->src_out + i * s->width;
    const int32_t no_target = s->items.spec.places ? -1 : s->c->pad;
    int64_t rows, none;
    FTH_TRY(fth_items_rows(&s->items, item, &rows, &none));
    for (int64_t k = 0; k < s->width; k++) {
        src[k] = k < rows ? to->src[k] : s->c->pad;
        out[k] = k < rows && to->src_out[k] >= 0 ? to->src_out[k] : no_target;
    }
    return FTH_OK;
}

static void take_picture(sheet *s, int64_t i, int64_t item, const fth_item_rows *to) {
    const fth_image_facts *f = &s->data->image;
    const int64_t patches = fth_image_patches(f), cls = s->items.spec.class_token;
    fth_image_normalise(f, fth_vectors_at(s->data->images, item),
                        s->images + i * fth_image_numbers(f));
    memcpy(s->src_out + i * patches, to->src_out + cls, sizeof *s->src_out * (size_t)patches);
}

static fth_err fill(sheet *s, const int64_t *chosen) {
    const int64_t patches = fth_image_patches(&s->data->image);
    for (int64_t i = 0; i < s->n; i++) {
        const fth_item_rows to = {.src = s->rows,
                                  .src_out = s->rows + s->width + 1,
                                  .numbers = s->patches,
                                  .masked = s->masked + i * patches,
                                  .label = s->labels + i,
                                  .value = s->values + i};
        for (int64_t k = 0; k < s->width; k++) to.src_out[k] = -1;
        FTH_TRY(fth_items_fill(&s->items, chosen[i], 0, &to));
        if (s->data->images)
            take_picture(s, i, chosen[i], &to);
        else
            FTH_TRY(take_text(s, i, chosen[i], &to));
    }
    return FTH_OK;
}

/* The tensors that the model's front and head ask for. */
static fth_err write(const sheet *s, const char *path) {
    const fth_config *c = s->c;
    const fth_target_form form = fth_head_targets(c);
    const int64_t patches = fth_image_patches(&s->data->image);
    const int64_t width = s->data->images ? patches : s->width;
    fth_st_tensor tensors[4];
    size_t n = 0;
    if (s->data->images)
        tensors[n++] = (fth_st_tensor){"image",
                                       FTH_ST_F32,
                                       4,
                                       {s->n, c->channels, c->image_size[0], c->image_size[1]},
                                       s->images};
    else
        tensors[n++] = (fth_st_tensor){"src", FTH_ST_I32, 2, {s->n, width}, s->src};
    if (form == FTH_TARGET_CLASS)
        tensors[n++] = (fth_st_tensor){"label", FTH_ST_I32, 1, {s->n}, s->labels};
    else if (form == FTH_TARGET_VALUE)
        tensors[n++] = (fth_st_tensor){"label", FTH_ST_F32, 1, {s->n}, s->values};
    else
        tensors[n++] = (fth_st_tensor){"src_out", FTH_ST_I32, 2, {s->n, width}, s->src_out};
    if (fth_config_has(c, "visual_tokens"))
        tensors[n++] = (fth_st_tensor){"masked", FTH_ST_I32, 2, {s->n, patches}, s->masked};
    return fth_st_write(path, tensors, n, NULL, NULL, NULL);
}

fth_err fth_probe_set_encoder(const fth_folder *folder, const fth_dataset *data,
                              const fth_config *c, const int64_t *chosen, int64_t n, uint64_t seed,
                              const char *path) {
    sheet s = {.data = data, .c = c, .n = n};
    if (c->head == FTH_HEAD_NEXT_TOKEN || (c->head == FTH_HEAD_TOKEN_CLASS && !data->places))
        return fth_fail(FTH_USAGE, "%s: has no targets for head %s; use --batch", folder->path,
                        fth_head_name(c->head));
    fth_err err = open_items(&s, folder, seed);
    if (err == FTH_OK) err = open_room(&s, chosen);
    if (err == FTH_OK) err = fill(&s, chosen);
    if (err == FTH_OK) err = write(&s, path);
    sheet_fini(&s);
    return err;
}
