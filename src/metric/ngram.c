/* ngram.c: an open hash table from (prefix, symbol) to a name and its counts. */
#include "metric/ngram.h"

#include <stdlib.h>

struct fth_ngram_slot {
    uint64_t key; /* name of the first n - 1 symbols + 1, then the last symbol */
    uint32_t name, round;
};

struct fth_ngram {
    uint32_t count[FTH_GRAM_SIDES];
    uint32_t order;
};

static size_t first_slot(const fth_ngrams *g, uint64_t key) {
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(key ^ key >> 32) & (g->n_slots - 1);
}

static struct fth_ngram_slot *find(const fth_ngrams *g, uint64_t key) {
    size_t at = first_slot(g, key);
    while (g->slot[at].round == g->round && g->slot[at].key != key)
        at = (at + 1) & (g->n_slots - 1);
    return &g->slot[at];
}

static fth_err grow(fth_ngrams *g) {
    size_t old_slots = g->n_slots, n_slots = old_slots ? 2 * old_slots : 4096;
    struct fth_ngram_slot *old = g->slot, *slot = calloc(n_slots, sizeof *slot);
    struct fth_ngram *gram = realloc(g->gram, n_slots / 2 * sizeof *gram);
    if (gram) g->gram = gram;
    if (!slot || !gram) {
        free(slot);
        return fth_fail(FTH_NO_MEMORY, "no memory for %zu n-grams of one line", n_slots / 2);
    }
    g->slot = slot;
    g->n_slots = n_slots;
    for (size_t i = 0; i < old_slots; i++)
        if (old[i].round == g->round) *find(g, old[i].key) = old[i];
    free(old);
    return FTH_OK;
}

fth_err fth_ngrams_reset(fth_ngrams *g) {
    g->n = 0;
    if (!g->n_slots) {
        g->round = 1; /* calloc'd slots have round 0: free */
        return grow(g);
    }
    if (++g->round == 0) { /* wrapped around: really empty the slots */
        for (size_t i = 0; i < g->n_slots; i++) g->slot[i].round = 0;
        g->round = 1;
    }
    return FTH_OK;
}

void fth_ngrams_fini(fth_ngrams *g) {
    free(g->slot);
    free(g->gram);
    fth_word_ids_fini(&g->names);
    *g = (fth_ngrams){0};
}

static fth_err count_one(fth_ngrams *g, fth_gram_side side, uint64_t prefix, uint32_t symbol,
                         int order, uint32_t *name) {
    uint64_t key = prefix << 32 | symbol;
    struct fth_ngram_slot *slot = find(g, key);
    if (slot->round != g->round) {
        if (g->n == g->n_slots / 2) {
            FTH_TRY(grow(g));
            slot = find(g, key);
        }
        g->gram[g->n] = (struct fth_ngram){.order = (uint32_t)order};
        *slot = (struct fth_ngram_slot){key, (uint32_t)g->n++, g->round};
    }
    g->gram[slot->name].count[side]++;
    *name = slot->name;
    return FTH_OK;
}

fth_err fth_ngrams_add(fth_ngrams *g, fth_gram_side side, const fth_word_ids *symbols,
                       int max_order) {
    size_t n = symbols->n;
    g->names.n = 0;
    for (size_t i = 0; i < n; i++) FTH_TRY(fth_word_ids_add(&g->names, 0));
    uint32_t *name = g->names.id;
    for (int order = 1; order <= max_order && (size_t)order <= n; order++)
        for (size_t i = 0; i + (size_t)order <= n; i++) {
            uint64_t prefix = order == 1 ? 0 : (uint64_t)name[i] + 1;
            uint32_t last = symbols->id[i + (size_t)order - 1];
            FTH_TRY(count_one(g, side, prefix, last, order, &name[i]));
        }
    return FTH_OK;
}

void fth_ngrams_clear(fth_ngrams *g, fth_gram_side side) {
    for (size_t i = 0; i < g->n; i++) g->gram[i].count[side] = 0;
}

void fth_ngrams_merge_ref(fth_ngrams *g) {
    for (size_t i = 0; i < g->n; i++) {
        uint32_t *count = g->gram[i].count;
        if (count[FTH_IN_NEW_REF] > count[FTH_IN_REF]) count[FTH_IN_REF] = count[FTH_IN_NEW_REF];
        count[FTH_IN_NEW_REF] = 0;
    }
}

void fth_ngrams_match(const fth_ngrams *g, int64_t *matches) {
    for (size_t i = 0; i < g->n; i++) {
        uint32_t hyp = g->gram[i].count[FTH_IN_HYP], ref = g->gram[i].count[FTH_IN_REF];
        matches[g->gram[i].order - 1] += hyp < ref ? hyp : ref;
    }
}
