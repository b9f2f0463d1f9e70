/* items.c: an item is a sentence with its end symbol, or a block of the stream of all sentences
 * that may begin in the middle of one. */
#include "data/items.h"

#include <stdlib.h>
#include <string.h>

#include "data/label_set.h"
#include "data/frames.h"

static fth_err init_blocks(fth_items *items) {
    const fth_dataset *data = items->data;
    const int64_t block = items->spec.block, context = items->spec.context;
    if (data->n_sides != 1)
        return fth_fail(FTH_BAD_INPUT, "%s: pairs; blocks are made of plain text", data->path);
    if (block < 1 + items->spec.encoder || context < 0 || context >= block)
        return fth_fail(FTH_USAGE, "context-window %lld is not in [0, %lld), the tokens of a block",
                        (long long)context, (long long)block);
    items->stream = data->side[0].tokens + data->sentences;
    items->fresh = block - context - items->spec.encoder; /* an encoder's begin with bos */
    items->n = (items->stream + items->fresh - 1) / items->fresh;
    return FTH_OK;
}

static fth_err init_pictures(fth_items *items) {
    const size_t numbers = (size_t)fth_image_numbers(&items->data->image);
    items->picture = malloc(3 * numbers * sizeof *items->picture);
    items->map = malloc(numbers);
    return items->picture && items->map ? FTH_OK
                                        : fth_fail(FTH_NO_MEMORY, "no memory for a picture");
}

fth_err fth_items_init(fth_items *items, const fth_dataset *data, const fth_item_spec *spec) {
    *items =
        (fth_items){.data = data, .spec = *spec, .target = data->n_sides - 1, .n = data->sentences};
    if (data->images) return init_pictures(items);
    return spec->block ? init_blocks(items) : FTH_OK;
}

void fth_items_fini(fth_items *items) {
    free(items->picture);
    free(items->map);
    *items = (fth_items){0};
}

int32_t fth_items_width(const fth_items *items) {
    if (items->data->frames) return FTH_FRAMES_OF_ROW * items->data->frames->width;
    return items->data->images ? fth_image_patch_width(&items->data->image) : 0;
}

/* The stream's tokens [*begin, *fresh) are context of block i, [*fresh, *end) are its own. */
static void block_range(const fth_items *items, int64_t i, int64_t *begin, int64_t *fresh,
                        int64_t *end) {
    *fresh = i * items->fresh;
    const int64_t context = items->spec.context;
    *begin = *fresh > context ? *fresh - context : 0;
    *end = *fresh + items->fresh < items->stream ? *fresh + items->fresh : items->stream;
}

/* Rows of an encoder's item: with the bos or the class token. */
static fth_err encoder_rows(const fth_items *items, int64_t i, int64_t *src) {
    const fth_dataset *d = items->data;
    if (d->images) {
        *src = fth_image_patches(&d->image) + items->spec.class_token;
    } else if (items->stream) {
        int64_t begin, fresh, end;
        block_range(items, i, &begin, &fresh, &end);
        *src = end - begin + 1;
    } else {
        const int64_t length = fth_dataset_length(d, 0, i);
        if (length < 0) return fth_dataset_damaged(d, 0, i);
        *src = length + 2;
    }
    return FTH_OK;
}

fth_err fth_items_rows(const fth_items *items, int64_t i, int64_t *src, int64_t *tgt) {
    const fth_dataset *d = items->data;
    *src = *tgt = 0;
    if (items->spec.encoder) return encoder_rows(items, i, src);
    if (items->stream) {
        int64_t begin, fresh, end;
        block_range(items, i, &begin, &fresh, &end);
        *tgt = end - begin;
        return FTH_OK;
    }
    for (int s = 0; s < d->n_sides; s++) {
        int64_t length = fth_dataset_length(d, s, i);
        if (length < 0) return fth_dataset_damaged(d, s, i);
        *(s == items->target ? tgt : src) = length + 1;
    }
    if (d->frames) {
        const int64_t frames = fth_vectors_length(d->frames, i);
        if (frames < 0) return fth_vectors_damaged(d->frames, i);
        *src = fth_frame_rows(frames);
    }
    return FTH_OK;
}

/* The first line of the stream whose end symbol is at or behind a token: line i begins at
 * offsets[i] + i. */
static int64_t line_at(const fth_dataset *d, int64_t token) {
    int64_t low = 0, high = d->sentences - 1;
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (d->offsets[0][middle] + (uint64_t)middle <= (uint64_t)token)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Copies the stream's tokens [begin, end). */
static fth_err copy_stream(const fth_dataset *d, int64_t begin, int64_t end, int32_t *out) {
    int64_t line = line_at(d, begin);
    for (int64_t at = begin; at < end; line++) {
        if (line >= d->sentences) return fth_dataset_damaged(d, 0, d->sentences - 1);
        int64_t length = fth_dataset_length(d, 0, line);
        int64_t from = at - ((int64_t)d->offsets[0][line] + line);
        if (length < 0 || from < 0 || from > length) return fth_dataset_damaged(d, 0, line);
        int64_t n = length - from < end - at ? length - from : end - at;
        FTH_TRY(fth_dataset_copy(d, 0, line, from, n, out));
        out += n;
        at += n;
        if (at < end) {
            *out++ = d->side[0].special.eos;
            at++;
        }
    }
    return FTH_OK;
}

static fth_err fill_block(const fth_items *items, int64_t i, int32_t *in, int32_t *out) {
    const fth_dataset *d = items->data;
    int64_t begin, fresh, end;
    block_range(items, i, &begin, &fresh, &end);
    FTH_TRY(copy_stream(d, begin, end, out));
    if (begin == 0)
        in[0] = d->side[0].special.eos;
    else
        FTH_TRY(copy_stream(d, begin - 1, begin, in));
    memcpy(in + 1, out, (size_t)(end - begin - 1) * sizeof *in);
    for (int64_t k = begin; k < fresh; k++) out[k - begin] = -1;
    return FTH_OK;
}

static fth_err fill_sentence(const fth_items *items, int64_t i, int32_t *src, int32_t *in,
                             int32_t *out) {
    const fth_dataset *d = items->data;
    if (d->n_sides == 2) {
        int64_t n = fth_dataset_length(d, FTH_SOURCE, i);
        FTH_TRY(fth_dataset_copy(d, FTH_SOURCE, i, 0, n, src));
        src[n] = d->side[FTH_SOURCE].special.eos;
    }
    const fth_special_ids *special = &d->side[items->target].special;
    int64_t n = fth_dataset_length(d, items->target, i);
    FTH_TRY(fth_dataset_copy(d, items->target, i, 0, n, out));
    in[0] = special->bos;
    memcpy(in + 1, out, (size_t)n * sizeof *in);
    out[n] = special->eos;
    return FTH_OK;
}

/* ---- of encoders ---- */

/* The classes of a sentence's tokens, between those of bos and eos, which have none. */
static fth_err fill_tags(const fth_items *items, int64_t i, int64_t rows, int32_t *targets) {
    const fth_dataset *d = items->data;
    if (fth_vectors_length(d->labels, i) != rows - 2) return fth_vectors_damaged(d->labels, i);
    const int32_t *class = fth_vectors_at(d->labels, i);
    targets[0] = targets[rows - 1] = -1;
    for (int64_t k = 0; k < rows - 2; k++) {
        if (class[k] >= d->classes)
            return fth_fail(FTH_BAD_INPUT, "%s: record %lld has class %d, not in [0, %d)",
                            d->labels->path, (long long)i, class[k], d -> classes);
        targets[k + 1] = class[k] < 0 ? -1 : class[k];
    }
    return FTH_OK;
}

static fth_err fill_encoder_text(const fth_items *items, int64_t i, int64_t epoch,
                                 const fth_item_rows *to) {
    const fth_dataset *d = items->data;
    const fth_special_ids *special = &d->side[0].special;
    int64_t rows;
    FTH_TRY(encoder_rows(items, i, &rows));
    to->src[0] = special->bos;
    if (items->stream) {
        int64_t begin, fresh, end;
        block_range(items, i, &begin, &fresh, &end);
        FTH_TRY(copy_stream(d, begin, end, to->src + 1));
    } else {
        FTH_TRY(fth_dataset_copy(d, 0, i, 0, rows - 2, to->src + 1));
        to->src[rows - 1] = special->eos;
    }
    if (items->spec.places) return fill_tags(items, i, rows, to->src_out);
    if (!items->spec.masking) return FTH_OK;
    return fth_masking_apply(items->spec.masking, epoch, i, rows, to->src, to->src_out);
}

/* Patches that are hidden have to be guessed: the pattern of the codebook that is nearest. */
static void mask_patches(const fth_items *items, int64_t i, int64_t epoch,
                         const fth_item_rows *to) {
    const fth_dataset *d = items->data;
    const fth_image_facts *f = &d->image;
    const int32_t patches = fth_image_patches(f);
    int32_t *targets = to->src_out + items->spec.class_token;
    fth_masking_blocks(items->spec.seed, epoch, i, items->spec.masked, f->height / f->patch,
                       f->width / f->patch, to->masked);
    fth_codebook_tokens(&d->codebook, to->numbers, patches, targets);
    if (items->spec.class_token) to->src_out[0] = -1;
    for (int32_t k = 0; k < patches; k++)
        if (!to->masked[k]) targets[k] = -1;
}

/* The class that most pixels of a patch have, the first of several; -1: none has one. */
static int32_t class_of_patch(const fth_image_facts *f, const uint8_t *map, int32_t top,
                              int32_t left, int32_t classes) {
    int32_t count[FTH_NO_CLASS + 1] = {0}, best = 0;
    for (int32_t y = top; y < top + f->patch; y++)
        for (int32_t x = left; x < left + f->patch; x++) count[map[y * f->width + x]]++;
    for (int32_t k = 1; k < classes && k < FTH_NO_CLASS; k++)
        if (count[k] > count[best]) best = k;
    return count[best] > 0 ? best : -1;
}

/* The classes of the patches, as they are in the changed picture. */
static void fill_places(const fth_items *items, int64_t i, int64_t epoch, const fth_item_rows *to) {
    const fth_dataset *d = items->data;
    const fth_image_facts *f = &d->image;
    const uint8_t *map = fth_vectors_at(d->labels, i);
    int32_t *targets = to->src_out;
    if (items->spec.augment) {
        fth_augment_map(items->spec.augment, epoch, i, f->height, f->width, FTH_NO_CLASS, map,
                        items->map);
        map = items->map;
    }
    if (items->spec.class_token) *targets++ = -1;
    for (int32_t top = 0; top < f->height; top += f->patch)
        for (int32_t left = 0; left < f->width; left += f->patch)
            *targets++ = class_of_patch(f, map, top, left, d->classes);
}

/* A picture as it is in an epoch, [channels, height, width], at the first or second place of the
 * room. */
static float *take_picture(const fth_items *items, int64_t i, int64_t epoch, int place) {
    const fth_image_facts *f = &items->data->image;
    const int32_t numbers = fth_image_numbers(f);
    float *picture = items->picture + place * numbers, *as_it_is = items->picture + 2 * numbers;
    if (!items->spec.augment) {
        fth_image_normalise(f, fth_vectors_at(items->data->images, i), picture);
        return picture;
    }
    fth_image_normalise(f, fth_vectors_at(items->data->images, i), as_it_is);
    fth_augment_apply(items->spec.augment, epoch, i, f->channels, f->height, f->width, as_it_is,
                      picture);
    return picture;
}

static bool is_mixed(const fth_items *items) {
    return items->spec.mixup.a > 0;
}

static void fill_picture(const fth_items *items, int64_t i, int64_t epoch,
                         const fth_item_rows *to) {
    const fth_image_facts *f = &items->data->image;
    float *picture = take_picture(items, i, epoch, 0);
    if (is_mixed(items)) {
        const fth_mixed mix = fth_mixup_draw(&items->spec.mixup, epoch, i, items->n);
        fth_mixup_apply(mix.share, take_picture(items, mix.other, epoch, 1), fth_image_numbers(f),
                        picture);
    }
    fth_cut_patches(picture, f->channels, f->height, f->width, f->patch, to->numbers);
    if (items->spec.masked > 0) mask_patches(items, i, epoch, to);
    if (items->spec.places) fill_places(items, i, epoch, to);
}

static void fill_label(const fth_items *items, int64_t i, int64_t epoch, const fth_item_rows *to) {
    const fth_vectors *labels = items->data->labels;
    if (!labels || items->data->places) return;
    if (is_mixed(items)) {
        const fth_mixed mix = fth_mixup_draw(&items->spec.mixup, epoch, i, items->n);
        if (mix.takes_other) i = mix.other;
    }
    if (items->data->classes)
        *to->label = *(const int32_t *)fth_vectors_at(labels, i);
    else
        *to->value = *(const float *)fth_vectors_at(labels, i);
}

static void fill_frames(const fth_items *items, int64_t i, int64_t epoch, const fth_item_rows *to) {
    const fth_vectors *frames = items->data->frames;
    const int64_t n = fth_vectors_length(frames, i);
    fth_frames_unpack(fth_vectors_at(frames, i), n, frames->width, to->numbers, to->masked);
    if (items->spec.spec_augment)
        fth_spec_augment_apply(items->spec.spec_augment, epoch, i, n, frames->width, to->numbers);
}

fth_err fth_items_fill(const fth_items *items, int64_t i, int64_t epoch, const fth_item_rows *to) {
    if (items->data->frames) fill_frames(items, i, epoch, to);
    if (!items->spec.encoder)
        return items->stream ? fill_block(items, i, to->in, to->out)
                             : fill_sentence(items, i, to->src, to->in, to->out);
    fill_label(items, i, epoch, to);
    if (!items->data->images) return fill_encoder_text(items, i, epoch, to);
    fill_picture(items, i, epoch, to);
    return FTH_OK;
}
