/* word_cache.h: the tokens of words that were cut lately.
 *
 * SentencePiece takes microseconds for a token; most words of a text have been seen before. A fixed
 * number of places, a word's hash chooses its place, a newer word replaces an older one there. For
 * one tokenizer and one thread. */
#ifndef FTH_TEXT_WORD_CACHE_H
#define FTH_TEXT_WORD_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { FTH_CACHED_BYTES = 62, FTH_CACHED_IDS = 16, FTH_CACHE_PLACES = 1 << 15 };

typedef struct fth_cached_word {
    uint8_t length;              /* of word; 0: nothing is here */
    uint8_t n;                   /* ids */
    char word[FTH_CACHED_BYTES]; /* [length] */
    int32_t ids[FTH_CACHED_IDS]; /* [n] */
} fth_cached_word;

typedef struct fth_word_cache {
    fth_cached_word *places; /* [FTH_CACHE_PLACES] */
} fth_word_cache;

/* A zeroed cache may be freed. */
fth_err fth_word_cache_init(fth_word_cache *c);
void fth_word_cache_fini(fth_word_cache *c);

/* The place of a word: it is there when fth_cached says so. length is in [1, FTH_CACHED_BYTES]. */
fth_cached_word *fth_word_cache_place(fth_word_cache *c, const char *word, size_t length);
int fth_cached(const fth_cached_word *place, const char *word, size_t length);

/* Puts a word there, if it has few enough ids. */
void fth_cache_word(fth_cached_word *place, const char *word, size_t length, const int32_t *ids,
                    size_t n);

#endif
