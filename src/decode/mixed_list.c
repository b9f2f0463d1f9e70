/* mixed_list.c: the union of the lists, its words' probabilities in every model, and their mean. */
#include "decode/mixed_list.h"

#include <math.h>
#include <stdlib.h>

#include "backend/top_words.h"
#include "graph/op.h"

fth_err fth_mixed_list_init(fth_mixed_list *l, int count) {
    const size_t words = (size_t)count * FTH_TOP_MOST;
    *l = (fth_mixed_list){.count = count,
                          .word = malloc(sizeof *l->word * words),
                          .logp = malloc(sizeof *l->logp * (words + 1)),
                          .each = malloc(sizeof *l->each * (words + 1) * (size_t)count),
                          .row = malloc(sizeof *l->row * (size_t)count)};
    if (l->word && l->logp && l->each && l->row) return FTH_OK;
    fth_mixed_list_fini(l);
    return fth_fail(FTH_NO_MEMORY, "no memory for a search with %d models", count);
}

void fth_mixed_list_fini(fth_mixed_list *l) {
    free(l->word);
    free(l->logp);
    free(l->each);
    free(l->row);
    *l = (fth_mixed_list){0};
}

static const float *list_of(const fth_best *best, int32_t row) {
    return best->rows + (size_t)row * (size_t)(TOP_BEST + 2 * best->k);
}

static void add_word(fth_mixed_list *l, int32_t word) {
    for (int32_t i = 0; i < l->n; i++)
        if (l->word[i] == word) return;
    l->word[l->n++] = word;
}

/* The words of all lists; the bound of each model goes behind its log-probabilities. */
static bool unite(fth_mixed_list *l, const fth_best *best, int32_t row) {
    l->n = 0;
    l->all = true;
    for (int m = 0; m < l->count; m++) {
        const int32_t k = best[m].k;
        const float *list = list_of(&best[m], row), *logit = list + TOP_BEST, *word = logit + k;
        int32_t n = 0;
        if (!isfinite(list[TOP_LSE])) return false;
        for (; n < k && word[n] >= 0; n++) add_word(l, (int32_t)word[n]);
        l->all = l->all && n < k; /* a list that is not full has all that its model can say */
        l->logp[m] = n < k ? -INFINITY : logit[k - 1] - list[TOP_LSE];
    }
    return true;
}

/* Insertion, for some dozens of words; those that are not above the bound fall out. */
static void sort(fth_mixed_list *l, float bound) {
    int32_t n = 0;
    for (int32_t i = 0; i < l->n; i++) {
        const float logp = l->logp[i];
        const int32_t word = l->word[i];
        int32_t to = n;
        if (!(logp > bound)) continue;
        for (; to > 0 &&
               (l->logp[to - 1] < logp || (l->logp[to - 1] == logp && l->word[to - 1] > word));
             to--) {
            l->logp[to] = l->logp[to - 1];
            l->word[to] = l->word[to - 1];
        }
        l->logp[to] = logp;
        l->word[to] = word;
        n++;
    }
    l->n = n;
}

bool fth_mixed_list_fill(fth_mixed_list *l, const fth_best *best, const float *const *logits,
                         int32_t vocab, int32_t row) {
    if (!unite(l, best, row)) return false;
    for (int m = 0; m < l->count; m++) {
        float *each = l->each + (size_t)m * ((size_t)l->count * FTH_TOP_MOST + 1);
        const float *from = logits[m] + (size_t)row * (size_t)vocab;
        const float lse = list_of(&best[m], row)[TOP_LSE];
        for (int32_t i = 0; i < l->n; i++) each[i] = from[l->word[i]] - lse;
        each[l->n] = l->logp[m];
        l->row[m] = each;
    }
    fth_row_mix(l->row, l->count, l->n + 1, l->logp);
    sort(l, l->all ? -INFINITY : l->logp[l->n]);
    return true;
}

bool fth_mixed_list_asked(fth_mixed_list *l, const fth_best *best, int32_t row, float *logp) {
    for (int m = 0; m < l->count; m++) {
        const float *list = list_of(&best[m], row);
        if (!isfinite(list[TOP_LSE])) return false;
        l->each[m] = list[TOP_ASKED] - list[TOP_LSE];
        l->row[m] = &l->each[m];
    }
    fth_row_mix(l->row, l->count, 1, logp);
    return true;
}
