/* gpt2_words.h: the words of GPT-2 (Radford et al. 2019), inside of which its BPE merges.
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * Every byte of a text is in exactly one word. \p{L} and \p{N} are letters and numbers of Unicode
 * 16, \s is its white space. */
#ifndef FTH_TEXT_GPT2_WORDS_H
#define FTH_TEXT_GPT2_WORDS_H

#include <stddef.h>

/* The bytes of the word that text begins with; length > 0. What is not UTF-8 counts as signs. */
size_t fth_gpt2_word(const char *text, size_t length);

#endif
