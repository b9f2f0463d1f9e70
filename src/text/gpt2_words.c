/* gpt2_words.c: the alternatives of the pattern one after the other; no character is looked at more
 * than twice. */
#include "text/gpt2_words.h"

#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

typedef enum sort { SIGN, LETTER, NUMBER, SPACE } sort;

/* Unicode's property White_Space outside of ASCII. */
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
