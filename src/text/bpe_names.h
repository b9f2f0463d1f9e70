/* bpe_names.h: strings, each kept once, numbered as they come. */
#ifndef FTH_TEXT_BPE_NAMES_H
#define FTH_TEXT_BPE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* A zeroed one is empty and may be freed. */
typedef struct fth_bpe_names {
    fth_str text; /* one after the other, each with a NUL after it */
    size_t *at;   /* [n + 1] where they begin; the last: where the next one will */
    int32_t n;
    int32_t *places;   /* [size] numbers by hash; -1: nothing is here */
    size_t size, room; /* of places, a power of two; of at */
} fth_bpe_names;

void fth_bpe_names_fini(fth_bpe_names *names);

/* The number of a string, which is added where it is not there yet. */
fth_err fth_bpe_names_add(fth_bpe_names *names, const char *text, size_t length, int32_t *number);

static inline const char *fth_bpe_names_get(const fth_bpe_names *names, int32_t i, size_t *length) {
    *length = names->at[i + 1] - names->at[i] - 1;
    return names->text.text + names->at[i];
}

#endif
