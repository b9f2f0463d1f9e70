/* tokenizer.c: the two kinds behind one face, told apart by the first byte of a file; and the names
 * that their files have in a folder. */
#include "text/tokenizer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "text/byte_bpe.h"
#include "text/tokenizer_json.h"
#include "text/tokenizer_kind.h"

/* No SentencePiece model begins with a brace: it is a field that protocol buffers have not. */
static bool is_json(const char *data, size_t size) {
    size_t at = 0;
    while (at < size && strchr(" \t\r\n", data[at]) && data[at]) at++;
    return at < size && data[at] == '{';
}

fth_err fth_tokenizer_parse(const void *data, size_t size, const char *name, fth_tokenizer **out) {
    return is_json(data, size) ? fth_tokenizer_json_parse(data, size, name, out)
                               : fth_spm_parse(data, size, name, out);
}

fth_err fth_tokenizer_read(const char *path, char **data, size_t *size) {
    char *made = NULL;
    size_t length = 0;
    FTH_TRY(fth_file_read(path, data, size));
    if (!is_json(*data, *size)) return FTH_OK;
    fth_err err = fth_gpt2_files_join(path, *data, *size, &made, &length);
    if (err || made) free(*data);
    if (err) *data = NULL;
    if (!err && made) {
        *data = made;
        *size = length;
    }
    return err;
}

fth_err fth_tokenizer_load(const char *path, fth_tokenizer **out) {
    char *data = NULL;
    size_t size = 0;
    FTH_TRY(fth_tokenizer_read(path, &data, &size));
    fth_err err = fth_tokenizer_parse(data, size, path, out);
    free(data);
    return err;
}

fth_err fth_tokenizer_find(const char *folder, const char *part, char **path) {
    static const char *const suffixes[] = {"model", "json"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        *path = fth_strdup_printf("%s/tokenizer%s.%s", folder, part, suffixes[i]);
        if (!*path) return fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", folder);
        if (fth_file_exists(*path)) return FTH_OK;
        free(*path);
    }
    *path = NULL;
    return FTH_OK;
}

/* *out is NULL where the folder has none of that part. */
static fth_err load_part(const char *folder, const char *part, fth_tokenizer **out) {
    char *path = NULL;
    *out = NULL;
    FTH_TRY(fth_tokenizer_find(folder, part, &path));
    fth_err err = path ? fth_tokenizer_load(path, out) : FTH_OK;
    free(path);
    return err;
}

fth_err fth_tokenizers_load(const char *folder, fth_tokenizer **src, fth_tokenizer **tgt) {
    *src = *tgt = NULL;
    FTH_TRY(load_part(folder, "", tgt));
    *src = *tgt;
    if (*tgt) return FTH_OK;
    fth_err err = load_part(folder, ".src", src);
    if (!err) err = load_part(folder, ".tgt", tgt);
    if (!err && !(*src && *tgt))
        err = fth_fail(FTH_NOT_FOUND,
                       "%s: has no tokenizer.model and no tokenizer.json; fathom train puts one "
                       "into its checkpoints",
                       folder);
    if (!err) return FTH_OK;
    fth_tokenizer_free(*src);
    fth_tokenizer_free(*tgt);
    *src = *tgt = NULL;
    return err;
}

fth_err fth_tokenizer_train(const fth_tokenizer_spec *spec, fth_text_next next, void *state,
                            char **model, size_t *size) {
    return strcmp(spec->model_type, FTH_BYTE_BPE) == 0
               ? fth_byte_bpe_train(spec, next, state, model, size)
               : fth_spm_train(spec, next, state, model, size);
}

void fth_tokenizer_free(fth_tokenizer *t) {
    if (t) t->kind->free(t);
}

const char *fth_tokenizer_suffix(const fth_tokenizer *t) {
    return t->kind->suffix;
}

int32_t fth_tokenizer_size(const fth_tokenizer *t) {
    return t->size;
}

fth_special_ids fth_tokenizer_special(const fth_tokenizer *t) {
    return t->special;
}

fth_err fth_tokenizer_encode(const fth_tokenizer *t, const char *text, size_t length,
                             fth_ids *out) {
    return t->kind->encode(t, NULL, text, length, out);
}

fth_err fth_tokenizer_encode_dropped(const fth_tokenizer *t, const char *text, size_t length,
                                     double p, fth_rng *rng, fth_ids *out) {
    return t->kind->encode_dropped(t, text, length, p, rng, out);
}

fth_err fth_tokenizer_encode_cached(const fth_tokenizer *t, fth_word_cache *cache, const char *text,
                                    size_t length, fth_ids *out) {
    return t->kind->encode(t, cache, text, length, out);
}

fth_err fth_tokenizer_decode(const fth_tokenizer *t, const int32_t *ids, size_t n, fth_str *out) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= t->size)
            return fth_fail(FTH_BAD_INPUT, "token id %d is not in [0, %d)", ids[i], t->size);
    return t->kind->decode(t, ids, n, out);
}

fth_err fth_tokenizer_pieces(const fth_tokenizer *t, const char *text, size_t length,
                             fth_str *out) {
    if (t->kind->pieces) return t->kind->pieces(t, text, length, out);
    fth_ids ids = {0};
    fth_err err = fth_tokenizer_encode(t, text, length, &ids);
    for (size_t i = 0; err == FTH_OK && i < ids.n; i++)
        err = fth_str_addf(out, "%s%s", i ? " " : "", fth_tokenizer_piece(t, ids.ids[i]));
    fth_ids_fini(&ids);
    return err;
}

const char *fth_tokenizer_piece(const fth_tokenizer *t, int32_t id) {
    return id < 0 || id >= t->size ? "" : t->kind->piece(t, id);
}

int32_t fth_tokenizer_id(const fth_tokenizer *t, const char *piece) {
    return t->kind->id(t, piece);
}

int fth_tokenizer_starts_word(const fth_tokenizer *t, int32_t id) {
    const char *mark = t->kind->word_mark;
    return strncmp(fth_tokenizer_piece(t, id), mark, strlen(mark)) == 0;
}
