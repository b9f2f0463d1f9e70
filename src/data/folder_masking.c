/* folder_masking.c: looks the mask up in the tokenizer. */
#include "data/folder_masking.h"

fth_err fth_folder_masking(const fth_folder *f, const fth_dataset *d, fth_masking *m,
                           uint8_t **word_start) {
    fth_tokenizer *t = NULL;
    FTH_TRY(fth_folder_tokenizer(f, 0, &t));
    m->mask = fth_tokenizer_id(t, FTH_MASK_PIECE);
    m->vocab = d->side[0].vocab;
    m->special = d->side[0].special;
    fth_err err = fth_word_starts(t, word_start);
    m->word_start = *word_start;
    fth_tokenizer_free(t);
    if (err != FTH_OK || m->mask >= 0) return err;
    return fth_fail(FTH_USAGE,
                    "--head masked-token: the tokenizer of %s has no piece " FTH_MASK_PIECE
                    "; fathom prepare --mask makes one that has",
                    f->path);
}
