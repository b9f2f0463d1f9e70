/* fits.c: compares the config with the data set's sides, vocabularies and tokenizer. */
#include "train/fits.h"

fth_err fth_fits(const fth_config *c, const char *model, const fth_folder *folder,
                 const fth_dataset *data) {
    const char *path = folder->path;
    const int32_t tgt = data->side[data->n_sides - 1].vocab, src = data->side[0].vocab;
    if (c->arch == FTH_ENCDEC && data->n_sides != 2)
        return fth_fail(FTH_BAD_INPUT, "%s: has one side, an encdec model needs two", path);
    if (tgt != c->tgt_vocab)
        return fth_fail(FTH_BAD_INPUT, "%s: has a target vocabulary of %d, the model of %d", path,
                        tgt, c->tgt_vocab);
    if (c->arch == FTH_ENCDEC && src != c->src_vocab)
        return fth_fail(FTH_BAD_INPUT, "%s: has a source vocabulary of %d, the model of %d", path,
                        src, c->src_vocab);
    return fth_folder_check_model(folder, model);
}
