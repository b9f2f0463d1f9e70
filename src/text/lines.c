/* lines.c: reads in large pieces and cuts at line ends; text that is not UTF-8 is refused with its
 * line and byte. */
#include "text/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/utf8.h"
#include "text/inflate.h"

enum { FIRST_CAPACITY = 1 << 16 };

struct fth_lines {
    const fth_text_file *files; /* [n_files] */
    size_t n_files, next_file;
    fth_inflate *open; /* files[next_file - 1], NULL: none */
    char *text;        /* [capacity + 1] bytes read ahead: begin .. end are not used yet */
    size_t capacity, begin, end;
    int ended;           /* the open file has no more bytes */
    int64_t line, count; /* of the open file; of all files */
    int64_t bytes;       /* of the files closed already */
    bool lenient;
    char fault[64]; /* of the newest line */
};

fth_err fth_lines_new(const fth_text_file *files, size_t n, fth_lines **out) {
    fth_lines *l = calloc(1, sizeof *l);
    if (!l || !(l->text = malloc(FIRST_CAPACITY + 1))) {
        fth_lines_free(l);
        return fth_fail(FTH_NO_MEMORY, "no memory to read text");
    }
    l->capacity = FIRST_CAPACITY;
    l->files = files;
    l->n_files = n;
    *out = l;
    return FTH_OK;
}

void fth_lines_free(fth_lines *l) {
    if (!l) return;
    fth_inflate_free(l->open);
    free(l->text);
    free(l);
}

const char *fth_lines_file(const fth_lines *l) {
    return l->next_file ? l->files[l->next_file - 1].name : "";
}

int64_t fth_lines_number(const fth_lines *l) {
    return l->line;
}

int64_t fth_lines_count(const fth_lines *l) {
    return l->count;
}

int64_t fth_lines_bytes(const fth_lines *l) {
    return l->bytes + (l->open ? fth_inflate_bytes(l->open) : 0);
}

int64_t fth_text_files_size(const fth_text_file *files, size_t n) {
    int64_t size = 0;
    struct stat info;
    for (size_t i = 0; i < n; i++)
        if (stat(files[i].path, &info) == 0 && S_ISREG(info.st_mode)) size += info.st_size;
    return size;
}

static fth_err grow(fth_lines *l) {
    if (l->capacity >= FTH_LONGEST_LINE)
        return fth_fail(FTH_BAD_INPUT, "%s:%lld: a line longer than %d MiB: not a text file?",
                        fth_lines_file(l), (long long)l->line + 1, FTH_LONGEST_LINE >> 20);
    char *text = realloc(l->text, 2 * l->capacity + 1);
    if (!text)
        return fth_fail(FTH_NO_MEMORY, "%s:%lld: no memory for a line of more than %zu bytes",
                        fth_lines_file(l), (long long)l->line + 1, l->capacity);
    l->text = text;
    l->capacity *= 2;
    return FTH_OK;
}

/* Reads more bytes of the open file behind those that are not used yet. */
static fth_err read_more(fth_lines *l) {
    if (l->begin > 0) {
        memmove(l->text, l->text + l->begin, l->end - l->begin);
        l->end -= l->begin;
        l->begin = 0;
    }
    if (l->end == l->capacity) FTH_TRY(grow(l));
    size_t got;
    FTH_TRY(fth_inflate_read(l->open, l->text + l->end, l->capacity - l->end, &got));
    l->ended = got == 0;
    l->end += got;
    return FTH_OK;
}

static fth_err open_next(fth_lines *l) {
    const fth_text_file *file = &l->files[l->next_file++];
    l->line = 0;
    l->ended = 0;
    l->begin = l->end = 0;
    FTH_TRY(fth_inflate_new(file->path, file->name, &l->open));
    while (l->end < 3 && !l->ended && memcmp(l->text, "\xef\xbb\xbf", l->end) == 0)
        FTH_TRY(read_more(l));
    if (l->end >= 3 && memcmp(l->text, "\xef\xbb\xbf", 3) == 0) l->begin = 3;
    while (!l->ended && l->begin == l->end) FTH_TRY(read_more(l));
    if (l->begin == l->end && !l->lenient)
        return fth_fail(FTH_BAD_INPUT, "%s: an empty file", file->name);
    return FTH_OK;
}

static void close_open(fth_lines *l) {
    l->bytes += fth_inflate_bytes(l->open);
    fth_inflate_free(l->open);
    l->open = NULL;
}

static void find_fault(fth_lines *l, const char *text, size_t n) {
    const size_t valid = fth_utf8_valid_prefix(text, n);
    l->fault[0] = 0;
    if (valid < n)
        snprintf(l->fault, sizeof l->fault, "not UTF-8: byte 0x%02x at column %zu",
                 (unsigned char)text[valid], valid + 1);
    else if (memchr(text, 0, n))
        snprintf(l->fault, sizeof l->fault, "a NUL byte: not a text file");
}

/* The line that begins at begin, up to its \n or the end of the file. */
static fth_err take_line(fth_lines *l, const char **text, size_t *length) {
    size_t searched = 0;
    char *newline;
    while (!(newline = memchr(l->text + l->begin + searched, '\n', l->end - l->begin - searched))) {
        searched = l->end - l->begin;
        if (l->ended) break;
        FTH_TRY(read_more(l));
    }
    char *start = l->text + l->begin;
    size_t n = newline ? (size_t)(newline - start) : l->end - l->begin;
    l->begin += n + (newline != NULL);
    l->line++;
    l->count++;
    if (n && start[n - 1] == '\r') n--;
    find_fault(l, start, n);
    if (l->fault[0] && !l->lenient)
        return fth_fail(FTH_BAD_INPUT, "%s:%lld: %s", fth_lines_file(l), (long long)l->line,
                        l->fault);
    start[n] = 0; /* on a byte that is used already, or behind the last one */
    *text = start;
    *length = n;
    return FTH_OK;
}

fth_err fth_lines_next(fth_lines *l, const char **text, size_t *length) {
    *text = NULL;
    *length = 0;
    for (;;) {
        if (l->open) {
            if (l->begin == l->end && !l->ended) FTH_TRY(read_more(l));
            if (l->begin < l->end) return take_line(l, text, length);
            if (!l->ended) continue;
            close_open(l);
        }
        if (l->next_file == l->n_files) return FTH_OK;
        FTH_TRY(open_next(l));
    }
}

void fth_lines_lenient(fth_lines *l) {
    l->lenient = true;
}

const char *fth_lines_fault(const fth_lines *l) {
    return l->fault[0] ? l->fault : NULL;
}

fth_err fth_lines_ready(fth_lines *l, bool *ready) {
    *ready = true;
    if (!l->open) return FTH_OK;
    while (!memchr(l->text + l->begin, '\n', l->end - l->begin) && !l->ended) {
        *ready = !fth_inflate_would_wait(l->open);
        if (!*ready) return FTH_OK;
        FTH_TRY(read_more(l));
    }
    return FTH_OK;
}
