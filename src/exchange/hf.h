/* hf.h: folders of Hugging Face's transformers: config.json, model.safetensors, and what goes with
 * them. */
#ifndef FTH_EXCHANGE_HF_H
#define FTH_EXCHANGE_HF_H

#include <jansson.h>

#include "exchange/format.h"

/* ---- writing ---- */

/* The part of config.json that all have; more is added to it. NULL: no memory. */
json_t *fth_hf_config(const fth_export_job *job, const char *architecture, const char *model_type);
/* Adds the keys of own, which is given up, to a config. NULL where either is. */
json_t *fth_hf_join(json_t *config, json_t *own);
/* vocab.json and the SentencePiece model of a model with one vocabulary, where it has them. */
fth_err fth_hf_write_words(const fth_export_job *job);
/* Python that continues a text, for the model card. */
#define FTH_HF_DECODER_EXAMPLE(kind)                                                               \
    "import sentencepiece, torch\n"                                                                \
    "from transformers import " kind "\n"                                                          \
    "model = " kind ".from_pretrained(\".\")\n"                                                    \
    "pieces = sentencepiece.SentencePieceProcessor(\"tokenizer.model\")\n"                         \
    "ids = torch.tensor([[model.config.eos_token_id, *pieces.encode(\"a line\")]])\n"              \
    "print(pieces.decode(model.generate(ids, max_new_tokens=20)[0].tolist()))\n"
/* The name of an activation. */
const char *fth_hf_activation(const fth_config *c);
/* generation_config.json: special ids, beam 5 or greedy, the longest output. start < 0: none. */
fth_err fth_hf_write_generation(const fth_export_job *job, int32_t start, int beam);

/* ---- reading ---- */

typedef struct fth_hf_folder {
    const char *path;
    char file[512]; /* config.json of it, for messages */
    json_t *config;
    json_t *vocab; /* vocab.json, {piece: number}; NULL: none */
} fth_hf_folder;

/* Opens a folder whose settings are in the file `name`. */
fth_err fth_hf_open_as(fth_hf_folder *h, const char *path, const char *name);
void fth_hf_close(fth_hf_folder *h);

/* Opens one whose config.json says model_type, and reads a model from it. */
typedef fth_err fth_hf_reader(const fth_hf_folder *h, fth_weighted *out);
fth_err fth_hf_read_as(const char *path, const char *model_type, fth_hf_reader *read,
                       fth_weighted *out);

/* A key of config.json; a missing one, or null, is the fallback, INT32_MIN and NULL: it must be
 * there. */
fth_err fth_hf_int(const fth_hf_folder *h, const char *key, int64_t fallback, int32_t *out);
/* Two keys that must have the same value. */
fth_err fth_hf_twice(const fth_hf_folder *h, const char *a, const char *b, int32_t *out);
fth_err fth_hf_number(const fth_hf_folder *h, const char *key, double fallback, double *out);
fth_err fth_hf_bool(const fth_hf_folder *h, const char *key, bool fallback, bool *out);
/* Fails unless the key is this, which it is when missing too where that is the fallback. */
fth_err fth_hf_expect(const fth_hf_folder *h, const char *key, bool fallback, bool wanted,
                      const char *rule);
/* The activation under a key: relu or gelu by the error function. */
fth_err fth_hf_read_activation(const fth_hf_folder *h, const char *key, const char *fallback,
                               fth_activation *out);

/* Words that fathom needs and the model has not. */
typedef struct fth_hf_words {
    int32_t more;   /* rows that the vocabulary gets at its end */
    int32_t copied; /* the row that the new bos is a copy of, -1: it is never read */
} fth_hf_words;

/* Sets bos, pad, eos and unk of c, and the vocabularies' sizes. start: what the decoder reads
 * first, -1 where that is eos (decoders alone) or there is none. */
fth_err fth_hf_special(const fth_hf_folder *h, int32_t start, fth_config *c, fth_hf_words *words);

/* Reads model.safetensors by a table. c: complete. */
fth_err fth_hf_read(const fth_hf_folder *h, const fth_config *c, const fth_rows_in *in,
                    fth_adjust *adjust, fth_weighted *out);

#endif
