/* records.c: joins the lines of parallel files, of a table or of JSON lines into records, and names
 * the line of one that is none. */
#include "data/records.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "data/word_tags.h"

struct fth_records {
    fth_text_spec spec;
    fth_lines *lines[2];
    size_t pair;                          /* of many directions: which files are open, */
    int64_t bytes;                        /* and what was read of those before */
    json_t *object;                       /* the newest JSON line, which the record points into */
    char *copies[2 + FTH_MAX_REFERENCES]; /* its texts that had to be changed, NULL: none */
    int n_copies;
    fth_column_places places; /* of the file at hand */
    char *line;               /* the newest one of a table, cut in pieces */
    fth_str words, tags;      /* of the newest sentence */
    size_t capacity;
};

fth_err fth_records_new(const fth_text_spec *spec, fth_records **out) {
    fth_err err = FTH_OK;
    fth_records *r = calloc(1, sizeof *r);
    if (!r) return fth_fail(FTH_NO_MEMORY, "no memory to read text");
    r->spec = *spec;
    const bool directions = spec->kind == FTH_TEXT_DIRECTIONS;
    int streams = directions || spec->kind == FTH_TEXT_PARALLEL ? 2 : 1;
    for (int i = 0; i < streams; i++)
        FTH_TRY_OR(err,
                   fth_lines_new(spec->files[i], directions ? 1 : spec->n_files[i], &r->lines[i]),
                   fail);
    *out = r;
    return FTH_OK;
fail:
    fth_records_free(r);
    return err;
}

static void forget_json(fth_records *r) {
    while (r->n_copies) free(r->copies[--r->n_copies]);
    json_decref(r->object);
    r->object = NULL;
}

void fth_records_free(fth_records *r) {
    if (!r) return;
    forget_json(r);
    fth_lines_free(r->lines[0]);
    fth_lines_free(r->lines[1]);
    free(r->line);
    fth_str_fini(&r->words);
    fth_str_fini(&r->tags);
    free(r);
}

const char *fth_records_file(const fth_records *r) {
    return fth_lines_file(r->lines[0]);
}

int64_t fth_records_line(const fth_records *r) {
    return fth_lines_number(r->lines[0]);
}

int64_t fth_records_bytes(const fth_records *r) {
    return r->bytes + fth_lines_bytes(r->lines[0]) +
           (r->lines[1] ? fth_lines_bytes(r->lines[1]) : 0);
}

int64_t fth_text_spec_size(const fth_text_spec *spec) {
    int64_t size = 0;
    for (int i = 0; i < 2; i++) size += fth_text_files_size(spec->files[i], spec->n_files[i]);
    return size;
}

/* One side has ended: counts the other to its end, so that the message has both numbers. */
static fth_err different_length(fth_records *r, int longer) {
    const char *text = "";
    size_t length;
    while (text) FTH_TRY(fth_lines_next(r->lines[longer], &text, &length));
    const bool joined = r->spec.kind == FTH_TEXT_PARALLEL;
    const fth_text_file *src = &r->spec.files[0][r->pair], *tgt = &r->spec.files[1][r->pair];
    return fth_fail(FTH_BAD_INPUT,
                    "source and target differ in length: %s%s has %lld lines, %s%s has %lld",
                    src->name, joined && r->spec.n_files[0] > 1 ? " and what follows" : "",
                    (long long)fth_lines_count(r->lines[0]), tgt->name,
                    joined && r->spec.n_files[1] > 1 ? " and what follows" : "",
                    (long long)fth_lines_count(r->lines[1]));
}

static fth_err next_parallel(fth_records *r, fth_record *record) {
    for (int i = 0; i < 2; i++)
        FTH_TRY(fth_lines_next(r->lines[i], &record->text[i], &record->length[i]));
    if (!record->text[0] != !record->text[1]) return different_length(r, record->text[0] ? 0 : 1);
    record->sides = record->text[0] ? 2 : 0;
    return FTH_OK;
}

/* The files of the next direction. */
static fth_err open_next_pair(fth_records *r) {
    r->bytes = fth_records_bytes(r);
    r->pair++;
    for (int i = 0; i < 2; i++) {
        fth_lines_free(r->lines[i]);
        r->lines[i] = NULL;
    }
    for (int i = 0; i < 2; i++) FTH_TRY(fth_lines_new(&r->spec.files[i][r->pair], 1, &r->lines[i]));
    return FTH_OK;
}

static fth_err next_of_directions(fth_records *r, fth_record *record) {
    FTH_TRY(next_parallel(r, record));
    while (!record->sides && r->pair + 1 < r->spec.n_files[0]) {
        FTH_TRY(open_next_pair(r));
        FTH_TRY(next_parallel(r, record));
    }
    record->direction = r->spec.directions[r->pair];
    return FTH_OK;
}

static fth_err next_tsv(fth_records *r, fth_record *record) {
    const char *line;
    size_t length;
    FTH_TRY(fth_lines_next(r->lines[0], &line, &length));
    if (!line) return FTH_OK;
    char *tab = memchr((char *)line, '\t', length);
    size_t rest = tab ? length - (size_t)(tab - line) - 1 : 0;
    if (!tab || memchr(tab + 1, '\t', rest))
        return fth_fail(FTH_BAD_INPUT, "%s:%lld: %s: a line must be source<TAB>target",
                        fth_records_file(r), (long long)fth_records_line(r),
                        tab ? "more than one tab" : "no tab");
    *tab = 0; /* the reader does not use its newest line again */
    record->sides = 2;
    record->text[0] = line;
    record->length[0] = (size_t)(tab - line);
    record->text[1] = tab + 1;
    record->length[1] = rest;
    return FTH_OK;
}

static fth_err next_plain(fth_records *r, fth_record *record) {
    FTH_TRY(fth_lines_next(r->lines[0], &record->text[0], &record->length[0]));
    record->sides = record->text[0] != NULL;
    return FTH_OK;
}

/* A copy of a line, which may be written to. */
static fth_err keep_line(fth_records *r, const char *line, size_t length) {
    if (length >= r->capacity) {
        char *room = realloc(r->line, length + 1);
        if (!room) return fth_fail(FTH_NO_MEMORY, "no memory for a line of %zu bytes", length);
        r->line = room;
        r->capacity = length + 1;
    }
    memcpy(r->line, line, length + 1);
    return FTH_OK;
}

/* The next line of a table that is no header; *line NULL after the last. */
static fth_err next_row(fth_records *r, const char **line, size_t *length) {
    FTH_TRY(fth_lines_next(r->lines[0], line, length));
    if (!*line || fth_records_line(r) != 1) return FTH_OK;
    FTH_TRY(fth_columns_find(r->spec.columns, *line, fth_records_file(r), &r->places));
    return r->spec.columns->header ? next_row(r, line, length) : FTH_OK;
}

static const char *without_blanks(char *text) {
    while (*text == ' ') text++;
    size_t n = strlen(text);
    while (n && (text[n - 1] == ' ' || text[n - 1] == '\r')) text[--n] = 0;
    return text;
}

static fth_err next_columns(fth_records *r, fth_record *record) {
    const char *line, *fields[FTH_N_COLUMNS];
    size_t length;
    FTH_TRY(next_row(r, &line, &length));
    if (!line) return FTH_OK;
    FTH_TRY(keep_line(r, line, length));
    const int columns = fth_columns_cut(&r->places, r->line, fields);
    if (columns)
        return fth_fail(FTH_BAD_INPUT, "%s:%lld: has %d columns, and --columns asks for more",
                        fth_records_file(r), (long long)fth_records_line(r), columns);
    for (int i = FTH_COLUMN_TEXT; i <= FTH_COLUMN_TEXT2 && fields[i]; i++) {
        record->text[i] = fields[i];
        record->length[i] = strlen(fields[i]);
        if (fth_utf8_is_blank(fields[i], record->length[i]))
            return fth_fail(FTH_BAD_INPUT, "%s:%lld: its text is empty", fth_records_file(r),
                            (long long)fth_records_line(r));
        record->sides = i + 1;
    }
    if (fields[FTH_COLUMN_LABEL]) record->label = without_blanks((char *)fields[FTH_COLUMN_LABEL]);
    return FTH_OK;
}

static fth_err next_tagged(fth_records *r, fth_record *record) {
    bool more;
    FTH_TRY(fth_tagged_next(r->lines[0], &r->words, &r->tags, &more));
    if (!more) return FTH_OK;
    record->sides = 1;
    record->text[0] = r->words.text;
    record->length[0] = r->words.length;
    record->label = r->tags.text;
    return FTH_OK;
}

static fth_err bad_json(const fth_records *r, const char *problem) {
    return fth_fail(FTH_BAD_INPUT, "%s:%lld: %s", fth_records_file(r),
                    (long long)fth_records_line(r), problem);
}

/* The text of a JSON string with line ends and tabs as spaces: a record is one line. */
static fth_err one_line(fth_records *r, const json_t *value, const char **text, size_t *length) {
    const char *given = json_string_value(value);
    *text = given;
    *length = json_string_length(value);
    if (strcspn(given, "\n\r\t") == *length) return FTH_OK;
    char *copy = malloc(*length + 1);
    if (!copy) return fth_fail(FTH_NO_MEMORY, "no memory for a line");
    r->copies[r->n_copies++] = copy;
    memcpy(copy, given, *length + 1);
    for (char *c = copy; *c; c++)
        if (*c == '\n' || *c == '\r' || *c == '\t') *c = ' ';
    *text = copy;
    return FTH_OK;
}

static fth_err json_references(fth_records *r, fth_record *record) {
    const json_t *list = json_object_get(r->object, r->spec.keys[2]);
    char problem[160];
    size_t length;
    if (!list || json_is_null(list)) return FTH_OK;
    snprintf(problem, sizeof problem, "'%.80s' is not a list of at most %d strings",
             r->spec.keys[2], FTH_MAX_REFERENCES);
    if (!json_is_array(list) || json_array_size(list) > FTH_MAX_REFERENCES)
        return bad_json(r, problem);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_string(value)) return bad_json(r, problem);
        FTH_TRY(one_line(r, value, &record->references[i], &length));
    }
    record->n_references = (int)json_array_size(list);
    return FTH_OK;
}

static fth_err json_side(fth_records *r, int side, fth_record *record) {
    const json_t *value = json_object_get(r->object, r->spec.keys[side]);
    char problem[160];
    if (!json_is_string(value)) {
        snprintf(problem, sizeof problem, "'%.80s' %s", r->spec.keys[side],
                 value ? "is not a string" : "is missing");
        return bad_json(r, problem);
    }
    return one_line(r, value, &record->text[side], &record->length[side]);
}

static fth_err next_json(fth_records *r, fth_record *record) {
    const char *line;
    size_t length;
    json_error_t error;
    char problem[JSON_ERROR_TEXT_LENGTH + 16];
    FTH_TRY(fth_lines_next(r->lines[0], &line, &length));
    if (!line) return FTH_OK;
    r->object = fth_json_read(line, length, &error);
    if (!r->object && json_error_code(&error) == json_error_out_of_memory)
        return fth_fail(FTH_NO_MEMORY, "%s: no memory for a line", fth_lines_file(r->lines[0]));
    if (!r->object) {
        snprintf(problem, sizeof problem, "not JSON: %s", error.text);
        return bad_json(r, problem);
    }
    if (!json_is_object(r->object)) return bad_json(r, "not a JSON object");
    record->sides = 2;
    FTH_TRY(json_side(r, 0, record));
    FTH_TRY(json_side(r, 1, record));
    return json_references(r, record);
}

fth_err fth_records_next(fth_records *r, fth_record *record) {
    forget_json(r);
    *record = (fth_record){0};
    switch (r->spec.kind) {
    case FTH_TEXT_PARALLEL: return next_parallel(r, record);
    case FTH_TEXT_DIRECTIONS: return next_of_directions(r, record);
    case FTH_TEXT_TSV: return next_tsv(r, record);
    case FTH_TEXT_JSONL: return next_json(r, record);
    case FTH_TEXT_PLAIN: return next_plain(r, record);
    case FTH_TEXT_COLUMNS: return next_columns(r, record);
    case FTH_TEXT_TAGGED: return next_tagged(r, record);
    case FTH_TEXT_NONE: break;
    }
    return FTH_OK;
}
