/* bpe_names.c: a hash table with open places, half of them empty at least. */
#include "text/bpe_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

void fth_bpe_names_fini(fth_bpe_names *names) {
    fth_str_fini(&names->text);
    free(names->at);
    free(names->places);
    *names = (fth_bpe_names){0};
}

/* The place of a string, or the empty one where it belongs. */
static size_t find(const fth_bpe_names *names, const char *text, size_t length) {
    size_t i = (size_t)fth_hash64(text, length) & (names->size - 1), other;
    for (; names->places[i] >= 0; i = (i + 1) & (names->size - 1)) {
        const char *there = fth_bpe_names_get(names, names->places[i], &other);
        if (other == length && memcmp(there, text, length) == 0) break;
    }
    return i;
}

static fth_err grow(fth_bpe_names *names) {
    const size_t size = names->size ? 2 * names->size : 1024;
    int32_t *places = malloc(size * sizeof *places);
    if (!places) return fth_fail(FTH_NO_MEMORY, "no memory for %zu words", size);
    for (size_t i = 0; i < size; i++) places[i] = -1;
    free(names->places);
    names->places = places;
    names->size = size;
    for (int32_t i = 0; i < names->n; i++) {
        size_t length;
        const char *text = fth_bpe_names_get(names, i, &length);
        places[find(names, text, length)] = i;
    }
    return FTH_OK;
}

static fth_err reserve(fth_bpe_names *names) {
    if ((size_t)names->n + 2 <= names->room) return FTH_OK;
    const size_t room = 2 * names->room + 1024;
    size_t *at = realloc(names->at, room * sizeof *at);
    if (!at) return fth_fail(FTH_NO_MEMORY, "no memory for %zu words", room);
    if (!names->at) at[0] = 0;
    names->at = at;
    names->room = room;
    return FTH_OK;
}

fth_err fth_bpe_names_add(fth_bpe_names *names, const char *text, size_t length, int32_t *number) {
    if (2 * ((size_t)names->n + 1) > names->size) FTH_TRY(grow(names));
    FTH_TRY(reserve(names));
    const size_t place = find(names, text, length);
    *number = names->places[place];
    if (*number >= 0) return FTH_OK;
    FTH_TRY(fth_str_add(&names->text, text, length));
    fth_err err = fth_str_add(&names->text, "", 1);
    if (err) {
        names->text.length -= length;
        return err;
    }
    *number = names->places[place] = names->n++;
    names->at[names->n] = names->text.length;
    return FTH_OK;
}
