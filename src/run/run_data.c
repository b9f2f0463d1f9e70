/* run_data.c: what the data of a run decide: vocabularies and special ids, batches, the longest
 * sentence. */
#include "run/run.h"

#include "data/frames.h"
#include "run/run_encoder.h"
#include "run/run_speech.h"

fth_err fth_run_config(const fth_run_spec *spec, const fth_folder *folder, const fth_dataset *data,
                       fth_config *c) {
    const fth_data_side *tgt = &data->side[data->n_sides - 1], *src = &data->side[0];
    *c = spec->config;
    if (spec->sampling_temperature > 0 && !folder->languages.n)
        return fth_fail(
            FTH_USAGE,
            "--sampling-temperature %g: %s has one pair of languages; it is for those of "
            "fathom prepare --pairs",
            spec->sampling_temperature, spec->data);
    if (c->arch != FTH_ENC && data->images)
        return fth_fail(FTH_USAGE, "%s: has pictures; use --arch enc", spec->data);
    if (c->arch == FTH_ENCDEC && data->n_sides != 2 && !data->frames)
        return fth_fail(FTH_BAD_INPUT,
                        "%s: has one side, --arch encdec needs source and target; use --arch dec",
                        spec->data);
    c->src_vocab = c->arch == FTH_ENCDEC ? src->vocab : 0;
    c->tgt_vocab = tgt->vocab;
    if (c->arch == FTH_ENCDEC && folder->separate && c->share == FTH_SHARE_ALL)
        return fth_fail(FTH_USAGE,
                        "--share all: needs a joint vocabulary, %s has one for each "
                        "side; use --share dec or none",
                        spec->data);
    c->bos = tgt->special.bos;
    c->pad = tgt->special.pad;
    c->eos = tgt->special.eos;
    c->unk = tgt->special.unk;
    if (data->frames) FTH_TRY(fth_run_speech_config(spec, data, c));
    if (c->arch == FTH_ENC) FTH_TRY(fth_run_encoder_config(spec, data, c));
    const bool blocks = c->arch == FTH_DEC ||
                        (c->arch == FTH_ENC && !data->images && c->head == FTH_HEAD_MASKED_TOKEN);
    if (blocks && spec->block > c->max_positions)
        return fth_fail(FTH_USAGE, "blocks of %lld tokens are longer than --max-positions %d",
                        (long long)spec->block, c->max_positions);
    return FTH_OK;
}

/* Labelled sentences and pictures are no blocks. */
int32_t fth_run_block(const fth_run_spec *s, const fth_item_spec *item) {
    return item->encoder && !item->masking ? 0 : (int32_t)s->block;
}

fth_err fth_run_batcher(const fth_run_spec *s, const fth_dataset *data, const fth_item_spec *item,
                        fth_batcher **out) {
    fth_batch_options options = {.item = *item,
                                 .max_tokens = (int32_t)s->max_tokens,
                                 .max_length = s->config.max_positions,
                                 .strict = s->strict,
                                 .seed = s->recipe.seed,
                                 .block = fth_run_block(s, item),
                                 .temperature = s->sampling_temperature};
    return fth_batcher_new(data, &options, out);
}

int64_t fth_run_longest(const fth_run_spec *spec, const fth_dataset *train,
                        const fth_dataset *valid) {
    const bool labelled = spec->config.arch == FTH_ENC && train->labels && !train->images;
    if (spec->block > 0 && !labelled && !train->images) return spec->block;
    int64_t most = 0;
    const fth_dataset *sets[2] = {train, valid};
    for (int i = 0; i < 2; i++)
        for (int s = 0; sets[i] && s < sets[i]->n_sides; s++) {
            const int64_t rows = (int64_t)sets[i]->side[s].longest + 1 + labelled;
            if (rows > most) most = rows;
        }
    for (int i = 0; i < 2; i++) {
        const fth_vectors *frames = sets[i] ? sets[i]->frames : NULL;
        if (frames && fth_frame_rows(frames->longest) > most)
            most = fth_frame_rows(frames->longest);
    }
    if (most > spec->config.max_positions) most = spec->config.max_positions;
    return most < spec->max_tokens ? most : spec->max_tokens;
}
