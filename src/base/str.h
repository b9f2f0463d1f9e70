/* str.h: a string that grows.
 *
 * A zeroed fth_str is empty and may be freed. text is NULL before the first addition and always
 * NUL-terminated afterwards; it may hold NUL bytes, length counts. */
#ifndef FTH_BASE_STR_H
#define FTH_BASE_STR_H

#include <stddef.h>

#include "base/error.h"

typedef struct fth_str {
    char *text;              /* [capacity], the first length bytes are the string */
    size_t length, capacity; /* without and with the NUL and the spare room */
} fth_str;

/* Appends; on failure (out of memory) the string is as before. text must not lie inside s. */
fth_err fth_str_add(fth_str *s, const char *text, size_t length);
fth_err fth_str_addf(fth_str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Empties the string and keeps its memory. */
void fth_str_clear(fth_str *s);

/* Frees the memory; the string is empty afterwards and can be used again. */
void fth_str_fini(fth_str *s);

/* A formatted string of its own, to be freed with free(); NULL when out of memory. */
char *fth_strdup_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
