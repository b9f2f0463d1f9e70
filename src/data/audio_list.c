/* audio_list.c: looks up the columns of a manifest by its first line; without one that names
 * `audio`, every line is a file. */
#include "data/audio_list.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "text/lines.h"

enum { ID, AUDIO, N_FRAMES, TEXT, N_COLUMNS };
static const char *const names[N_COLUMNS] = {"id", "audio", "n_frames", "tgt_text"};

struct fth_audio_list {
    fth_text_file file;
    fth_lines *lines;
    bool manifest;
    int column[N_COLUMNS]; /* -1: not there */
    int columns;           /* of the first line */
    bool first_waits;      /* the first line of a list is still to be given */
    char *line, *path;     /* of the newest row */
    char place[600];
};

static fth_err bad(const fth_audio_list *l, const char *what, const char *value) {
    return fth_fail(FTH_BAD_INPUT, "%s: %s '%.80s'", l->place, what, value);
}

/* Keeps the next line; *more is false at the end. */
static fth_err take_line(fth_audio_list *l, bool *more) {
    const char *text;
    size_t length;
    FTH_TRY(fth_lines_next(l->lines, &text, &length));
    *more = text != NULL;
    if (!text) return FTH_OK;
    snprintf(l->place, sizeof l->place, "%.500s:%lld", l->file.name,
             (long long)fth_lines_number(l->lines));
    free(l->line);
    l->line = strdup(text);
    return l->line ? FTH_OK : fth_no_memory(l->file.name);
}

/* Is the column at `text` called so? */
static bool is_called(const char *text, const char *name) {
    const size_t n = strlen(name);
    return strncmp(text, name, n) == 0 && (text[n] == '\t' || text[n] == '\0');
}

/* Looks for the columns in the first line. */
static void find_columns(fth_audio_list *l) {
    l->columns = 0;
    for (const char *at = l->line; at; l->columns++) {
        for (int c = 0; c < N_COLUMNS; c++)
            if (l->column[c] < 0 && is_called(at, names[c])) l->column[c] = l->columns;
        at = strchr(at, '\t');
        if (at) at++;
    }
    l->manifest = l->column[AUDIO] >= 0;
    l->first_waits = !l->manifest;
}

static fth_err open_list(fth_audio_list *l) {
    bool more;
    FTH_TRY(fth_lines_new(&l->file, 1, &l->lines));
    FTH_TRY(take_line(l, &more));
    if (!more) return fth_fail(FTH_BAD_INPUT, "%s: names no recording", l->file.name);
    find_columns(l);
    if (l->manifest || !strchr(l->line, '\t')) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT,
                    "%s: a manifest begins with a line of column names; 'audio' is not among them",
                    l->place);
}

fth_err fth_audio_list_open(const char *path, fth_audio_list **out) {
    fth_audio_list *l = calloc(1, sizeof *l);
    if (!l) return fth_fail(FTH_NO_MEMORY, "%s: no memory to read it", path);
    l->file = (fth_text_file){path, strcmp(path, "-") == 0 ? "standard input" : path};
    for (int c = 0; c < N_COLUMNS; c++) l->column[c] = -1;
    fth_err err = open_list(l);
    if (err)
        fth_audio_list_free(l);
    else
        *out = l;
    return err;
}

void fth_audio_list_free(fth_audio_list *l) {
    if (!l) return;
    fth_lines_free(l->lines);
    free(l->line);
    free(l->path);
    free(l);
}

bool fth_audio_list_has_texts(const fth_audio_list *l) {
    return l->manifest && l->column[TEXT] >= 0;
}

const char *fth_audio_list_place(const fth_audio_list *l) {
    return l->place;
}

/* Digits alone, at most 15 of them; -1: it is none. */
static int64_t whole_number(const char *text) {
    const size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)text[i])) return -1;
    return n > 0 && n <= 15 ? strtoll(text, NULL, 10) : -1;
}

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

fth_err fth_clip_parse(char *name, fth_clip *out) {
    *out = (fth_clip){.path = name};
    char *last = strrchr(name, ':');
    if (last && whole_number(last + 1) >= 0) {
        *last = '\0';
        char *middle = strrchr(name, ':');
        *last = ':';
        char *end;
        const long long start = middle ? strtoll(middle + 1, &end, 10) : -1;
        if (middle && isdigit((unsigned char)middle[1]) && end == last && last - middle <= 16) {
            out->start = start;
            out->length = whole_number(last + 1);
            if (out->length == 0) return fth_fail(FTH_BAD_INPUT, "%s: a part of 0 samples", name);
            *middle = '\0';
        }
    }
    if (!name[0]) return fth_fail(FTH_BAD_INPUT, "no audio file is named");
    if (ends_with(name, ".zip") || ends_with(name, ".npy"))
        return fth_fail(FTH_BAD_INPUT,
                        "%s: features are computed from recordings; name the audio file", name);
    return FTH_OK;
}

/* Cuts the line at its tabs. */
static fth_err cut(fth_audio_list *l, char *cell[N_COLUMNS]) {
    int n = 0;
    for (char *at = l->line; at; n++) {
        for (int c = 0; c < N_COLUMNS; c++)
            if (l->column[c] == n) cell[c] = at;
        at = strchr(at, '\t');
        if (at) *at++ = '\0';
    }
    if (n == l->columns) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s: has %d columns and the first line %d", l->place, n,
                    l->columns);
}

fth_err fth_audio_list_next(fth_audio_list *l, fth_audio_row *row) {
    char *cell[N_COLUMNS] = {NULL};
    bool more = true;
    *row = (fth_audio_row){.text = ""};
    if (!l->first_waits) FTH_TRY(take_line(l, &more));
    l->first_waits = false;
    if (!more) return FTH_OK;
    if (!l->manifest)
        cell[AUDIO] = l->line;
    else
        FTH_TRY(cut(l, cell));
    if (cell[N_FRAMES] && cell[N_FRAMES][0] && whole_number(cell[N_FRAMES]) < 0)
        return bad(l, "n_frames must be empty or a whole number, not", cell[N_FRAMES]);
    if (cell[TEXT]) row->text = cell[TEXT];
    free(l->path);
    l->path = l->manifest ? fth_path_beside(l->file.path, cell[AUDIO]) : strdup(cell[AUDIO]);
    if (!l->path) return fth_no_memory(l->file.name);
    if (!cell[AUDIO][0]) return fth_fail(FTH_BAD_INPUT, "%s: no audio file is named", l->place);
    fth_err err = fth_clip_parse(l->path, &row->clip);
    return err ? fth_fail_in(err, "%s", l->place) : FTH_OK;
}

fth_err fth_audio_list_count(const char *path, int64_t *n) {
    fth_audio_list *l = NULL;
    fth_audio_row row;
    *n = 0;
    FTH_TRY(fth_audio_list_open(path, &l));
    fth_err err;
    while ((err = fth_audio_list_next(l, &row)) == FTH_OK && row.clip.path) ++*n;
    fth_audio_list_free(l);
    return err;
}
