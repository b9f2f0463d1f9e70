/* words.c: cuts at white space and gives every different word a number, by a hash table. */
#include "metric/words.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "text/unicode.h"

fth_err fth_word_ids_add(fth_word_ids *list, uint32_t id) {
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 64;
        uint32_t *grown = realloc(list->id, capacity * sizeof *grown);
        if (!grown) return fth_fail(FTH_NO_MEMORY, "no memory for a list of %zu ids", capacity);
        list->id = grown;
        list->capacity = capacity;
    }
    list->id[list->n++] = id;
    return FTH_OK;
}

void fth_word_ids_fini(fth_word_ids *list) {
    free(list->id);
    *list = (fth_word_ids){0};
}

static fth_text word_of(const fth_vocab *v, size_t id) {
    return (fth_text){v->words.text + v->start[id], v->start[id + 1] - v->start[id]};
}

/* The slot of the word, or the free slot where it belongs. */
static size_t find_slot(const fth_vocab *v, fth_text word) {
    size_t at = fth_hash64(word.text, word.length) & (v->n_slots - 1);
    for (; v->slot[at]; at = (at + 1) & (v->n_slots - 1)) {
        fth_text other = word_of(v, v->slot[at] - 1);
        if (other.length == word.length && memcmp(other.text, word.text, word.length) == 0) break;
    }
    return at;
}

static fth_err grow_vocab(fth_vocab *v) {
    size_t capacity = v->capacity ? 2 * v->capacity : 512, n_slots = 4 * capacity;
    if (capacity >= UINT32_MAX / 4)
        return fth_fail(FTH_NO_MEMORY, "more than %zu different words", v->capacity);
    size_t *start = realloc(v->start, (capacity + 1) * sizeof *start);
    if (start) v->start = start;
    uint32_t *slot = calloc(n_slots, sizeof *slot);
    if (!start || !slot) {
        free(slot);
        return fth_fail(FTH_NO_MEMORY, "no memory for %zu different words", capacity);
    }
    free(v->slot);
    v->slot = slot;
    v->n_slots = n_slots;
    v->capacity = capacity;
    for (size_t i = 0; i < v->n; i++) v->slot[find_slot(v, word_of(v, i))] = (uint32_t)i + 1;
    return FTH_OK;
}

fth_err fth_vocab_id(fth_vocab *v, fth_text word, uint32_t *id) {
    if (v->n == v->capacity) FTH_TRY(grow_vocab(v));
    size_t at = find_slot(v, word);
    if (!v->slot[at]) {
        v->start[v->n] = v->words.length;
        FTH_TRY(fth_str_add(&v->words, word.text, word.length));
        v->start[++v->n] = v->words.length;
        v->slot[at] = (uint32_t)v->n;
    }
    *id = v->slot[at] - 1;
    return FTH_OK;
}

void fth_vocab_fini(fth_vocab *v) {
    fth_str_fini(&v->words);
    free(v->start);
    free(v->slot);
    *v = (fth_vocab){0};
}

fth_err fth_split_words(fth_vocab *v, fth_text t, fth_word_ids *out) {
    const char *end = t.text + t.length, *word = t.text;
    out->n = 0;
    for (const char *p = t.text;;) {
        size_t n = 0;
        if (p == end || fth_is_space(fth_code_point(p, &n))) {
            uint32_t id;
            if (p > word) {
                FTH_TRY(fth_vocab_id(v, (fth_text){word, (size_t)(p - word)}, &id));
                FTH_TRY(fth_word_ids_add(out, id));
            }
            if (p == end) return FTH_OK;
            word = p + n;
        }
        p += n;
    }
}

static fth_err add_code_points(fth_text t, int keep_spaces, fth_word_ids *out) {
    out->n = 0;
    for (size_t i = 0, n; i < t.length; i += n) {
        uint32_t c = fth_code_point(t.text + i, &n);
        if (keep_spaces || !fth_is_space(c)) FTH_TRY(fth_word_ids_add(out, c));
    }
    return FTH_OK;
}

fth_err fth_code_points(fth_text t, fth_word_ids *out) {
    return add_code_points(t, 1, out);
}

fth_err fth_dense_code_points(fth_text t, fth_word_ids *out) {
    return add_code_points(t, 0, out);
}
