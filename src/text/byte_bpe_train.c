/* byte_bpe_train.c: trains a byte-level BPE. The words of the text are counted once; each step
 * merges the two symbols that stand together most often, in the words that have them, and corrects
 * the counts of their neighbours. */
#include <stdlib.h>
#include <string.h>

#include "text/bpe_names.h"
#include "text/bpe_pairs.h"
#include "text/byte_bpe.h"
#include "text/tokenizer_json.h"
#include "text/unicode.h"

enum { BYTES = 256, SPECIAL = 4, LEAST = 2 /* times that two symbols stand together */ };

/* A word of the text, and how often it is there. */
typedef struct counted {
    int64_t count;
    int32_t n;      /* symbols left */
    size_t symbols; /* where they begin */
} counted;

typedef struct training {
    const fth_tokenizer_spec *spec;
    fth_tokenizer *cutter; /* the vocabulary before any merge, which finds words and symbols */
    fth_bpe_names words;
    counted *of_word; /* [room] */
    size_t room;
    int32_t *symbols;    /* of all words */
    fth_bpe_names names; /* of the tokens */
    int32_t n_fixed;     /* special ones, symbols of the user and bytes */
    int32_t byte_id[BYTES];
    fth_bpe_pairs pairs;
    fth_bpe_parts parts; /* what is made */
    int64_t lines;
} training;

/* ---- the vocabulary to begin with ---- */

static fth_err add_token(training *t, const char *name, size_t length, int32_t *id) {
    const int32_t before = t->names.n;
    FTH_TRY(fth_bpe_names_add(&t->names, name, length, id));
    if (*id == before) return FTH_OK;
    return fth_fail(FTH_USAGE, "user-symbols '%s': a symbol is there twice or is reserved",
                    t->spec->user_symbols);
}

/* "a,b,c" */
static fth_err add_user_symbols(training *t) {
    const char *list = t->spec->user_symbols;
    for (int32_t id; list && *list;) {
        const size_t n = strcspn(list, ",");
        if (!n || (list[n] && !list[n + 1]))
            return fth_fail(FTH_USAGE, "user-symbols '%s': has an empty symbol",
                            t->spec->user_symbols);
        FTH_TRY(add_token(t, list, n, &id));
        list += n + (list[n] == ',');
    }
    return FTH_OK;
}

/* In the order of their letters, as files of others have them. */
static fth_err add_bytes(training *t) {
    for (uint32_t letter = 0; letter < 2 * BYTES; letter++) {
        const int byte = fth_bpe_byte(letter);
        fth_str name = {0};
        if (byte < 0) continue;
        fth_err err = fth_add_code_point(&name, letter);
        if (!err) err = add_token(t, name.text, name.length, &t->byte_id[byte]);
        fth_str_fini(&name);
        FTH_TRY(err);
    }
    return FTH_OK;
}

static fth_err add_fixed(training *t) {
    static const char *const special[SPECIAL] = {"<s>", "<pad>", "</s>", "<unk>"};
    int32_t id;
    for (int i = 0; i < SPECIAL; i++) FTH_TRY(add_token(t, special[i], strlen(special[i]), &id));
    FTH_TRY(add_user_symbols(t));
    const int32_t symbols = t->names.n - SPECIAL;
    FTH_TRY(add_bytes(t));
    t->n_fixed = t->names.n;
    if (t->spec->vocab_size < t->n_fixed)
        return fth_fail(FTH_USAGE,
                        "vocab-size %d: special symbols and the 256 bytes alone are %d; it must "
                        "not be below that",
                        t->spec->vocab_size, t->n_fixed);
    FTH_TRY(
        fth_bpe_parts_init(&t->parts, (size_t)t->spec->vocab_size, (size_t)t->spec->vocab_size));
    t->parts.special = (fth_special_ids){FTH_BOS, FTH_PAD, FTH_EOS, FTH_UNK};
    for (int32_t i = 0; i < SPECIAL + symbols; i++)
        t->parts.uses[i] = i < SPECIAL ? FTH_BPE_CONTROL : FTH_BPE_SYMBOL;
    return FTH_OK;
}

/* The first n tokens get their names; those of t->names stay where they are from now on. */
static void name_parts(training *t, int32_t n) {
    size_t length;
    t->parts.n = n;
    for (int32_t i = 0; i < n; i++) t->parts.names[i] = fth_bpe_names_get(&t->names, i, &length);
}

/* ---- the words of the text ---- */

static fth_err count_word(void *state, const char *word, size_t length) {
    training *t = state;
    int32_t number;
    FTH_TRY(fth_bpe_names_add(&t->words, word, length, &number));
    if ((size_t)number >= t->room) {
        const size_t room = 2 * t->room + 1024;
        counted *grown = realloc(t->of_word, room * sizeof *grown);
        if (!grown) return fth_no_memory("training a tokenizer");
        memset(grown + t->room, 0, (room - t->room) * sizeof *grown);
        t->of_word = grown;
        t->room = room;
    }
    t->of_word[number].count++;
    return FTH_OK;
}

static fth_err count_words(training *t, fth_text_next next, void *state) {
    const char *text;
    size_t length;
    name_parts(t, t->n_fixed);
    FTH_TRY(fth_byte_bpe_new(&t->parts, "tokenizer", &t->cutter));
    for (;; t->lines++) {
        FTH_TRY(next(state, &text, &length));
        if (!text) break;
        FTH_TRY(fth_byte_bpe_words(t->cutter, text, length, count_word, t));
    }
    if (!t->lines) return fth_fail(FTH_BAD_INPUT, "no text to make a vocabulary of");
    return FTH_OK;
}

static fth_err count_pairs(training *t) {
    t->symbols = malloc((t->words.text.length + 1) * sizeof *t->symbols);
    if (!t->symbols) return fth_no_memory("training a tokenizer");
    size_t at = 0, length;
    for (int32_t w = 0; w < t->words.n; w++) {
        const char *word = fth_bpe_names_get(&t->words, w, &length);
        counted *c = &t->of_word[w];
        c->symbols = at;
        c->n = (int32_t)length;
        for (size_t i = 0; i < length; i++) t->symbols[at + i] = t->byte_id[(unsigned char)word[i]];
        for (size_t i = 0; i + 1 < length; i++)
            FTH_TRY(fth_bpe_pairs_count(&t->pairs, t->symbols[at + i], t->symbols[at + i + 1],
                                        c->count, w));
        at += length;
    }
    return fth_bpe_pairs_queue(&t->pairs);
}

/* ---- merging ---- */

/* Replaces a pair in a word, from left to right. */
static fth_err merge_in_word(training *t, int32_t word, int32_t left, int32_t right, int32_t made) {
    counted *c = &t->of_word[word];
    int32_t *s = t->symbols + c->symbols, n = 0;
    for (int32_t i = 0; i < c->n; i++) {
        if (s[i] != left || i + 1 == c->n || s[i + 1] != right) {
            s[n++] = s[i];
            continue;
        }
        if (n > 0) {
            FTH_TRY(fth_bpe_pairs_count(&t->pairs, s[n - 1], left, -c->count, word));
            FTH_TRY(fth_bpe_pairs_count(&t->pairs, s[n - 1], made, c->count, word));
        }
        if (i + 2 < c->n) {
            FTH_TRY(fth_bpe_pairs_count(&t->pairs, right, s[i + 2], -c->count, word));
            FTH_TRY(fth_bpe_pairs_count(&t->pairs, made, s[i + 2], c->count, word));
        }
        s[n++] = made;
        i++;
    }
    c->n = n;
    return FTH_OK;
}

/* The token of two; it may be there, made of two others. */
static fth_err name_merge(training *t, int32_t left, int32_t right, int32_t *made) {
    size_t n, m;
    fth_str name = {0};
    const char *a = fth_bpe_names_get(&t->names, left, &n);
    const char *b = fth_bpe_names_get(&t->names, right, &m);
    fth_err err = fth_str_add(&name, a, n);
    if (!err) err = fth_str_add(&name, b, m);
    if (!err) err = fth_bpe_names_add(&t->names, name.text, name.length, made);
    fth_str_fini(&name);
    return err;
}

static fth_err note_merge(training *t, int32_t left, int32_t right, int32_t made, size_t *room) {
    fth_bpe_parts *p = &t->parts;
    if ((size_t)p->n_merges == *room) { /* more merges than tokens: some make what was there */
        int32_t(*grown)[3] = realloc(p->merges, 2 * *room * sizeof *grown);
        if (!grown) return fth_no_memory("training a tokenizer");
        p->merges = grown;
        *room *= 2;
    }
    int32_t *m = p->merges[p->n_merges++];
    m[0] = left;
    m[1] = right;
    m[2] = made;
    return FTH_OK;
}

static fth_err merge_pair(training *t, fth_bpe_pair *pair, size_t *room) {
    const int32_t left = pair->left, right = pair->right, n = pair->n_words;
    int32_t *words = pair->words, made;
    pair->words = NULL;
    pair->n_words = pair->room = 0;
    pair->count = 0;
    fth_err err = name_merge(t, left, right, &made);
    /* a symbol of the user that reads like a token is none of bytes */
    const bool possible = !err && (made >= t->n_fixed || t->parts.uses[made] == FTH_BPE_TEXT);
    if (possible) err = note_merge(t, left, right, made, room);
    for (int32_t i = 0; i < n && possible && !err; i++)
        err = merge_in_word(t, words[i], left, right, made);
    free(words);
    return err ? err : fth_bpe_pairs_queue(&t->pairs);
}

static fth_err merge_all(training *t) {
    const int32_t wanted = t->spec->vocab_size;
    size_t room = (size_t)wanted;
    while (t->names.n < wanted) {
        fth_bpe_pair *pair;
        FTH_TRY(fth_bpe_pairs_take(&t->pairs, LEAST, &pair));
        if (!pair)
            return fth_fail(FTH_BAD_INPUT,
                            "vocab-size %d is larger than the text can give: at most %d (%lld "
                            "lines)",
                            wanted, t->names.n, (long long)t->lines);
        FTH_TRY(merge_pair(t, pair, &room));
    }
    return FTH_OK;
}

fth_err fth_byte_bpe_train(const fth_tokenizer_spec *spec, fth_text_next next, void *state,
                           char **model, size_t *size) {
    training t = {.spec = spec};
    fth_err err = add_fixed(&t);
    if (!err) err = count_words(&t, next, state);
    if (!err) err = count_pairs(&t);
    if (!err) err = merge_all(&t);
    if (!err) {
        name_parts(&t, t.names.n);
        err = fth_tokenizer_json_print(&t.parts, model, size);
    }
    fth_tokenizer_free(t.cutter);
    fth_bpe_names_fini(&t.words);
    free(t.of_word);
    free(t.symbols);
    fth_bpe_names_fini(&t.names);
    fth_bpe_pairs_fini(&t.pairs);
    fth_bpe_parts_fini(&t.parts);
    return err;
}
