/* str.c: grows by doubling; formatting measures first and prints into the room that is then
 * there. */
#include "base/str.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for more bytes and the NUL after them. */
static fth_err reserve(fth_str *s, size_t more) {
    if (more > SIZE_MAX / 4 || s->length > SIZE_MAX / 4)
        return fth_fail(FTH_NO_MEMORY, "no memory for a string of %zu + %zu bytes", s->length,
                        more);
    size_t need = s->length + more + 1;
    if (need <= s->capacity) return FTH_OK;
    size_t capacity = s->capacity ? s->capacity : 32;
    while (capacity < need) capacity *= 2;
    char *text = realloc(s->text, capacity);
    if (!text) return fth_fail(FTH_NO_MEMORY, "no memory for a string of %zu bytes", capacity);
    s->text = text;
    s->capacity = capacity;
    return FTH_OK;
}

fth_err fth_str_add(fth_str *s, const char *text, size_t length) {
    FTH_TRY(reserve(s, length));
    if (length) memcpy(s->text + s->length, text, length);
    s->length += length;
    s->text[s->length] = '\0';
    return FTH_OK;
}

fth_err fth_str_addf(fth_str *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) return fth_fail(FTH_FAILED, "cannot format \"%s\"", format);
    FTH_TRY(reserve(s, (size_t)length));
    va_start(args, format);
    vsnprintf(s->text + s->length, (size_t)length + 1, format, args);
    va_end(args);
    s->length += (size_t)length;
    return FTH_OK;
}

void fth_str_clear(fth_str *s) {
    s->length = 0;
    if (s->text) s->text[0] = '\0';
}

void fth_str_fini(fth_str *s) {
    free(s->text);
    *s = (fth_str){0};
}

char *fth_strdup_printf(const char *format, ...) {
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    return length < 0 ? NULL : text;
}
