/* byte_bpe.h: GPT-2's byte-level BPE (Radford et al. 2019).
 *
 * A text is cut into words (gpt2_words.h); a word is its bytes, and merges put them together. Every
 * text has its ids, none is unknown, and the ids give back every byte. Files write a byte as a
 * letter: its own character where it can be seen, else one from U+0100 on. */
#ifndef FTH_TEXT_BYTE_BPE_H
#define FTH_TEXT_BYTE_BPE_H

#include <stddef.h>
#include <stdint.h>

#include "text/bpe_parts.h"

/* Copies what it needs. FTH_BAD_INPUT when the parts are not a vocabulary of bytes; name begins the
 * message. A bos, pad or unk that is missing follows after the n ids. */
fth_err fth_byte_bpe_new(const fth_bpe_parts *parts, const char *name, fth_tokenizer **out);

/* Gives every word of a text as it is cut, between symbols. */
typedef fth_err (*fth_bpe_visit)(void *state, const char *word, size_t length);
fth_err fth_byte_bpe_words(const fth_tokenizer *t, const char *text, size_t length,
                           fth_bpe_visit visit, void *state);

/* Trains one; as fth_tokenizer_train. *model is a tokenizer.json. */
fth_err fth_byte_bpe_train(const fth_tokenizer_spec *spec, fth_text_next next, void *state,
                           char **model, size_t *size);

/* The letter of a byte, and the byte of a letter (-1: none). */
uint32_t fth_bpe_letter(unsigned char byte);
int fth_bpe_byte(uint32_t letter);

#endif
