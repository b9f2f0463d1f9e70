/* corpus.c: draws a meaning, asks its hash which split it belongs to, and lets both languages say
 * it; a set of hashes tells new ones from seen ones. */
#include "corpus/corpus.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/philox.h"
#include "corpus/sentence.h"

/* How many different phrases a split gives. There are more, but the rarest would be a long search:
 * most draws bring one that has come before. */
static const size_t room[][FTH_CORPUS_SPLITS] = {
    [FTH_LEVEL_SIMPLE] = {100000, 5000, 5000},
    [FTH_LEVEL_FULL] = {5000000, 250000, 250000},
};

/* The hashes of the phrases given so far; 0 marks a free place. */
typedef struct seen_set {
    uint64_t *places; /* [capacity], a power of two */
    size_t capacity, count;
} seen_set;

struct fth_corpus {
    const fth_corpus_language *side[2];
    fth_corpus_level level;
    fth_rng rng[FTH_CORPUS_SPLITS]; /* a stream of its own for each split */
    seen_set seen[FTH_CORPUS_SPLITS];
    fth_corpus_words key;     /* the English text, whose hash decides on the split */
    fth_corpus_words text[2]; /* what the newest call gave */
};

/* ---- the set ---- */

/* 1: was not there before. The set must have a free place. */
static int set_put(seen_set *s, uint64_t hash) {
    size_t mask = s->capacity - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        if (s->places[i] == hash) return 0;
        if (s->places[i]) continue;
        s->places[i] = hash;
        s->count++;
        return 1;
    }
}

/* Half of the places stay free, so that searches are short. */
static fth_err set_make_room(seen_set *s) {
    if (2 * (s->count + 1) <= s->capacity) return FTH_OK;
    seen_set bigger = {.capacity = s->capacity ? 2 * s->capacity : 1024};
    bigger.places = calloc(bigger.capacity, sizeof *bigger.places);
    if (!bigger.places)
        return fth_fail(FTH_NO_MEMORY, "corpus: no memory to remember %zu phrases", s->count);
    for (size_t i = 0; i < s->capacity; i++)
        if (s->places[i]) set_put(&bigger, s->places[i]);
    free(s->places);
    *s = bigger;
    return FTH_OK;
}

static void set_clear(seen_set *s) {
    free(s->places);
    *s = (seen_set){0};
}

/* ---- the generator ---- */

static fth_err find_sides(fth_corpus *c, const char *pair) {
    const char *dash = strchr(pair, '-');
    if (!dash)
        return fth_fail(FTH_USAGE, "pair \"%s\" is not two of en, de, fr, es with a dash (en-de)",
                        pair);
    const char *code[2] = {pair, dash + 1};
    size_t length[2] = {(size_t)(dash - pair), strlen(dash + 1)};
    for (int i = 0; i < 2; i++) {
        c->side[i] = fth_language_find(code[i], length[i]);
        if (!c->side[i])
            return fth_fail(FTH_USAGE,
                            "pair \"%s\": there is no language \"%.*s\", only en, de, fr and es",
                            pair, (int)length[i], code[i]);
    }
    if (c->side[0] == c->side[1])
        return fth_fail(FTH_USAGE, "pair \"%s\": the two languages must differ", pair);
    return FTH_OK;
}

fth_err fth_corpus_new(fth_corpus **out, const char *pair, uint64_t seed, const char *level) {
    fth_err err = FTH_OK;
    *out = NULL;
    fth_corpus *c = calloc(1, sizeof *c);
    if (!c) return fth_fail(FTH_NO_MEMORY, "corpus: no memory");
    FTH_TRY_OR(err, find_sides(c, pair), fail);
    if (strcmp(level, "full") == 0)
        c->level = FTH_LEVEL_FULL;
    else if (strcmp(level, "simple") != 0) {
        err = fth_fail(FTH_USAGE, "level \"%s\" is not one of simple, full", level);
        goto fail;
    }
    for (int i = 0; i < FTH_CORPUS_SPLITS; i++) fth_rng_init(&c->rng[i], seed, (uint64_t)i);
    *out = c;
    return FTH_OK;
fail:
    fth_corpus_free(c);
    return err;
}

void fth_corpus_free(fth_corpus *c) {
    if (!c) return;
    for (int i = 0; i < FTH_CORPUS_SPLITS; i++) set_clear(&c->seen[i]);
    free(c);
}

const char *fth_corpus_code_of(const fth_corpus *c, int side) {
    return c->side[side]->code;
}

/* Of twenty phrases one is for valid and one for test. Equal texts in any language have equal
 * English texts, so the English one speaks for all. */
static fth_corpus_split split_of(uint64_t hash) {
    uint64_t dice = hash % 20;
    return dice == 0 ? FTH_CORPUS_VALID : dice == 1 ? FTH_CORPUS_TEST : FTH_CORPUS_TRAIN;
}

/* Draws until a phrase falls into the split. */
static fth_err draw(fth_corpus *c, fth_corpus_split split, fth_corpus_meaning *m, uint64_t *hash) {
    do {
        *m = fth_meaning_draw(&c->rng[split], c->level);
        FTH_TRY(fth_meaning_say(&c->key, &fth_english, m));
        *hash = fth_hash64(c->key.text, c->key.length);
    } while (split_of(*hash) != split);
    return FTH_OK;
}

static fth_err say_pair(fth_corpus *c, const fth_corpus_meaning *m, const char **source,
                        const char **target) {
    for (int i = 0; i < 2; i++) FTH_TRY(fth_meaning_say(&c->text[i], c->side[i], m));
    *source = c->text[0].text;
    *target = c->text[1].text;
    return FTH_OK;
}

fth_err fth_corpus_next(fth_corpus *c, fth_corpus_split split, const char **source,
                        const char **target) {
    fth_corpus_meaning m;
    uint64_t hash;
    FTH_TRY(draw(c, split, &m, &hash));
    return say_pair(c, &m, source, target);
}

/* The split must have room. */
static fth_err next_unseen(fth_corpus *c, fth_corpus_split split, const char **source,
                           const char **target) {
    fth_corpus_meaning m;
    uint64_t hash;
    FTH_TRY(set_make_room(&c->seen[split]));
    do FTH_TRY(draw(c, split, &m, &hash));
    while (!set_put(&c->seen[split], hash ? hash : 1));
    return say_pair(c, &m, source, target);
}

fth_err fth_corpus_next_new(fth_corpus *c, fth_corpus_split split, const char **source,
                            const char **target) {
    static const char *const names[] = {"train", "valid", "test"};
    if (c->seen[split].count >= room[c->level][split])
        return fth_fail(FTH_BAD_INPUT, "corpus: at level %s the %s split has %zu phrases, no more",
                        c->level == FTH_LEVEL_FULL ? "full" : "simple", names[split],
                        room[c->level][split]);
    return next_unseen(c, split, source, target);
}

fth_err fth_corpus_next_even(fth_corpus *c, fth_corpus_split split, const char **source,
                             const char **target) {
    if (c->seen[split].count >= room[c->level][split]) set_clear(&c->seen[split]);
    return next_unseen(c, split, source, target);
}

size_t fth_corpus_room(const fth_corpus *c, fth_corpus_split split) {
    return room[c->level][split];
}
