/* page.c: puts style, code and data into one HTML file whose policy names them by their SHA-256. */
#include "inspect/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/base64.h"
#include "inspect/page_files.h"

/* 'sha256-...' of a file, whose sum was taken when the program was built. */
static fth_err add_hash(fth_str *out, const char *hex) {
    unsigned char byte[32];
    for (size_t i = 0; i < sizeof byte; i++) {
        char two[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        byte[i] = (unsigned char)strtoul(two, NULL, 16);
    }
    FTH_TRY(fth_str_addf(out, "'sha256-"));
    FTH_TRY(fth_base64_add(out, byte, sizeof byte));
    return fth_str_addf(out, "'");
}

fth_err fth_page_policy(const char *connect, fth_str *out) {
    FTH_TRY(fth_str_addf(out, "default-src 'none'; img-src data:; base-uri 'none'; form-action "
                              "'none'; script-src "));
    FTH_TRY(add_hash(out, fth_page_script_sha256));
    FTH_TRY(fth_str_addf(out, "; style-src "));
    FTH_TRY(add_hash(out, fth_page_style_sha256));
    return connect[0] ? fth_str_addf(out, "; connect-src %s", connect) : FTH_OK;
}

static fth_err add_part(const char *name, size_t length, const fth_str *data, fth_str *out) {
    if (strncmp(name, "STYLE", length) == 0)
        return fth_str_add(out, (const char *)fth_page_style, fth_page_style_size);
    if (strncmp(name, "SCRIPT", length) == 0)
        return fth_str_add(out, (const char *)fth_page_script, fth_page_script_size);
    if (strncmp(name, "DATA", length) == 0) return fth_str_add(out, data->text, data->length);
    /* a live page asks its own server; one from a file finds none */
    if (strncmp(name, "POLICY", length) == 0) return fth_page_policy("'self'", out);
    return fth_fail(FTH_FAILED, "report.html: unknown part %.*s", (int)length, name);
}

/* report.html with @NAME@ replaced by what it stands for. */
fth_err fth_page(const fth_str *data, fth_str *out) {
    const char *at = (const char *)fth_page_frame, *end = at + fth_page_frame_size;
    while (at < end) {
        const char *open = memchr(at, '@', (size_t)(end - at));
        const char *close = open ? memchr(open + 1, '@', (size_t)(end - open - 1)) : NULL;
        if (!close) return fth_str_add(out, at, (size_t)(end - at));
        FTH_TRY(fth_str_add(out, at, (size_t)(open - at)));
        FTH_TRY(add_part(open + 1, (size_t)(close - open - 1), data, out));
        at = close + 1;
    }
    return FTH_OK;
}
