/* byte_bpe.c: the vocabulary in memory, text cut by it and put together again. */
#include "text/byte_bpe.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/bpe_merges.h"
#include "text/gpt2_words.h"
#include "text/tokenizer_kind.h"
#include "text/unicode.h"

/* A piece of the vocabulary: where its name and its bytes begin in strings. */
typedef struct piece {
    size_t name, bytes; /* the name ends with a NUL */
    size_t n_bytes;
} piece;

typedef struct byte_bpe {
    fth_tokenizer base;
    piece *pieces;      /* [base.size] */
    uint8_t *uses;      /* [base.size] fth_bpe_use */
    fth_str strings;    /* names and bytes of all */
    int32_t bytes[256]; /* the id of each byte, or unk */
    fth_bpe_merges merges;
    int32_t *symbols; /* [n_symbols] ids that are found in text, the longest first */
    int32_t n_symbols;
    bool symbol_begins[256]; /* does one begin with this byte? */
    bool blank_before;
} byte_bpe;

static const byte_bpe *of(const fth_tokenizer *t) {
    return (const byte_bpe *)t;
}

static const char *name_of(const byte_bpe *b, int32_t id) {
    return b->strings.text + b->pieces[id].name;
}

static const char *bytes_of(const byte_bpe *b, int32_t id) {
    return b->strings.text + b->pieces[id].bytes;
}

/* ---- letters ---- */

/* Bytes that cannot be seen are counted from U+0100 on: 0 to 32, 127 to 160, 173. */
uint32_t fth_bpe_letter(unsigned char byte) {
    if (byte <= 32) return 256u + byte;
    if (byte >= 127 && byte <= 160) return 289u + byte - 127u;
    return byte == 173 ? 323 : byte;
}

int fth_bpe_byte(uint32_t letter) {
    if (letter >= 256 && letter <= 288) return (int)letter - 256;
    if (letter >= 289 && letter <= 322) return (int)letter - 289 + 127;
    if (letter == 323) return 173;
    return letter < 256 && fth_bpe_letter((unsigned char)letter) == letter ? (int)letter : -1;
}

/* Appends the bytes that the letters of a name stand for; false: not all of them are letters. */
static bool add_bytes(fth_str *out, const char *name, fth_err *err) {
    const size_t before = out->length;
    for (size_t n; *name && !*err; name += n) {
        const int byte = fth_bpe_byte(fth_code_point(name, &n));
        const char one = (char)byte;
        if (byte < 0) {
            out->length = before;
            return false;
        }
        *err = fth_str_add(out, &one, 1);
    }
    return true;
}

/* ---- making ---- */

/* A name that is not made of letters stands for its own characters, as do controls and symbols. */
static fth_err add_piece(byte_bpe *b, int32_t id, const char *name, uint8_t use) {
    piece *p = &b->pieces[id];
    fth_err err = FTH_OK;
    b->uses[id] = use;
    p->name = b->strings.length;
    FTH_TRY(fth_str_add(&b->strings, name, strlen(name) + 1));
    p->bytes = b->strings.length;
    if (use != FTH_BPE_TEXT || !add_bytes(&b->strings, name, &err))
        err = fth_str_add(&b->strings, name, strlen(name));
    p->n_bytes = b->strings.length - p->bytes;
    return err;
}

/* Ids of its own for what the vocabulary lacks. */
static fth_err add_pieces(byte_bpe *b, const fth_bpe_parts *parts) {
    fth_special_ids *s = &b->base.special;
    int32_t *const ids[] = {&s->bos, &s->pad, &s->unk};
    static const char *const names[] = {"<s>", "<pad>", "<unk>"};
    *s = parts->special;
    b->pieces = calloc((size_t)parts->n + 3, sizeof *b->pieces);
    b->uses = calloc((size_t)parts->n + 3, sizeof *b->uses);
    if (!b->pieces || !b->uses) return fth_no_memory("a vocabulary");
    for (int32_t i = 0; i < parts->n; i++)
        FTH_TRY(add_piece(b, i, parts->names[i], parts->uses[i]));
    b->base.size = parts->n;
    for (int i = 0; i < 3; i++) {
        if (*ids[i] >= 0) continue;
        *ids[i] = b->base.size++;
        FTH_TRY(add_piece(b, *ids[i], names[i], FTH_BPE_CONTROL));
    }
    return FTH_OK;
}

/* The id of every byte. Where there is none for one, it is the unknown one, if there is that. */
static fth_err find_bytes(byte_bpe *b, const fth_bpe_parts *parts, const char *name) {
    for (int i = 0; i < 256; i++) b->bytes[i] = parts->special.unk;
    for (int32_t id = 0; id < parts->n; id++)
        if (b->uses[id] == FTH_BPE_TEXT && b->pieces[id].n_bytes == 1)
            b->bytes[(unsigned char)bytes_of(b, id)[0]] = id;
    for (int i = 0; i < 256; i++)
        if (b->bytes[i] < 0)
            return fth_fail(FTH_BAD_INPUT,
                            "%s: has no token for byte 0x%02x, and no unknown token: not a "
                            "byte-level vocabulary",
                            name, i);
    return FTH_OK;
}

static fth_err add_merges(byte_bpe *b, const fth_bpe_parts *parts, const char *name) {
    FTH_TRY(fth_bpe_merges_init(&b->merges, (size_t)parts->n_merges));
    for (int32_t i = 0; i < parts->n_merges; i++) {
        const int32_t *m = parts->merges[i];
        if (fth_bpe_merges_add(&b->merges, (fth_bpe_merge){m[0], m[1], i, m[2]}))
            return fth_fail(FTH_BAD_INPUT, "%s: merge %d, '%s %s', is there twice", name, i + 1,
                            name_of(b, m[0]), name_of(b, m[1]));
    }
    return FTH_OK;
}

static fth_err find_symbols(byte_bpe *b, int32_t n) {
    b->symbols = malloc(((size_t)n + 1) * sizeof *b->symbols);
    if (!b->symbols) return fth_no_memory("a vocabulary");
    for (int32_t id = 0; id < n; id++) {
        if (b->uses[id] != FTH_BPE_SYMBOL || !b->pieces[id].n_bytes) continue;
        int32_t at = b->n_symbols++;
        for (; at > 0 && b->pieces[b->symbols[at - 1]].n_bytes < b->pieces[id].n_bytes; at--)
            b->symbols[at] = b->symbols[at - 1];
        b->symbols[at] = id;
        b->symbol_begins[(unsigned char)bytes_of(b, id)[0]] = true;
    }
    return FTH_OK;
}

static void free_bpe(fth_tokenizer *t) {
    byte_bpe *b = (byte_bpe *)t;
    free(b->pieces);
    free(b->uses);
    fth_str_fini(&b->strings);
    fth_bpe_merges_fini(&b->merges);
    free(b->symbols);
    free(b);
}

/* ---- cutting ---- */

/* The ids of a word's bytes, after the n of out. */
static fth_err add_word_bytes(const byte_bpe *b, const char *word, size_t length, fth_ids *out) {
    FTH_TRY(fth_ids_reserve(out, length));
    for (size_t i = 0; i < length; i++) out->ids[out->n + i] = b->bytes[(unsigned char)word[i]];
    return FTH_OK;
}

static fth_err cut_word(const byte_bpe *b, const char *word, size_t length, fth_ids *out) {
    size_t n = length;
    FTH_TRY(add_word_bytes(b, word, length, out));
    FTH_TRY(fth_bpe_join(&b->merges, out->ids + out->n, &n));
    out->n += n;
    return FTH_OK;
}

static fth_err cut_cached(const byte_bpe *b, fth_word_cache *cache, const char *word, size_t length,
                          fth_ids *out) {
    if (!cache || length > FTH_CACHED_BYTES) return cut_word(b, word, length, out);
    fth_cached_word *place = fth_word_cache_place(cache, word, length);
    if (!fth_cached(place, word, length)) {
        const size_t before = out->n;
        FTH_TRY(cut_word(b, word, length, out));
        fth_cache_word(place, word, length, out->ids + before, out->n - before);
        return FTH_OK;
    }
    FTH_TRY(fth_ids_reserve(out, place->n));
    memcpy(out->ids + out->n, place->ids, place->n * sizeof *out->ids);
    out->n += place->n;
    return FTH_OK;
}

/* What is done with words: they are cut as always, or with merges dropped, or just shown. */
typedef struct cut {
    const byte_bpe *b;
    fth_word_cache *cache; /* NULL: none */
    fth_rng *rng;          /* NULL: no merge is dropped */
    double p;
    fth_bpe_visit visit; /* NULL: they are cut */
    void *state;
} cut;

/* Beyond it the draws would take longer than anybody waits; such words are no language. */
enum { LONGEST_DROPPED = 1000 };

static fth_err cut_one(const cut *c, const char *word, size_t length, fth_ids *out) {
    size_t n = length;
    if (c->visit) return c->visit(c->state, word, length);
    if (!c->rng || length > LONGEST_DROPPED) return cut_cached(c->b, c->cache, word, length, out);
    FTH_TRY(add_word_bytes(c->b, word, length, out));
    fth_bpe_join_dropped(&c->b->merges, c->p, c->rng, out->ids + out->n, &n);
    out->n += n;
    return FTH_OK;
}

static fth_err cut_words(const cut *c, const char *text, size_t length, fth_ids *out) {
    while (length) {
        const size_t n = fth_gpt2_word(text, length);
        FTH_TRY(cut_one(c, text, n, out));
        text += n;
        length -= n;
    }
    return FTH_OK;
}

/* Text without symbols. */
static fth_err cut_plain(const cut *c, const char *text, size_t length, fth_ids *out) {
    if (!c->b->blank_before || !length || text[0] == ' ') return cut_words(c, text, length, out);
    fth_str with_blank = {0};
    fth_err err = fth_str_add(&with_blank, " ", 1);
    if (!err) err = fth_str_add(&with_blank, text, length);
    if (!err) err = cut_words(c, with_blank.text, with_blank.length, out);
    fth_str_fini(&with_blank);
    return err;
}

/* The symbol that text begins with; -1: none. */
static int32_t symbol_at(const byte_bpe *b, const char *text, size_t left) {
    if (!b->symbol_begins[(unsigned char)text[0]]) return -1;
    for (int32_t i = 0; i < b->n_symbols; i++) {
        const piece *p = &b->pieces[b->symbols[i]];
        if (p->n_bytes <= left && memcmp(text, bytes_of(b, b->symbols[i]), p->n_bytes) == 0)
            return b->symbols[i];
    }
    return -1;
}

static fth_err cut_text(const cut *c, const char *text, size_t length, fth_ids *out) {
    FTH_TRY(fth_ids_reserve(out, 1)); /* never NULL, not even for an empty line */
    size_t from = 0;
    for (size_t at = 0; c->b->n_symbols && at < length;) {
        const int32_t symbol = symbol_at(c->b, text + at, length - at);
        if (symbol < 0) {
            at++;
            continue;
        }
        FTH_TRY(cut_plain(c, text + from, at - from, out));
        FTH_TRY(fth_ids_reserve(out, 1));
        out->ids[out->n++] = symbol;
        from = at += c->b->pieces[symbol].n_bytes;
    }
    return cut_plain(c, text + from, length - from, out);
}

static fth_err encode(const fth_tokenizer *t, fth_word_cache *cache, const char *text,
                      size_t length, fth_ids *out) {
    const cut c = {.b = of(t), .cache = cache};
    return cut_text(&c, text, length, out);
}

static fth_err encode_dropped(const fth_tokenizer *t, const char *text, size_t length, double p,
                              fth_rng *rng, fth_ids *out) {
    const cut c = {.b = of(t), .rng = rng, .p = p};
    return cut_text(&c, text, length, out);
}

fth_err fth_byte_bpe_words(const fth_tokenizer *t, const char *text, size_t length,
                           fth_bpe_visit visit, void *state) {
    fth_ids unused = {0};
    const cut c = {.b = of(t), .visit = visit, .state = state};
    fth_err err = cut_text(&c, text, length, &unused);
    fth_ids_fini(&unused);
    return err;
}

/* ---- back to text ---- */

static fth_err decode(const fth_tokenizer *t, const int32_t *ids, size_t n, fth_str *out) {
    const byte_bpe *b = of(t);
    fth_str bytes = {0};
    fth_err err = fth_str_add(&bytes, "", 0);
    for (size_t i = 0; i < n && !err; i++) {
        const bool silent = b->uses[ids[i]] == FTH_BPE_CONTROL && ids[i] != t->special.unk;
        if (!silent) err = fth_str_add(&bytes, bytes_of(b, ids[i]), b->pieces[ids[i]].n_bytes);
    }
    if (!err && fth_utf8_valid_prefix(bytes.text, bytes.length) == bytes.length)
        err = fth_str_add(out, bytes.text, bytes.length);
    else if (!err) /* ids that a model chose may end inside of a character */
        err = fth_utf8_repair(bytes.text, bytes.length, out);
    fth_str_fini(&bytes);
    return err;
}

static const char *piece_name(const fth_tokenizer *t, int32_t id) {
    return name_of(of(t), id);
}

static int32_t find_id(const fth_tokenizer *t, const char *name) {
    for (int32_t i = 0; i < t->size; i++)
        if (strcmp(name_of(of(t), i), name) == 0) return i;
    return -1;
}

static const fth_tokenizer_kind kind = {
    .suffix = "json",
    .word_mark = "\xc4\xa0", /* U+0120, the letter of a blank */
    .free = free_bpe,
    .encode = encode,
    .encode_dropped = encode_dropped,
    .decode = decode,
    .piece = piece_name,
    .id = find_id,
};

fth_err fth_byte_bpe_new(const fth_bpe_parts *parts, const char *name, fth_tokenizer **out) {
    byte_bpe *b = calloc(1, sizeof *b);
    if (!b) return fth_no_memory("a vocabulary");
    b->base.kind = &kind;
    b->blank_before = parts->blank_before;
    fth_err err = parts->special.eos >= 0
                      ? add_pieces(b, parts)
                      : fth_fail(FTH_BAD_INPUT,
                                 "%s: has no end of text: none of its tokens is </s>, "
                                 "<|endoftext|> or <eos>",
                                 name);
    if (!err) err = find_bytes(b, parts, name);
    if (!err) err = add_merges(b, parts, name);
    if (!err) err = find_symbols(b, parts->n);
    if (err)
        free_bpe(&b->base);
    else
        *out = &b->base;
    return err;
}
