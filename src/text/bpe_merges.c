/* bpe_merges.c: a hash table with open places; a word is a linked list of symbols, and a heap has
 * the merges that its neighbours could make. */
#include "text/bpe_merges.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static size_t place_of(const fth_bpe_merges *m, int32_t left, int32_t right) {
    const uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    const uint64_t h = pair * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)((h ^ h >> 29) >> 8) & (m->size - 1);
}

fth_err fth_bpe_merges_init(fth_bpe_merges *m, size_t n) {
    m->size = 16;
    while (m->size < 2 * n) m->size *= 2;
    m->places = malloc(m->size * sizeof *m->places);
    if (!m->places) return fth_fail(FTH_NO_MEMORY, "no memory for %zu merges", n);
    for (size_t i = 0; i < m->size; i++) m->places[i].left = -1;
    return FTH_OK;
}

void fth_bpe_merges_fini(fth_bpe_merges *m) {
    free(m->places);
    *m = (fth_bpe_merges){0};
}

const fth_bpe_merge *fth_bpe_merges_find(const fth_bpe_merges *m, int32_t left, int32_t right) {
    for (size_t i = place_of(m, left, right);; i = (i + 1) & (m->size - 1)) {
        const fth_bpe_merge *at = &m->places[i];
        if (at->left == left && at->right == right) return at;
        if (at->left < 0) return NULL;
    }
}

fth_err fth_bpe_merges_add(fth_bpe_merges *m, fth_bpe_merge merge) {
    if (fth_bpe_merges_find(m, merge.left, merge.right))
        return fth_fail(FTH_BAD_INPUT, "the same two are merged before");
    size_t i = place_of(m, merge.left, merge.right);
    while (m->places[i].left >= 0) i = (i + 1) & (m->size - 1);
    m->places[i] = merge;
    return FTH_OK;
}

/* A merge that the symbol at a place could make with the next one. */
typedef struct chance {
    int32_t rank, made;
    size_t at;
} chance;

enum { SHORT_WORD = 64, NOTHING = -1 };

/* A word on its way. Symbols that were merged into their left neighbour are NOTHING. */
typedef struct word {
    const fth_bpe_merges *merges;
    int32_t *ids;         /* [n] */
    size_t *next, *prior; /* [n] neighbours; n: none */
    chance *heap;         /* [3 n] the best is first */
    size_t n, n_heap;
} word;

static bool better(chance a, chance b) {
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void push(word *w, chance c) {
    size_t i = w->n_heap++;
    for (; i > 0 && better(c, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = c;
}

static chance pop(word *w) {
    const chance top = w->heap[0], last = w->heap[--w->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < w->n_heap; i = child) {
        child += child + 1 < w->n_heap && better(w->heap[child + 1], w->heap[child]);
        if (!better(w->heap[child], last)) break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = last;
    return top;
}

/* Notes what the symbol at a place could make with the next one. */
static void consider(word *w, size_t at) {
    if (at >= w->n || w->next[at] >= w->n) return;
    const fth_bpe_merge *m = fth_bpe_merges_find(w->merges, w->ids[at], w->ids[w->next[at]]);
    if (m) push(w, (chance){m->rank, m->made, at});
}

/* Do the symbols still stand there from which the chance was made? */
static bool holds(const word *w, chance c) {
    if (w->ids[c.at] == NOTHING || w->next[c.at] >= w->n) return false;
    const fth_bpe_merge *m = fth_bpe_merges_find(w->merges, w->ids[c.at], w->ids[w->next[c.at]]);
    return m && m->rank == c.rank;
}

static size_t join(word *w) {
    for (size_t i = 0; i < w->n; i++) {
        w->next[i] = i + 1;
        w->prior[i] = i ? i - 1 : w->n;
    }
    for (size_t i = 0; i + 1 < w->n; i++) consider(w, i);
    while (w->n_heap) {
        const chance c = pop(w);
        if (!holds(w, c)) continue;
        const size_t gone = w->next[c.at], after = w->next[gone];
        w->ids[c.at] = c.made;
        w->ids[gone] = NOTHING;
        w->next[c.at] = after;
        if (after < w->n) w->prior[after] = c.at;
        consider(w, c.at);
        consider(w, w->prior[c.at]);
    }
    size_t kept = 0;
    for (size_t i = 0; i < w->n; i++)
        if (w->ids[i] != NOTHING) w->ids[kept++] = w->ids[i];
    return kept;
}

fth_err fth_bpe_join(const fth_bpe_merges *m, int32_t *ids, size_t *n) {
    size_t links[2 * SHORT_WORD];
    chance heap[3 * SHORT_WORD];
    word w = {.merges = m, .ids = ids, .next = links, .heap = heap, .n = *n};
    void *memory = NULL;
    if (*n < 2) return FTH_OK;
    if (*n > SHORT_WORD) {
        memory = malloc(*n * (3 * sizeof(chance) + 2 * sizeof(size_t)));
        if (!memory) return fth_fail(FTH_NO_MEMORY, "no memory for a word of %zu bytes", *n);
        w.heap = memory;
        w.next = (size_t *)(w.heap + 3 * *n);
    }
    w.prior = w.next + *n;
    *n = join(&w);
    free(memory);
    return FTH_OK;
}

void fth_bpe_join_dropped(const fth_bpe_merges *m, double p, fth_rng *rng, int32_t *ids,
                          size_t *n) {
    for (;;) {
        const fth_bpe_merge *best = NULL;
        size_t at = 0;
        for (size_t i = 0; i + 1 < *n; i++) {
            const fth_bpe_merge *one = fth_bpe_merges_find(m, ids[i], ids[i + 1]);
            if (!one || fth_rng_uniform(rng) < p) continue;
            if (best && best->rank <= one->rank) continue;
            best = one;
            at = i;
        }
        if (!best) return;
        ids[at] = best->made;
        memmove(ids + at + 1, ids + at + 2, (*n - at - 2) * sizeof *ids);
        --*n;
    }
}
