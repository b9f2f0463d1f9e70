/* pack.c: items of like length lie in buckets; a batch takes them in their order, then from the
 * buckets the longest that still fits. */
#include "data/pack.h"

#include <stdlib.h>
#include <string.h>

enum { LOOK = 16 }; /* items of one length that are tried for the room on the other side */

/* What is being packed. */
typedef struct state {
    fth_packing *p;
    const fth_pack_item *items; /* [n] in the order they come in */
    int32_t n, cursor;          /* items before cursor are used */
    int32_t made;               /* items packed so far, in p->sorted */
    fth_pack_limits limits;
    int64_t left[2];  /* rows not packed yet, by side */
    int32_t planned;  /* batches that all rows need at least */
    int fuller;       /* the side with more rows: buckets go by it */
    int32_t longest;  /* rows of the longest item on that side */
    int64_t used[2];  /* rows of the open batch */
    int64_t goal[2];  /* rows that it should have */
    int32_t in_batch; /* its items */
} state;

static int32_t rows_of(const fth_pack_item *item, int side) {
    return side == 0 ? item->src : item->tgt;
}

static fth_err reserve(fth_packing *p, int32_t n, int32_t longest) {
    if (n > p->items_capacity) {
        fth_packing_fini(p);
        p->sorted = malloc((size_t)n * sizeof *p->sorted);
        p->by_length = malloc((size_t)n * sizeof *p->by_length);
        p->used = malloc((size_t)n);
        p->begin = malloc(((size_t)n + 1) * sizeof *p->begin);
        p->items_capacity = n;
        if (!p->sorted || !p->by_length || !p->used || !p->begin) {
            fth_packing_fini(p);
            return fth_no_memory("making batches");
        }
    }
    if (longest + 2 > p->bucket_capacity) {
        free(p->first);
        free(p->last);
        p->first = malloc(((size_t)longest + 2) * sizeof *p->first);
        p->last = malloc(((size_t)longest + 2) * sizeof *p->last);
        p->bucket_capacity = p->first && p->last ? longest + 2 : 0;
        if (!p->bucket_capacity) return fth_no_memory("making batches");
    }
    return FTH_OK;
}

void fth_packing_fini(fth_packing *p) {
    free(p->sorted);
    free(p->by_length);
    free(p->used);
    free(p->begin);
    free(p->first);
    free(p->last);
    memset(p, 0, sizeof *p);
}

static void measure(state *s) {
    int32_t longest[2] = {0, 0};
    for (int32_t i = 0; i < s->n; i++)
        for (int side = 0; side < 2; side++) {
            int32_t rows = rows_of(&s->items[i], side);
            s->left[side] += rows;
            if (rows > longest[side]) longest[side] = rows;
        }
    s->fuller = s->left[0] > s->left[1] ? 0 : 1;
    s->longest = longest[s->fuller];
    s->planned = (int32_t)((s->left[s->fuller] + s->limits.rows - 1) / s->limits.rows);
    /* with less room a batch than a small part of an item something will not fit, and what is left
     * over at the end would be a tiny batch */
    int64_t room = (int64_t)s->planned * s->limits.rows - s->left[s->fuller];
    int64_t part = 2 + s->left[s->fuller] / s->n / 16;
    if (s->planned > 64 && room < part * s->planned) s->planned++;
    if (s->limits.sentences) {
        int32_t needed = (s->n + s->limits.sentences - 1) / s->limits.sentences;
        if (needed > s->planned) s->planned = needed;
    }
}

/* Counting sort of the places by length. Places are taken from the end of a bucket, which is the
 * latest item of that length. */
static void fill_buckets(state *s) {
    fth_packing *p = s->p;
    memset(p->first, 0, ((size_t)s->longest + 2) * sizeof *p->first);
    for (int32_t i = 0; i < s->n; i++) p->first[rows_of(&s->items[i], s->fuller) + 1]++;
    for (int32_t k = 0; k <= s->longest; k++) p->first[k + 1] += p->first[k];
    memcpy(p->last, p->first, ((size_t)s->longest + 2) * sizeof *p->last);
    for (int32_t i = 0; i < s->n; i++)
        p->by_length[p->last[rows_of(&s->items[i], s->fuller)]++] = i;
    memset(p->used, 0, (size_t)s->n);
}

static int fits(const state *s, const fth_pack_item *item) {
    return s->used[0] + item->src <= s->limits.rows && s->used[1] + item->tgt <= s->limits.rows;
}

static int is_enough(const state *s) {
    if (s->limits.sentences && s->in_batch >= s->limits.sentences) return 1;
    return s->used[0] >= s->goal[0] && s->used[1] >= s->goal[1];
}

static void take(state *s, int32_t place) {
    const fth_pack_item *item = &s->items[place];
    s->p->used[place] = 1;
    s->p->sorted[s->made++] = *item;
    s->in_batch++;
    for (int side = 0; side < 2; side++) {
        s->used[side] += rows_of(item, side);
        s->left[side] -= rows_of(item, side);
    }
}

/* Items in their order until one does not fit. */
static void take_in_order(state *s) {
    while (s->cursor < s->n && !is_enough(s)) {
        if (!s->p->used[s->cursor]) {
            if (!fits(s, &s->items[s->cursor])) return;
            take(s, s->cursor);
        }
        s->cursor++;
    }
}

/* The item with the most rows, up to a bound, that fits; -1: there is none. */
static int32_t best_fit(state *s, int64_t room) {
    fth_packing *p = s->p;
    for (int32_t k = room < s->longest ? (int32_t)room : s->longest; k > 0; k--) {
        while (p->last[k] > p->first[k] && p->used[p->by_length[p->last[k] - 1]]) p->last[k]--;
        int32_t end = p->last[k] - LOOK > p->first[k] ? p->last[k] - LOOK : p->first[k];
        for (int32_t at = p->last[k] - 1; at >= end; at--) {
            int32_t place = p->by_length[at];
            if (!p->used[place] && fits(s, &s->items[place])) return place;
        }
    }
    return -1;
}

static void fill_up(state *s) {
    while (!is_enough(s)) {
        int32_t place = best_fit(s, s->limits.rows - s->used[s->fuller]);
        if (place < 0) return;
        take(s, place);
    }
}

static void make_batch(state *s, int32_t number) {
    int32_t batches = s->planned - number > 1 ? s->planned - number : 1;
    s->used[0] = s->used[1] = 0;
    s->in_batch = 0;
    for (int side = 0; side < 2; side++) {
        s->goal[side] = (s->left[side] + batches - 1) / batches;
        if (s->goal[side] > s->limits.rows) s->goal[side] = s->limits.rows;
    }
    take_in_order(s);
    fill_up(s);
}

fth_err fth_pack(fth_packing *p, fth_pack_item *items, int32_t n, fth_pack_limits limits) {
    state s = {.p = p, .items = items, .n = n, .limits = limits};
    p->n_batches = 0;
    if (n <= 0) return FTH_OK;
    measure(&s);
    FTH_TRY(reserve(p, n, s.longest));
    fill_buckets(&s);
    while (s.made < n) {
        p->begin[p->n_batches] = s.made;
        make_batch(&s, p->n_batches++);
    }
    p->begin[p->n_batches] = n;
    memcpy(items, p->sorted, (size_t)n * sizeof *items);
    return FTH_OK;
}

fth_err fth_pack_in_order(fth_packing *p, const fth_pack_item *items, int32_t n,
                          fth_pack_limits limits) {
    state s = {.limits = limits};
    p->n_batches = 0;
    if (n <= 0) return FTH_OK;
    FTH_TRY(reserve(p, n, 0));
    for (int32_t i = 0; i < n; i++) {
        int full = limits.sentences && s.in_batch == limits.sentences;
        if (i == 0 || full || !fits(&s, &items[i])) {
            p->begin[p->n_batches++] = i;
            s.used[0] = s.used[1] = 0;
            s.in_batch = 0;
        }
        s.used[0] += items[i].src;
        s.used[1] += items[i].tgt;
        s.in_batch++;
    }
    p->begin[p->n_batches] = n;
    return FTH_OK;
}
