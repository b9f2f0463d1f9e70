/* spm_check.c: walks the fields of the protocol buffer, every piece, then every state of the trie
 * that some text could reach. */
#include "text/spm_check.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/protobuf.h"

/* Field numbers of sentencepiece_model.proto. */
enum { MODEL_PIECES = 1, MODEL_TRAINER = 2, MODEL_NORMALIZER = 3, MODEL_DENORMALIZER = 5 };
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3 };
enum { TRAINER_MODEL_TYPE = 3, TRAINER_SPACE_AS_SUFFIX = 24 };
enum {
    NORMALIZER_CHARMAP = 2,
    NORMALIZER_DUMMY_PREFIX = 3,
    NORMALIZER_EXTRA_SPACES = 4,
    NORMALIZER_ESCAPE_SPACES = 5
};
enum { TYPE_FIRST = 1, TYPE_USER = 4, TYPE_BYTE = 6 }; /* of a piece */

/* What the library has room for. It builds its tries one call a byte deep, and keeps what begins at
 * one place of a text in arrays of these sizes. */
enum { MOST_PIECES = 1 << 24, LONGEST_PIECE = 4096, MOST_RULES = 32, MOST_SYMBOLS = 64 };

/* A unit of a darts-clone double array: bits 0-7 and 31 label, bit 8 "a value hangs here", bit 9
 * and 10-30 the distance to the children. A unit with bit 31 set is a value. */
static uint32_t unit_distance(uint32_t unit) {
    return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

/* The trie [n_units] and the pool of replacements [pool] that its values point into. */
typedef struct charmap {
    const uint8_t *units;
    uint32_t n_units;
    size_t pool;
    uint32_t *stack; /* [n_units] bases still to be looked at */
    uint8_t *values; /* [n_units] 1 + the most values on a way to a base; 0: not reached */
    bool *waiting;   /* [n_units] on the stack */
    uint32_t n_stack;
    uint32_t root;   /* the base that every walk begins at */
    int over_spaces; /* a key has a space and something else */
} charmap;

/* Notes that a walk can stand at base, with so many values behind it; 0 when that is outside of the
 * trie, or more than the library has room for. */
static int visit(charmap *c, uint32_t base, unsigned values) {
    if (base >= c->n_units || values > MOST_RULES) return 0;
    if (c->values[base] > values) return 1;
    c->values[base] = (uint8_t)(values + 1);
    if (!c->waiting[base]) c->stack[c->n_stack++] = base;
    c->waiting[base] = true;
    return 1;
}

static int has_children(const charmap *c, uint32_t base) {
    for (uint32_t label = 1; label < 256; label++) {
        uint32_t at = base ^ label;
        if (at >= c->n_units) return 1; /* not sound, as walk_children will find */
        if ((fth_pb_u32(c->units + 4 * (size_t)at) & (1u << 31 | 0xff)) == label) return 1;
    }
    return 0;
}

/* All 256 steps from a base. */
static int walk_children(charmap *c, uint32_t base) {
    const unsigned values = c->values[base] - 1u;
    c->waiting[base] = false;
    for (uint32_t label = 0; label < 256; label++) {
        uint32_t at = base ^ label;
        if (at >= c->n_units) return 0;
        uint32_t unit = fth_pb_u32(c->units + 4 * (size_t)at);
        if ((unit & (1u << 31 | 0xff)) != label) continue;
        uint32_t next = at ^ unit_distance(unit);
        if (!visit(c, next, values + (unit >> 8 & 1))) return 0;
        if (label == ' ' && (base != c->root || has_children(c, next))) c->over_spaces = 1;
        if (unit & (1u << 8)) {
            uint32_t value = fth_pb_u32(c->units + 4 * (size_t)next) & 0x7fffffff;
            if (value >= c->pool) return 0;
        }
    }
    return 1;
}

static fth_err not_sound(void) {
    return fth_fail(FTH_BAD_INPUT, "damaged SentencePiece model: its normaliser");
}

/* Content: length of the trie in bytes (u32), the trie, the pool (NUL-terminated strings). */
static fth_err check_charmap(fth_pb_in b, fth_spm_facts *facts) {
    if (b.left == 0) return FTH_OK;
    if (b.left < 4) return not_sound();
    uint32_t trie = fth_pb_u32(b.at);
    if (trie > b.left - 4 || trie < 4 || trie % 4) return not_sound();
    charmap c = {.units = b.at + 4, .n_units = trie / 4, .pool = b.left - 4 - trie};
    if (c.pool == 0 || b.at[b.left - 1] != 0) return not_sound();
    c.stack = malloc(sizeof *c.stack * c.n_units);
    c.values = calloc(c.n_units, sizeof *c.values);
    c.waiting = calloc(c.n_units, sizeof *c.waiting);
    c.root = unit_distance(fth_pb_u32(c.units));
    const int there = c.stack && c.values && c.waiting;
    int sound = there && visit(&c, c.root, 0);
    while (sound && c.n_stack) sound = walk_children(&c, c.stack[--c.n_stack]);
    free(c.stack);
    free(c.values);
    free(c.waiting);
    if (c.over_spaces) facts->by_words = 0;
    if (!there) return fth_fail(FTH_NO_MEMORY, "no memory to check a SentencePiece model");
    return sound ? FTH_OK : not_sound();
}

static fth_err check_normalizer(fth_pb_in b, fth_spm_facts *facts) {
    fth_pb_field f;
    while (b.left) {
        if (!fth_pb_next(&b, &f)) return not_sound();
        switch (f.number) {
        case NORMALIZER_CHARMAP:
            FTH_TRY(check_charmap(f.content, facts));
            if (f.content.left) facts->has_charmap = 1;
            break;
        case NORMALIZER_DUMMY_PREFIX:
        case NORMALIZER_EXTRA_SPACES:
        case NORMALIZER_ESCAPE_SPACES: /* all true by default */
            if (!f.value) facts->by_words = 0;
            break;
        default: break;
        }
    }
    return FTH_OK;
}

static int trainer_facts(fth_pb_in b, fth_spm_facts *facts) {
    fth_pb_field f;
    while (b.left) {
        if (!fth_pb_next(&b, &f)) return 0;
        if (f.number == TRAINER_SPACE_AS_SUFFIX && f.value) facts->by_words = 0;
        if (f.number != TRAINER_MODEL_TYPE) continue;
        if (f.value < FTH_SPM_UNIGRAM || f.value > FTH_SPM_CHAR) return 0;
        facts->type = (fth_spm_type)f.value;
    }
    return 1;
}

/* ---- pieces ---- */

/* The pieces that the library looks for in every text before it cuts it. */
typedef struct symbols {
    fth_pb_in *text; /* [n] */
    size_t n, capacity;
} symbols;

static fth_err bad_piece(size_t number, const char *rule) {
    return fth_fail(FTH_BAD_INPUT, "damaged SentencePiece model: piece %zu %s", number, rule);
}

static fth_err add_symbol(symbols *s, fth_pb_in text) {
    if (s->n == s->capacity) {
        const size_t capacity = s->capacity ? 2 * s->capacity : 64;
        fth_pb_in *more = realloc(s->text, sizeof *more * capacity);
        if (!more) return fth_fail(FTH_NO_MEMORY, "no memory to check a SentencePiece model");
        s->text = more;
        s->capacity = capacity;
    }
    s->text[s->n++] = text;
    return FTH_OK;
}

static fth_err check_text(fth_pb_in text, uint64_t type, size_t number) {
    if (text.left == 0) return bad_piece(number, "is empty");
    if (text.left > LONGEST_PIECE) return bad_piece(number, "has more than 4096 bytes");
    if (memchr(text.at, 0, text.left)) return bad_piece(number, "has a NUL byte");
    if (type < TYPE_FIRST || type > TYPE_BYTE) return bad_piece(number, "has no known type");
    if (type != TYPE_BYTE) return FTH_OK;
    const char *at = (const char *)text.at;
    if (text.left != 6 || memcmp(at, "<0x", 3) != 0 || strspn(at + 3, "0123456789ABCDEF") < 2 ||
        at[5] != '>')
        return bad_piece(number, "is of the type of bytes and not like <0x0A>");
    return FTH_OK;
}

static fth_err check_piece(fth_pb_in b, size_t number, symbols *user) {
    fth_pb_field f;
    fth_pb_in text = {0};
    uint64_t type = TYPE_FIRST;
    float score = 0;
    while (b.left) {
        if (!fth_pb_next(&b, &f)) return bad_piece(number, "is cut short");
        if (f.number == PIECE_TEXT && f.wire == FTH_PB_BYTES) text = f.content;
        if (f.number == PIECE_SCORE && f.wire == FTH_PB_32)
            memcpy(&score, f.content.at, sizeof score);
        if (f.number == PIECE_TYPE && f.wire == FTH_PB_VARINT) type = f.value;
    }
    if (number >= MOST_PIECES) return bad_piece(number, "is one too many: at most 16777216");
    if (!isfinite(score)) return bad_piece(number, "has a score that is not finite");
    FTH_TRY(check_text(text, type, number));
    return type == TYPE_USER ? add_symbol(user, text) : FTH_OK;
}

static int by_text(const void *a, const void *b) {
    const fth_pb_in *x = a, *y = b;
    const int order = memcmp(x->at, y->at, x->left < y->left ? x->left : y->left);
    return order ? order : (x->left > y->left) - (x->left < y->left);
}

static bool begins(const fth_pb_in *text, const fth_pb_in *start) {
    return text->left >= start->left && memcmp(text->at, start->at, start->left) == 0;
}

/* How many symbols can begin at one place of a text: chains of symbols that begin with the one
 * before. In order, the beginnings of a symbol stand right before it, on a stack. */
static fth_err check_symbols(symbols *s) {
    const fth_pb_in *chain[MOST_SYMBOLS];
    size_t n = 0;
    if (s->n) qsort(s->text, s->n, sizeof *s->text, by_text);
    for (size_t i = 0; i < s->n; i++) {
        while (n && !begins(&s->text[i], chain[n - 1])) n--;
        if (n == MOST_SYMBOLS)
            return fth_fail(FTH_BAD_INPUT,
                            "damaged SentencePiece model: more than %d of its own symbols begin "
                            "with each other",
                            MOST_SYMBOLS);
        chain[n++] = &s->text[i];
    }
    return FTH_OK;
}

static fth_err check_model(fth_pb_in b, symbols *user, fth_spm_facts *facts) {
    fth_pb_field f;
    size_t pieces = 0;
    while (b.left) {
        if (!fth_pb_next(&b, &f))
            return fth_fail(FTH_BAD_INPUT, "not a SentencePiece model, or cut short");
        if (f.number == MODEL_PIECES) FTH_TRY(check_piece(f.content, pieces++, user));
        if (f.number == MODEL_TRAINER && !trainer_facts(f.content, facts))
            return fth_fail(FTH_BAD_INPUT, "damaged SentencePiece model: its trainer part");
        if (f.number == MODEL_NORMALIZER || f.number == MODEL_DENORMALIZER)
            FTH_TRY(check_normalizer(f.content, facts));
    }
    if (!pieces) return fth_fail(FTH_BAD_INPUT, "not a SentencePiece model: it has no pieces");
    return check_symbols(user);
}

fth_err fth_spm_check(const void *data, size_t size, fth_spm_facts *facts) {
    symbols user = {0};
    *facts = (fth_spm_facts){.type = FTH_SPM_UNIGRAM, .by_words = 1};
    fth_err err = check_model((fth_pb_in){data, size}, &user, facts);
    free(user.text);
    return err;
}
