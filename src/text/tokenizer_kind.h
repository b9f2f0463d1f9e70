/* tokenizer_kind.h: what a kind of tokenizer is to tokenizer.c: a table of functions. There are
 * two, SentencePiece (sentencepiece.cc) and GPT-2's byte-level BPE (byte_bpe.c). */
#ifndef FTH_TEXT_TOKENIZER_KIND_H
#define FTH_TEXT_TOKENIZER_KIND_H

#include "text/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fth_tokenizer_kind {
    const char *suffix;    /* of its files: tokenizer.SUFFIX */
    const char *word_mark; /* what a piece begins with that begins a word */
    void (*free)(fth_tokenizer *t);
    /* cache: NULL: none */
    fth_err (*encode)(const fth_tokenizer *t, fth_word_cache *cache, const char *text,
                      size_t length, fth_ids *out);
    fth_err (*encode_dropped)(const fth_tokenizer *t, const char *text, size_t length, double p,
                              fth_rng *rng, fth_ids *out);
    fth_err (*decode)(const fth_tokenizer *t, const int32_t *ids, size_t n, fth_str *out);
    const char *(*piece)(const fth_tokenizer *t, int32_t id);
    int32_t (*id)(const fth_tokenizer *t, const char *piece);
    /* the pieces of a line as they are written, with a space between; NULL: those of its ids */
    fth_err (*pieces)(const fth_tokenizer *t, const char *text, size_t length, fth_str *out);
} fth_tokenizer_kind;

/* Every kind's struct begins with this. */
struct fth_tokenizer {
    const fth_tokenizer_kind *kind;
    fth_special_ids special;
    int32_t size; /* all ids */
};

/* The readers and trainers of the kinds, as those of tokenizer.h. */
fth_err fth_spm_parse(const void *data, size_t size, const char *name, fth_tokenizer **out);
fth_err fth_spm_train(const fth_tokenizer_spec *spec, fth_text_next next, void *state, char **model,
                      size_t *size);

#ifdef __cplusplus
}
#endif
#endif
