/* gpt2_words.c: the alternatives of the pattern one after the other; no character is looked at more
 * than twice. */
#include "text/gpt2_words.h"

#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

typedef enum sort { SIGN, LETTER, NUMBER, SPACE } sort;

/* Letters and numbers of Unicode 15.1 and 16, which utf8proc may not know yet. */
static sort sort_of_new(utf8proc_int32_t c) {
    static const struct {
        utf8proc_int32_t first, last;
        sort sort;
    } ranges[] = {
        {0x01c89, 0x01c8a, LETTER}, {0x0a7cb, 0x0a7cd, LETTER}, {0x0a7da, 0x0a7dc, LETTER},
        {0x105c0, 0x105f3, LETTER}, {0x10d40, 0x10d49, NUMBER}, {0x10d4a, 0x10d65, LETTER},
        {0x10d6f, 0x10d85, LETTER}, {0x10ec2, 0x10ec4, LETTER}, {0x11380, 0x11389, LETTER},
        {0x1138b, 0x1138b, LETTER}, {0x1138e, 0x1138e, LETTER}, {0x11390, 0x113b5, LETTER},
        {0x113b7, 0x113b7, LETTER}, {0x113d1, 0x113d1, LETTER}, {0x113d3, 0x113d3, LETTER},
        {0x116d0, 0x116e3, NUMBER}, {0x11bc0, 0x11be0, LETTER}, {0x11bf0, 0x11bf9, NUMBER},
        {0x13460, 0x143fa, LETTER}, {0x16100, 0x1611d, LETTER}, {0x16130, 0x16139, NUMBER},
        {0x16d40, 0x16d6c, LETTER}, {0x16d70, 0x16d79, NUMBER}, {0x18cff, 0x18cff, LETTER},
        {0x1ccf0, 0x1ccf9, NUMBER}, {0x1e5d0, 0x1e5ed, LETTER}, {0x1e5f0, 0x1e5f0, LETTER},
        {0x1e5f1, 0x1e5fa, NUMBER}, {0x2ebf0, 0x2ee5d, LETTER}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i].first && c <= ranges[i].last) return ranges[i].sort;
    return SIGN;
}

/* A character outside of ASCII; white space is Unicode's property White_Space. */
static sort sort_of_wide(utf8proc_int32_t c) {
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return LETTER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return NUMBER;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return SPACE;
    case UTF8PROC_CATEGORY_CN: return sort_of_new(c);
    default: return c == 0x85 ? SPACE : SIGN; /* next line */
    }
}

/* The sort of the character at text, and its bytes. */
static sort look(const char *text, size_t left, size_t *bytes) {
    const unsigned char c = (unsigned char)text[0];
    *bytes = 1;
    if (c < 0x80) {
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return LETTER;
        if (c >= '0' && c <= '9') return NUMBER;
        return c == ' ' || (c >= '\t' && c <= '\r') ? SPACE : SIGN;
    }
    utf8proc_int32_t point;
    const utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text,
                                                (utf8proc_ssize_t)(left < 4 ? left : 4), &point);
    if (n <= 0) return SIGN;
    *bytes = (size_t)n;
    return sort_of_wide(point);
}

/* Bytes of the run of characters of one sort from the beginning of text; last: where the last one
 * begins. */
static size_t run(const char *text, size_t length, sort wanted, size_t *last) {
    size_t at = 0, n;
    while (at < length && look(text + at, length - at, &n) == wanted) {
        *last = at;
        at += n;
    }
    return at;
}

/* 's, 't, 're, 've, 'm, 'll, 'd; 0: none of them. */
static size_t contraction(const char *text, size_t length) {
    static const char *const ends[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (text[0] != '\'') return 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t n = strlen(ends[i]);
        if (length > n && memcmp(text + 1, ends[i], n) == 0) return 1 + n;
    }
    return 0;
}

size_t fth_gpt2_word(const char *text, size_t length) {
    size_t n, last = 0;
    const size_t short_form = contraction(text, length);
    if (short_form) return short_form;
    const size_t blank = text[0] == ' ' && length > 1; /* one may stand before a word */
    const sort first = look(text + blank, length - blank, &n);
    if (first != SPACE) return blank + run(text + blank, length - blank, first, &last);
    const size_t spaces = run(text, length, SPACE, &last);
    /* the last blank before a word is left to it */
    return spaces < length && last > 0 ? last : spaces;
}
