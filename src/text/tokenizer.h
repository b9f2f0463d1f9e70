/* tokenizer.h: text to token ids and back, by SentencePiece or by GPT-2's byte-level BPE.
 *
 * Which of the two it is shows in the file: a SentencePiece model, or a tokenizer.json in the form
 * of Hugging Face's tokenizers. A tokenizer is const after loading and may be used by many threads
 * at once. */
#ifndef FTH_TEXT_TOKENIZER_H
#define FTH_TEXT_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/error.h"
#include "base/philox.h"
#include "base/str.h"
#include "text/ids.h"
#include "text/word_cache.h"

/* The special ids of every tokenizer that is trained here (doc/formats.md#configjson). */
enum { FTH_BOS = 0, FTH_PAD = 1, FTH_EOS = 2, FTH_UNK = 3 };

/* The model type that is no SentencePiece. */
#define FTH_BYTE_BPE "byte-bpe"

/* What stands for a masked token, in vocabularies that are made for it. */
#define FTH_MASK_PIECE "<mask>"

typedef struct fth_special_ids {
    int32_t bos, pad, eos, unk;
} fth_special_ids;

typedef struct fth_tokenizer_spec {
    const char *model_type;    /* bpe, unigram; word: between spaces; char; byte-bpe: GPT-2's */
    int32_t vocab_size;        /* all ids, special ones included; 0: all there are (word, char) */
    double character_coverage; /* share of the text's characters that get a piece; in (0, 1] */
    int byte_fallback;         /* bytes for characters without a piece, instead of unk */
    const char *user_symbols;  /* pieces that are never cut, "a,b,c"; "" or NULL: none */
    const char
        *normalization; /* nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf, identity; "" or NULL: by type,
                                  identity for word and char, else nmt_nfkc */
} fth_tokenizer_spec;

/* Gives the next line of training text, valid until the next call; *text = NULL after the last. */
typedef fth_err (*fth_text_next)(void *state, const char **text, size_t *length);

/* Trains a model. *model is malloc'd: the content of its file. The same text and spec give the same
 * bytes. FTH_BAD_INPUT when vocab_size does not suit the text; the message has the bound. All lines
 * are kept in memory until the end: a caller with a large text gives a sample (data/sample.h).
 * SentencePiece works in a process of its own, so its death is an error like others. state may be
 * as before afterwards, or at the end of the text. */
fth_err fth_tokenizer_train(const fth_tokenizer_spec *spec, fth_text_next next, void *state,
                            char **model, size_t *size);

typedef struct fth_tokenizer fth_tokenizer;

fth_err fth_tokenizer_load(const char *path, fth_tokenizer **out);

/* The same from memory; name is what messages call it. */
fth_err fth_tokenizer_parse(const void *data, size_t size, const char *name, fth_tokenizer **out);
void fth_tokenizer_free(fth_tokenizer *t);

/* What the file of a tokenizer ends with: "model" or "json". */
const char *fth_tokenizer_suffix(const fth_tokenizer *t);

/* Reads what a data set keeps of a tokenizer: the file itself, or for a vocab.json of GPT-2 the
 * tokenizer.json that it makes with the merges.txt or vocab.bpe beside it. *data is malloc'd. */
fth_err fth_tokenizer_read(const char *path, char **data, size_t *size);

/* The tokenizer file in a folder, of part "" (both sides), ".src" or ".tgt": its path, malloc'd;
 * *path is NULL where there is none. */
fth_err fth_tokenizer_find(const char *folder, const char *part, char **path);

/* Those of a model folder: one for both sides (*src is *tgt then) or one for each. FTH_NOT_FOUND
 * where there is none. */
fth_err fth_tokenizers_load(const char *folder, fth_tokenizer **src, fth_tokenizer **tgt);

/* The number of ids. What a model from elsewhere lacks of bos, pad and unk follows after its own
 * ids; a SentencePiece model that has no bos uses its eos. */
int32_t fth_tokenizer_size(const fth_tokenizer *t);
fth_special_ids fth_tokenizer_special(const fth_tokenizer *t);

/* Appends the ids of a line; no bos, no eos. */
fth_err fth_tokenizer_encode(const fth_tokenizer *t, const char *text, size_t length, fth_ids *out);

/* A segmentation drawn by BPE dropout (Provilkov et al. 2020): words are put together from
 * characters, in each step the best merge of those that are left when each is dropped with
 * probability p; nothing left ends the word. The draw is rng's alone. FTH_USAGE for a model that is
 * not BPE. */
fth_err fth_tokenizer_encode_dropped(const fth_tokenizer *t, const char *text, size_t length,
                                     double p, fth_rng *rng, fth_ids *out);

/* The same ids, from the cache where it can: many times faster on long texts. */
fth_err fth_tokenizer_encode_cached(const fth_tokenizer *t, fth_word_cache *cache, const char *text,
                                    size_t length, fth_ids *out);

/* Appends the pieces of a line, with a space between; what is no piece stands as it is written. */
fth_err fth_tokenizer_pieces(const fth_tokenizer *t, const char *text, size_t length, fth_str *out);

/* Appends the text of ids; bos, eos and pad give none. FTH_BAD_INPUT for an id out of range. */
fth_err fth_tokenizer_decode(const fth_tokenizer *t, const int32_t *ids, size_t n, fth_str *out);

/* The piece of an id ("" when out of range), and the id of a piece (-1 when there is none). */
const char *fth_tokenizer_piece(const fth_tokenizer *t, int32_t id);
int32_t fth_tokenizer_id(const fth_tokenizer *t, const char *piece);

/* Does the piece of an id begin a word, after a blank? */
int fth_tokenizer_starts_word(const fth_tokenizer *t, int32_t id);

#ifdef __cplusplus
}
#endif
#endif
