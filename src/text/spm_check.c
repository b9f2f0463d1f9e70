/* spm_check.c: walks the fields of the protocol buffer, then every state of the trie that some text
 * could reach. */
#include "text/spm_check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* A part of a protocol buffer message. */
typedef struct bytes {
    const uint8_t *at;
    size_t left;
} bytes;

/* One field of a message: its number and, by its wire type, a number or bytes. */
typedef struct field {
    uint64_t number, value;
    bytes content; /* wire type 2 */
} field;

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* Field numbers of sentencepiece_model.proto. */
enum { MODEL_PIECES = 1, MODEL_TRAINER = 2, MODEL_NORMALIZER = 3, MODEL_DENORMALIZER = 5 };
enum { TRAINER_MODEL_TYPE = 3, TRAINER_SPACE_AS_SUFFIX = 24 };
enum {
    NORMALIZER_CHARMAP = 2,
    NORMALIZER_DUMMY_PREFIX = 3,
    NORMALIZER_EXTRA_SPACES = 4,
    NORMALIZER_ESCAPE_SPACES = 5
};

static int read_varint(bytes *b, uint64_t *value) {
    *value = 0;
    for (int shift = 0; shift < 64 && b->left; shift += 7) {
        uint8_t byte = *b->at++;
        b->left--;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return 1;
    }
    return 0;
}

/* 0 when the message is broken. */
static int read_field(bytes *b, field *f) {
    uint64_t key, length = 0;
    if (!read_varint(b, &key)) return 0;
    *f = (field){.number = key >> 3};
    switch (key & 7) {
    case WIRE_VARINT: return read_varint(b, &f->value);
    case WIRE_64: length = 8; break;
    case WIRE_32: length = 4; break;
    case WIRE_BYTES:
        if (!read_varint(b, &length)) return 0;
        break;
    default: return 0;
    }
    if (length > b->left) return 0;
    f->content = (bytes){b->at, (size_t)length};
    b->at += length;
    b->left -= (size_t)length;
    return 1;
}

static uint32_t read_u32(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

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
    uint8_t *seen;   /* [n_units] */
    uint32_t n_stack;
    uint32_t root;   /* the base that every walk begins at */
    int over_spaces; /* a key has a space and something else */
} charmap;

/* Notes that a walk can stand at base; 0 when that is outside of the trie. */
static int visit(charmap *c, uint32_t base) {
    if (base >= c->n_units) return 0;
    if (!c->seen[base]) {
        c->seen[base] = 1;
        c->stack[c->n_stack++] = base;
    }
    return 1;
}

static int has_children(const charmap *c, uint32_t base) {
    for (uint32_t label = 1; label < 256; label++) {
        uint32_t at = base ^ label;
        if (at >= c->n_units) return 1; /* not sound, as walk_children will find */
        if ((read_u32(c->units + 4 * (size_t)at) & (1u << 31 | 0xff)) == label) return 1;
    }
    return 0;
}

/* All 256 steps from a base. */
static int walk_children(charmap *c, uint32_t base) {
    for (uint32_t label = 0; label < 256; label++) {
        uint32_t at = base ^ label;
        if (at >= c->n_units) return 0;
        uint32_t unit = read_u32(c->units + 4 * (size_t)at);
        if ((unit & (1u << 31 | 0xff)) != label) continue;
        uint32_t next = at ^ unit_distance(unit);
        if (!visit(c, next)) return 0;
        if (label == ' ' && (base != c->root || has_children(c, next))) c->over_spaces = 1;
        if (unit & (1u << 8)) {
            uint32_t value = read_u32(c->units + 4 * (size_t)next) & 0x7fffffff;
            if (value >= c->pool) return 0;
        }
    }
    return 1;
}

static fth_err not_sound(void) {
    return fth_fail(FTH_BAD_INPUT, "damaged SentencePiece model: its normaliser");
}

/* Content: length of the trie in bytes (u32), the trie, the pool (NUL-terminated strings). */
static fth_err check_charmap(bytes b, fth_spm_facts *facts) {
    if (b.left == 0) return FTH_OK;
    if (b.left < 4) return not_sound();
    uint32_t trie = read_u32(b.at);
    if (trie > b.left - 4 || trie < 4 || trie % 4) return not_sound();
    charmap c = {.units = b.at + 4, .n_units = trie / 4, .pool = b.left - 4 - trie};
    if (c.pool == 0 || b.at[b.left - 1] != 0) return not_sound();
    c.stack = malloc(sizeof *c.stack * c.n_units);
    c.seen = calloc(c.n_units, 1);
    c.root = unit_distance(read_u32(c.units));
    const int there = c.stack && c.seen;
    int sound = there && visit(&c, c.root);
    while (sound && c.n_stack) sound = walk_children(&c, c.stack[--c.n_stack]);
    free(c.stack);
    free(c.seen);
    if (c.over_spaces) facts->by_words = 0;
    if (!there) return fth_fail(FTH_NO_MEMORY, "no memory to check a SentencePiece model");
    return sound ? FTH_OK : not_sound();
}

static fth_err check_normalizer(bytes b, fth_spm_facts *facts) {
    field f;
    while (b.left) {
        if (!read_field(&b, &f)) return not_sound();
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

static int trainer_facts(bytes b, fth_spm_facts *facts) {
    field f;
    while (b.left) {
        if (!read_field(&b, &f)) return 0;
        if (f.number == TRAINER_SPACE_AS_SUFFIX && f.value) facts->by_words = 0;
        if (f.number != TRAINER_MODEL_TYPE) continue;
        if (f.value < FTH_SPM_UNIGRAM || f.value > FTH_SPM_CHAR) return 0;
        facts->type = (fth_spm_type)f.value;
    }
    return 1;
}

fth_err fth_spm_check(const void *data, size_t size, fth_spm_facts *facts) {
    bytes b = {data, size};
    int pieces = 0;
    *facts = (fth_spm_facts){.type = FTH_SPM_UNIGRAM, .by_words = 1};
    while (b.left) {
        field f;
        if (!read_field(&b, &f))
            return fth_fail(FTH_BAD_INPUT, "not a SentencePiece model, or cut short");
        pieces += f.number == MODEL_PIECES;
        if (f.number == MODEL_TRAINER && !trainer_facts(f.content, facts))
            return fth_fail(FTH_BAD_INPUT, "damaged SentencePiece model: its trainer part");
        if (f.number == MODEL_NORMALIZER || f.number == MODEL_DENORMALIZER)
            FTH_TRY(check_normalizer(f.content, facts));
    }
    if (!pieces) return fth_fail(FTH_BAD_INPUT, "not a SentencePiece model: it has no pieces");
    return FTH_OK;
}
