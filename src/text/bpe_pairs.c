/* bpe_pairs.c: counts in a hash table. The heap may hold counts that were true once: what is taken
 * out with an old count goes back with the new one. */
#include "text/bpe_pairs.h"

#include <stdbool.h>
#include <stdlib.h>

void fth_bpe_pairs_fini(fth_bpe_pairs *p) {
    for (size_t i = 0; i < p->n; i++) free(p->pairs[i].words);
    free(p->pairs);
    free(p->places);
    free(p->raised);
    free(p->heap);
    *p = (fth_bpe_pairs){0};
}

/* Room for one more of what takes size bytes. */
static fth_err reserve(void **items, size_t n, size_t *room, size_t size) {
    if (n < *room) return FTH_OK;
    const size_t more = 2 * *room + 64;
    void *grown = realloc(*items, more * size);
    if (!grown) return fth_fail(FTH_NO_MEMORY, "no memory for %zu pairs of symbols", more);
    *items = grown;
    *room = more;
    return FTH_OK;
}

static size_t find(const fth_bpe_pairs *p, int32_t left, int32_t right) {
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    const uint64_t h = key * UINT64_C(0x9E3779B97F4A7C15);
    size_t i = (size_t)(h >> 20) & (p->size - 1);
    for (; p->places[i] >= 0; i = (i + 1) & (p->size - 1)) {
        const fth_bpe_pair *there = &p->pairs[p->places[i]];
        if (there->left == left && there->right == right) break;
    }
    return i;
}

static fth_err grow(fth_bpe_pairs *p) {
    const size_t size = p->size ? 2 * p->size : 1 << 16;
    int32_t *places = malloc(size * sizeof *places);
    if (!places) return fth_fail(FTH_NO_MEMORY, "no memory for %zu pairs of symbols", size);
    for (size_t i = 0; i < size; i++) places[i] = -1;
    free(p->places);
    p->places = places;
    p->size = size;
    for (size_t i = 0; i < p->n; i++)
        places[find(p, p->pairs[i].left, p->pairs[i].right)] = (int32_t)i;
    return FTH_OK;
}

static fth_err pair_of(fth_bpe_pairs *p, int32_t left, int32_t right, fth_bpe_pair **out) {
    if (2 * (p->n + 1) > p->size) FTH_TRY(grow(p));
    const size_t place = find(p, left, right);
    if (p->places[place] < 0) {
        FTH_TRY(reserve((void **)&p->pairs, p->n, &p->room, sizeof *p->pairs));
        p->pairs[p->n] = (fth_bpe_pair){.left = left, .right = right};
        p->places[place] = (int32_t)p->n++;
    }
    *out = &p->pairs[p->places[place]];
    return FTH_OK;
}

fth_err fth_bpe_pairs_count(fth_bpe_pairs *p, int32_t left, int32_t right, int64_t more,
                            int32_t word) {
    fth_bpe_pair *pair;
    FTH_TRY(pair_of(p, left, right, &pair));
    pair->count += more;
    if (more < 0) return FTH_OK;
    if (!pair->raised) {
        FTH_TRY(reserve((void **)&p->raised, p->n_raised, &p->room_raised, sizeof *p->raised));
        p->raised[p->n_raised++] = (int32_t)(pair - p->pairs);
        pair->raised = 1;
    }
    if (pair->n_words && pair->words[pair->n_words - 1] == word) return FTH_OK;
    size_t room = (size_t)pair->room;
    FTH_TRY(reserve((void **)&pair->words, (size_t)pair->n_words, &room, sizeof *pair->words));
    pair->room = (int32_t)room;
    pair->words[pair->n_words++] = word;
    return FTH_OK;
}

static bool before(fth_bpe_rank a, fth_bpe_rank b) {
    if (a.count != b.count) return a.count > b.count;
    return a.left != b.left ? a.left < b.left : a.right < b.right;
}

static fth_err push(fth_bpe_pairs *p, fth_bpe_rank r) {
    FTH_TRY(reserve((void **)&p->heap, p->n_heap, &p->room_heap, sizeof *p->heap));
    size_t i = p->n_heap++;
    for (; i > 0 && before(r, p->heap[(i - 1) / 2]); i = (i - 1) / 2)
        p->heap[i] = p->heap[(i - 1) / 2];
    p->heap[i] = r;
    return FTH_OK;
}

static fth_bpe_rank pop(fth_bpe_pairs *p) {
    const fth_bpe_rank top = p->heap[0], last = p->heap[--p->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < p->n_heap; i = child) {
        child += child + 1 < p->n_heap && before(p->heap[child + 1], p->heap[child]);
        if (!before(p->heap[child], last)) break;
        p->heap[i] = p->heap[child];
    }
    p->heap[i] = last;
    return top;
}

fth_err fth_bpe_pairs_queue(fth_bpe_pairs *p) {
    for (size_t i = 0; i < p->n_raised; i++) {
        fth_bpe_pair *pair = &p->pairs[p->raised[i]];
        pair->raised = 0;
        if (pair->count > 0) FTH_TRY(push(p, (fth_bpe_rank){pair->count, pair->left, pair->right}));
    }
    p->n_raised = 0;
    return FTH_OK;
}

fth_err fth_bpe_pairs_take(fth_bpe_pairs *p, int64_t least, fth_bpe_pair **out) {
    *out = NULL;
    while (p->n_heap) {
        fth_bpe_rank r = pop(p);
        fth_bpe_pair *pair = &p->pairs[p->places[find(p, r.left, r.right)]];
        if (r.count == pair->count && r.count < least) return FTH_OK;
        if (r.count == pair->count) {
            *out = pair;
            return FTH_OK;
        }
        r.count = pair->count;
        if (r.count >= least) FTH_TRY(push(p, r));
    }
    return FTH_OK;
}
