/* run_encoder.c: front and head by the data set; masks, changes of pictures. */
#include "run/run_encoder.h"
#include "run/run_speech.h"

#include <math.h>
#include <stdlib.h>

#include "data/folder_masking.h"

static fth_head_id head_of_data(const fth_dataset *d) {
    return !d->labels   ? FTH_HEAD_MASKED_TOKEN
           : d->places  ? FTH_HEAD_TOKEN_CLASS
           : d->classes ? FTH_HEAD_CLASS
                        : FTH_HEAD_REGRESSION;
}

static fth_err refuse(const fth_run_spec *spec, const fth_config *c, const char *why) {
    return fth_fail(FTH_USAGE, "--head %s: %s %s", fth_head_name(c->head), spec->data, why);
}

/* Do the data have what the head is to say? */
static fth_err check_head(const fth_run_spec *spec, const fth_dataset *d, const fth_config *c) {
    switch (c->head) {
    case FTH_HEAD_CLASS:
        if (d->labels && d->places)
            return refuse(spec, c, "has classes of words or pixels; use --head token-class");
        if (d->labels && d->classes) return FTH_OK;
        return refuse(spec, c,
                      d->labels ? "has numbers as labels; use --head regression"
                                : "has no labels; fathom prepare --columns makes them");
    case FTH_HEAD_REGRESSION:
        if (d->labels && !d->classes) return FTH_OK;
        return refuse(spec, c,
                      d->labels ? "has classes; use --head class"
                                : "has no labels; fathom prepare --labels number keeps them");
    case FTH_HEAD_MASKED_TOKEN:
        if (!d->images || d->codebook.k) return FTH_OK;
        return refuse(spec, c, "has no codebook; fathom prepare --visual-tokens makes one");
    case FTH_HEAD_TOKEN_CLASS:
        if (d->places) return FTH_OK;
        return refuse(spec, c,
                      "has no classes of words or pixels; fathom prepare --train-tagged or "
                      "--label-maps keeps them");
    default: return refuse(spec, c, "cannot train it; use masked-token, class or regression");
    }
}

static void take_pictures(const fth_dataset *d, fth_config *c) {
    c->front = FTH_FRONT_IMAGE;
    c->share = FTH_SHARE_NONE; /* there are no words */
    c->image_size[0] = d->image.height;
    c->image_size[1] = d->image.width;
    c->channels = d->image.channels;
    c->patch = d->image.patch;
    c->visual_tokens = c->head == FTH_HEAD_MASKED_TOKEN ? d->image.visual_tokens : 0;
}

fth_err fth_run_encoder_config(const fth_run_spec *spec, const fth_dataset *data, fth_config *c) {
    if (data->n_sides != 1)
        return fth_fail(FTH_BAD_INPUT,
                        "%s: has pairs, --arch enc reads one text; use --arch encdec", spec->data);
    if (!spec->head_given) c->head = head_of_data(data);
    FTH_TRY(check_head(spec, data, c));
    const bool classes = c->head == FTH_HEAD_CLASS || c->head == FTH_HEAD_TOKEN_CLASS;
    c->classes = classes ? data->classes : 0;
    c->src_vocab = data->images ? 0 : data->side[0].vocab;
    c->tgt_vocab = 0;
    if (data->images) take_pictures(data, c);
    if (!data->images || fth_config_patches(c) + fth_config_has_cls(c) <= c->max_positions)
        return FTH_OK;
    return fth_fail(FTH_USAGE, "--max-positions %d: pictures have %d rows", c->max_positions,
                    fth_config_patches(c) + fth_config_has_cls(c));
}

static fth_err init_masking(fth_run_items *items, const fth_run_spec *spec,
                            const fth_folder *folder, const fth_dataset *data) {
    items->masking = (fth_masking){.share = spec->encoder.mask_prob,
                                   .keep = spec->encoder.mask_keep,
                                   .random = spec->encoder.mask_random,
                                   .unit = spec->encoder.mask_unit,
                                   .seed = spec->recipe.seed};
    return fth_folder_masking(folder, data, &items->masking, &items->word_start);
}

fth_err fth_run_items_init(fth_run_items *items, const fth_run_spec *spec, const fth_folder *folder,
                           const fth_dataset *data, const fth_config *c) {
    const fth_encoder_data *e = &spec->encoder;
    *items = (fth_run_items){0};
    if (data->frames) fth_run_speech_items(items, spec);
    if (c->arch != FTH_ENC) return FTH_OK;
    items->train.encoder = true;
    items->train.seed = spec->recipe.seed;
    items->train.places = c->head == FTH_HEAD_TOKEN_CLASS;
    if (data->images) {
        items->train.class_token = fth_config_has_cls(c);
        if (c->head == FTH_HEAD_MASKED_TOKEN) items->train.masked = e->mask_patches;
    } else if (c->head == FTH_HEAD_MASKED_TOKEN) {
        FTH_TRY(init_masking(items, spec, folder, data));
        items->train.masking = &items->masking;
    }
    items->valid = items->train;
    if (e->mixup > 0) {
        if (!data->images || c->head != FTH_HEAD_CLASS)
            return fth_fail(FTH_USAGE, "--mixup %g: is for classes of pictures (--head class)",
                            e->mixup);
        items->train.mixup = (fth_mixup){e->mixup, spec->recipe.seed};
    }
    items->augment = (fth_augment){e->crop, e->flip, e->erase, spec->recipe.seed};
    if (data->images && (e->crop || e->flip || e->erase > 0))
        items->train.augment = &items->augment;
    return FTH_OK;
}

/* Pictures are all of one size. Of text cut into blocks, of which the last of a text alone is
 * shorter, the share of every block may be rounded up; whole words can be longer than what was left
 * to choose. */
void fth_run_encoder_room(const fth_run_items *items, const fth_config *c, int64_t block,
                          fth_trainer_spec *size) {
    const int64_t rows = size->src_tokens, patches = fth_config_patches(c);
    if (patches > 0) {
        const int64_t pictures = rows / (patches + fth_config_has_cls(c));
        size->sentences = pictures;
        size->numbers = pictures * patches;
        if (items->train.masked > 0)
            size->picked = pictures * llrint(items->train.masked * (double)patches);
    } else if (items->train.masking && block > 0 && items->masking.unit != FTH_MASK_WORDS) {
        const int64_t most = (int64_t)ceil(items->masking.share * (double)rows) + rows / block + 2;
        size->picked = most < rows ? most : rows;
    }
}

void fth_run_items_fini(fth_run_items *items) {
    free(items->word_start);
    *items = (fth_run_items){0};
}
