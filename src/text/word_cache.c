/* word_cache.c: one place for a hash; a collision replaces. */
#include "text/word_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

fth_err fth_word_cache_init(fth_word_cache *c) {
    c->places = calloc(FTH_CACHE_PLACES, sizeof *c->places);
    return c->places ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a cache of words");
}

void fth_word_cache_fini(fth_word_cache *c) {
    free(c->places);
    *c = (fth_word_cache){0};
}

fth_cached_word *fth_word_cache_place(fth_word_cache *c, const char *word, size_t length) {
    return &c->places[fth_hash64(word, length) % FTH_CACHE_PLACES];
}

int fth_cached(const fth_cached_word *place, const char *word, size_t length) {
    return place->length == length && memcmp(place->word, word, length) == 0;
}

void fth_cache_word(fth_cached_word *place, const char *word, size_t length, const int32_t *ids,
                    size_t n) {
    if (n > FTH_CACHED_IDS) return;
    place->length = (uint8_t)length;
    place->n = (uint8_t)n;
    memcpy(place->word, word, length);
    if (n) memcpy(place->ids, ids, n * sizeof *ids);
}
