/* utf8.h: is this text UTF-8? */
#ifndef FTH_BASE_UTF8_H
#define FTH_BASE_UTF8_H

#include <stddef.h>

/* The length of the longest prefix that is valid UTF-8 by RFC 3629 (no overlong forms, no
 * surrogates, nothing above U+10FFFF); == length when all is valid. */
size_t fth_utf8_valid_prefix(const char *text, size_t length);

/* 1 for valid UTF-8 that has nothing but spaces, control characters and characters without width. */
int fth_utf8_is_blank(const char *text, size_t length);

#endif
