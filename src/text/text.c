/* text.c: one pass counts lines, one cuts them; the bytes stay where they are. */
#include "text/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/unicode.h"

static size_t count_lf(const char *data, size_t size) {
    size_t n = 0;
    for (const char *p = data, *end = data + size; p < end; n++) {
        p = memchr(p, '\n', (size_t)(end - p));
        if (!p) break;
        p++;
    }
    return n;
}

static fth_err check_utf8(const char *name, const char *data, size_t size) {
    size_t good = fth_utf8_valid_prefix(data, size);
    if (good == size) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s:%zu: byte 0x%02x is not UTF-8; the text must be UTF-8", name,
                    count_lf(data, good) + 1, (unsigned char)data[good]);
}

fth_err fth_text_lines_take(char *data, size_t size, const char *name, fth_text_lines *out) {
    *out = (fth_text_lines){.data = data};
    FTH_TRY(check_utf8(name, data, size));
    size_t most = count_lf(out->data, size) + 1;
    out->line = malloc(most * sizeof *out->line);
    if (!out->line) return fth_fail(FTH_NO_MEMORY, "%s: no memory for %zu lines", name, most);
    for (const char *p = out->data, *end = p + size; p < end;) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        const char *stop = lf ? lf : end;
        out->line[out->n++] = fth_strip_end((fth_text){p, (size_t)(stop - p)});
        p = lf ? lf + 1 : end;
    }
    return FTH_OK;
}

void fth_text_lines_fini(fth_text_lines *lines) {
    free(lines->line);
    free(lines->data);
    *lines = (fth_text_lines){0};
}
