/* fits.c: compares the config with the data set's sides, vocabularies and tokenizer. */
#include "train/fits.h"

#include <stdbool.h>

/* What the head needs is in the data, and the input is of the model's kind. */
static fth_err fits_encoder(const fth_config *c, const char *model, const fth_folder *folder,
                            const fth_dataset *data) {
    const char *path = folder->path;
    if (data->frames)
        return fth_fail(FTH_BAD_INPUT, "%s: has recordings, an enc model reads none", path);
    if (data->n_sides != 1)
        return fth_fail(FTH_BAD_INPUT, "%s: has pairs, an enc model reads one text", path);
    if (!data->images != (c->front != FTH_FRONT_IMAGE))
        return fth_fail(FTH_BAD_INPUT, "%s: has %s, the model's front is %s", path,
                        data->images ? "pictures" : "text", fth_front_name(c->front));
    if (data->images &&
        (data->image.height != c->image_size[0] || data->image.width != c->image_size[1] ||
         data->image.channels != c->channels || data->image.patch != c->patch))
        return fth_fail(
            FTH_BAD_INPUT,
            "%s: has pictures of %d x %d x %d in patches of %d, the model of %d x %d x %d in %d",
            path, data->image.channels, data->image.height, data->image.width, data->image.patch,
            c->channels, c->image_size[0], c->image_size[1], c->patch);
    if (data->places != (c->head == FTH_HEAD_TOKEN_CLASS) && c->head != FTH_HEAD_MASKED_TOKEN)
        return fth_fail(FTH_BAD_INPUT, "%s: has %s, the model's head is %s", path,
                        data->places ? "classes of words or pixels"
                                     : "no classes of words or pixels",
                        fth_head_name(c->head));
    if ((c->head == FTH_HEAD_CLASS || c->head == FTH_HEAD_TOKEN_CLASS) &&
        (!data->labels || data->classes != c->classes))
        return fth_fail(FTH_BAD_INPUT, "%s: has %d classes, the model has %d", path,
                        data->labels ? data->classes : 0, c->classes);
    if (c->head == FTH_HEAD_REGRESSION && (!data->labels || data->classes))
        return fth_fail(FTH_BAD_INPUT,
                        "%s: has no numbers as labels, which the model's head predicts", path);
    if (data->images) return FTH_OK;
    if (data->side[0].vocab != c->src_vocab)
        return fth_fail(FTH_BAD_INPUT, "%s: has a vocabulary of %d, the model of %d", path,
                        data->side[0].vocab, c->src_vocab);
    return fth_folder_check_model(folder, model);
}

fth_err fth_fits(const fth_config *c, const char *model, const fth_folder *folder,
                 const fth_dataset *data) {
    const char *path = folder->path;
    if (c->arch == FTH_ENC) return fits_encoder(c, model, folder, data);
    if (data->images)
        return fth_fail(FTH_BAD_INPUT, "%s: has pictures, an %s model reads text", path,
                        fth_arch_name(c->arch));
    const int32_t tgt = data->side[data->n_sides - 1].vocab, src = data->side[0].vocab;
    const bool speech = c->front == FTH_FRONT_SPEECH;
    if (speech != (data->frames != NULL))
        return fth_fail(FTH_BAD_INPUT, "%s: has %s, the model's front is %s", path,
                        data->frames ? "recordings" : "text", fth_front_name(c->front));
    if (speech && data->frames->width != c->features)
        return fth_fail(FTH_BAD_INPUT, "%s: has frames of %d features, the model of %d", path,
                        data->frames->width, c->features);
    if (c->arch == FTH_ENCDEC && !speech && data->n_sides != 2)
        return fth_fail(FTH_BAD_INPUT, "%s: has one side, an encdec model needs two", path);
    if (tgt != c->tgt_vocab)
        return fth_fail(FTH_BAD_INPUT, "%s: has a target vocabulary of %d, the model of %d", path,
                        tgt, c->tgt_vocab);
    if (c->arch == FTH_ENCDEC && !speech && src != c->src_vocab)
        return fth_fail(FTH_BAD_INPUT, "%s: has a source vocabulary of %d, the model of %d", path,
                        src, c->src_vocab);
    return fth_folder_check_model(folder, model);
}
