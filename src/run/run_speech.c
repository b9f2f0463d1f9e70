/* run_speech.c: recordings are the source of an encoder-decoder; its words are the target's
 * alone. */
#include "run/run_speech.h"

fth_err fth_run_speech_config(const fth_run_spec *spec, const fth_dataset *data, fth_config *c) {
    if (c->arch != FTH_ENCDEC)
        return fth_fail(FTH_USAGE, "%s: has recordings; use --arch encdec, not %s", spec->data,
                        fth_arch_name(c->arch));
    c->front = FTH_FRONT_SPEECH;
    c->features = data->frames->width;
    c->conv_channels = spec->conv_channels;
    c->src_vocab = 0;
    if (c->share == FTH_SHARE_ALL) c->share = FTH_SHARE_DEC; /* the source has no words */
    return FTH_OK;
}

void fth_run_speech_items(fth_run_items *items, const fth_run_spec *spec) {
    items->spec_augment = spec->spec_augment;
    items->spec_augment.seed = spec->recipe.seed;
    if (items->spec_augment.freq_n || items->spec_augment.time_n)
        items->train.spec_augment = &items->spec_augment;
}
