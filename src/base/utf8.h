/* utf8.h: is this text UTF-8? */
#ifndef FTH_BASE_UTF8_H
#define FTH_BASE_UTF8_H

#include <stddef.h>

#include "base/str.h"

/* The length of the longest prefix that is valid UTF-8 by RFC 3629 (no overlong forms, no
 * surrogates, nothing above U+10FFFF); == length when all is valid. */
size_t fth_utf8_valid_prefix(const char *text, size_t length);

/* 1 for valid UTF-8 that has nothing but spaces, control characters and characters without
 * width. */
int fth_utf8_is_blank(const char *text, size_t length);

/* Appends the text with U+FFFD for each byte that is no part of UTF-8 and for each NUL. */
fth_err fth_utf8_repair(const char *text, size_t length, fth_str *out);

#endif
