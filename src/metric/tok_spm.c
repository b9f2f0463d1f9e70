/* tok_spm.c: pieces of a SentencePiece model, as sacreBLEU's spm and flores tokenizers: BLEU on
 * them is spBLEU (Goyal et al. 2022), the same for languages with and without spaces. */
#include <stdlib.h>

#include "base/file.h"
#include "base/hash.h"
#include "metric/tok.h"

fth_err fth_tok_spm(fth_text line, fth_tok_work *w) {
    return fth_tokenizer_pieces(w->pieces, line.text, line.length, &w->text);
}

fth_err fth_tok_spm_load(const char *path, fth_tokenizer **out, uint64_t *hash) {
    char *data = NULL;
    size_t size = 0;
    FTH_TRY(fth_file_read(path, &data, &size));
    *hash = fth_hash64(data, size);
    const fth_err err = fth_tokenizer_parse(data, size, path, out);
    free(data);
    return err;
}
