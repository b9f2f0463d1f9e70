/* unicode.h: characters of UTF-8 text: code points, white space, lower case.
 *
 * White space and lower case are Python's (str.split, str.strip, str.lower), since the scores are
 * defined by programs written in it. All text must be valid UTF-8. */
#ifndef FTH_TEXT_UNICODE_H
#define FTH_TEXT_UNICODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "text/text.h"

/* The code point at p; *length is its number of bytes. */
static inline uint32_t fth_code_point(const char *p, size_t *length) {
    const unsigned char *s = (const unsigned char *)p;
    if (s[0] < 0x80) return *length = 1, s[0];
    if (s[0] < 0xe0) return *length = 2, (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
    if (s[0] < 0xf0)
        return *length = 3, (s[0] & 0x0fu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
    *length = 4;
    return (s[0] & 0x07u) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu);
}

/* Appends the UTF-8 of a code point. */
fth_err fth_add_code_point(fth_str *out, uint32_t c);

/* Is c white space for Python's str.split and for \s? */
int fth_is_space(uint32_t c);

/* The text without white space at its end; at both ends. */
fth_text fth_strip_end(fth_text t);
fth_text fth_strip(fth_text t);

/* Appends the text in lower case; a capital sigma at the end of a word becomes a final sigma. */
fth_err fth_add_lower(fth_str *out, fth_text t);

/* Appends the words of t, which white space separates, with one space between them. */
fth_err fth_add_joined(fth_str *out, fth_text t);

#endif
