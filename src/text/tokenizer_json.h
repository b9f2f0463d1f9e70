/* tokenizer_json.h: files of byte-level BPE: tokenizer.json, as Hugging Face's tokenizers have it,
 * and GPT-2's vocab.json with its merges.
 *
 * A tokenizer.json may hold other models than byte-level BPE; those are refused by name. */
#ifndef FTH_TEXT_TOKENIZER_JSON_H
#define FTH_TEXT_TOKENIZER_JSON_H

#include "text/bpe_parts.h"

/* Reads a tokenizer.json; FTH_BAD_INPUT with name, key, value and rule. */
fth_err fth_tokenizer_json_parse(const void *data, size_t size, const char *name,
                                 fth_tokenizer **out);

/* Makes the text of a tokenizer.json, malloc'd. */
fth_err fth_tokenizer_json_print(const fth_bpe_parts *parts, char **text, size_t *size);

/* Where data, the file at path, is a vocab.json: *made is the tokenizer.json of it and of the
 * merges.txt or vocab.bpe beside it, malloc'd. NULL where data is none. */
fth_err fth_gpt2_files_join(const char *path, const char *data, size_t size, char **made,
                            size_t *made_size);

#endif
