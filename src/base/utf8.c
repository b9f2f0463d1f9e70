/* utf8.c: checks by lead byte and continuation bytes: no overlong forms, no surrogates, nothing
 * above U+10FFFF. */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* The length of the character that begins at p, of which left bytes are there; 0 when invalid. */
static size_t character(const unsigned char *p, size_t left) {
    unsigned char low = 0x80, high = 0xBF; /* what the second byte may be */
    size_t length;
    if (p[0] < 0x80) return 1;
    if (p[0] >= 0xC2 && p[0] <= 0xDF)
        length = 2;
    else if (p[0] >= 0xE0 && p[0] <= 0xEF)
        length = 3;
    else if (p[0] >= 0xF0 && p[0] <= 0xF4)
        length = 4;
    else
        return 0;
    if (p[0] == 0xE0) low = 0xA0;  /* shorter forms exist */
    if (p[0] == 0xED) high = 0x9F; /* surrogates */
    if (p[0] == 0xF0) low = 0x90;  /* shorter forms exist */
    if (p[0] == 0xF4) high = 0x8F; /* above U+10FFFF */
    if (left < length || p[1] < low || p[1] > high) return 0;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    return length;
}

size_t fth_utf8_valid_prefix(const char *text, size_t length) {
    const unsigned char *p = (const unsigned char *)text;
    size_t at = 0;
    while (at < length) {
        uint64_t eight; /* most text is mostly ASCII: look at eight bytes at once */
        if (length - at >= 8) {
            memcpy(&eight, p + at, 8);
            if (!(eight & UINT64_C(0x8080808080808080))) {
                at += 8;
                continue;
            }
        }
        size_t step = character(p + at, length - at);
        if (!step) break;
        at += step;
    }
    return at;
}

/* The bytes of the blank character at text, 0 when it is none. */
static size_t blank(const char *text, size_t left) {
    static const char *const wide[] = {"\xc2\x8f",     "\xc2\x9f",     "\xc2\xa0",
                                       "\xe1\x9a\x80", "\xe2\x81\x9f", "\xe3\x80\x80",
                                       "\xef\xbb\xbf"};
    const unsigned char *p = (const unsigned char *)text;
    if (p[0] <= ' ' || p[0] == 0x7F) return 1;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (left >= strlen(wide[i]) && memcmp(text, wide[i], strlen(wide[i])) == 0)
            return strlen(wide[i]);
    if (left < 3 || p[0] != 0xE2 || p[1] != 0x80) return 0; /* U+2000 to U+203F */
    return p[2] <= 0x8F || p[2] == 0xA8 || p[2] == 0xA9 || p[2] == 0xAF ? 3 : 0;
}

int fth_utf8_is_blank(const char *text, size_t length) {
    size_t at = 0, step = 1;
    while (at < length && step) at += step = blank(text + at, length - at);
    return at >= length;
}

fth_err fth_utf8_repair(const char *text, size_t length, fth_str *out) {
    static const char replacement[] = "\xef\xbf\xbd";
    for (size_t at = 0; at < length;) {
        size_t sound = fth_utf8_valid_prefix(text + at, length - at);
        const char *nul = memchr(text + at, 0, sound);
        if (nul) sound = (size_t)(nul - (text + at));
        FTH_TRY(fth_str_add(out, text + at, sound));
        at += sound;
        if (at < length) FTH_TRY(fth_str_add(out, replacement, sizeof replacement - 1));
        at++;
    }
    return fth_str_add(out, "", 0);
}
