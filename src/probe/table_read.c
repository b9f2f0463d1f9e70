/* table_read.c: reads the CSV back, for figures of files that were made elsewhere, and names the
 * line that is wrong. */
#include "probe/table_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { HEAD = 7, MOST = HEAD + 1 + FTH_PROBE_NUMBERS }; /* columns that all have; of any row */

/* A file while it is read. */
typedef struct reading {
    const char *file;
    int64_t line;
    fth_table *t;
    bool series;
    int64_t first; /* row that the subject at hand began with */
    bool begun;    /* there is one */
} reading;

static fth_err wrong(const reading *r, const char *rule, const char *value) {
    return fth_fail(FTH_BAD_INPUT, "%s:%lld: %.60s: %s", r->file, (long long)r->line, value, rule);
}

/* Cuts a line at its commas; the number of parts. Those that it has not are empty. */
static int cut(char *line, char **part, int most) {
    char *end = line + strlen(line);
    for (int i = 0; i < most; i++) part[i] = end;
    int n = 0;
    for (char *at = line; n < most; n++) {
        char *comma = strchr(at, ',');
        part[n] = at;
        if (!comma) return n + 1;
        *comma = 0;
        at = comma + 1;
    }
    return most + 1;
}

static fth_err whole(const reading *r, const char *text, int64_t most, int64_t *out) {
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (end == text || *end || errno || *out < 0 || *out > most)
        return wrong(r, "is no whole number of the right size", text);
    return FTH_OK;
}

static fth_err number(const reading *r, const char *text, double *out) {
    char *end;
    *out = strtod(text, &end); /* nan, inf and -inf as well */
    return end == text || *end ? wrong(r, "is no number", text) : FTH_OK;
}

/* The table's own copy of a word. */
static fth_err keep_word(fth_table *t, const char *text, const char **out) {
    for (int32_t i = 0; i < t->n_words; i++) {
        *out = t->word[i];
        if (strcmp(*out, text) == 0) return FTH_OK;
    }
    char **more = realloc(t->word, sizeof *more * (size_t)(t->n_words + 1));
    char *copy = strdup(text);
    if (more) t->word = more;
    if (!more || !copy) {
        free(copy);
        return fth_fail(FTH_NO_MEMORY, "no memory for a word");
    }
    *out = t->word[t->n_words++] = copy;
    return FTH_OK;
}

static bool same_model(const fth_probe_name *a, const fth_probe_name *b) {
    return strcmp(a->method, b->method) == 0 && a->d == b->d &&
           memcmp(a->layers, b->layers, sizeof a->layers) == 0;
}

/* Does the row say what the first one of its subject said already? Places and similarity have a
 * place of their own in their first number. */
static bool begins_again(const reading *r, const fth_probe_row *row) {
    const fth_probe_row *first = &r->t->row[r->first];
    bool placed =
        strncmp(r->t->columns, "place,", 6) == 0 || strncmp(r->t->columns, "other,", 6) == 0;
    return row->step == first->step && row->stack == first->stack && row->index == first->index &&
           row->word == first->word && (!placed || row->number[0] == first->number[0]);
}

static fth_err add_row(reading *r, const fth_probe_name *name, fth_probe_row row) {
    fth_table *t = r->t;
    bool fresh = !r->begun || !same_model(name, &t->subject[t->n_subjects - 1]) ||
                 (!r->series && row.step != t->row[r->first].step) || begins_again(r, &row);
    if (fresh) {
        fth_config c = {.encoder_layers = name->layers[FTH_ENCODER],
                        .decoder_layers = name->layers[FTH_DECODER],
                        .d_model = name->d};
        memcpy(c.method, name->method, sizeof name->method);
        FTH_TRY(fth_table_subject(t, name->method, &c));
        r->first = t->n;
        r->begun = true;
    }
    return fth_table_add(t, row);
}

static fth_err read_row(reading *r, char *line) {
    fth_table *t = r->t;
    char *part[MOST];
    int64_t head[5]; /* N, M, d, step, index */
    fth_probe_name name = {0};
    fth_probe_row row = {0};
    int own = HEAD + (t->has_word ? 1 : 0), n = cut(line, part, MOST);
    if (n != own + t->n_numbers) return wrong(r, "has not the columns of the first line", line);
    if (!part[0][0] || strlen(part[0]) >= sizeof name.method)
        return wrong(r, "is no method", part[0]);
    memcpy(name.method, part[0], strlen(part[0]) + 1);
    for (int i = 0; i < 4; i++)
        FTH_TRY(whole(r, part[i + 1], i == 3 ? INT64_MAX : INT32_MAX, &head[i]));
    FTH_TRY(whole(r, part[6], INT32_MAX, &head[4]));
    name.layers[FTH_ENCODER] = (int32_t)head[0];
    name.layers[FTH_DECODER] = (int32_t)head[1];
    name.d = (int32_t)head[2];
    row.step = head[3];
    row.index = (int32_t)head[4];
    row.stack = strcmp(part[5], fth_stack_name(FTH_ENCODER)) == 0 ? FTH_ENCODER : FTH_DECODER;
    if (strcmp(part[5], fth_stack_name(row.stack)) != 0)
        return wrong(r, "must be encoder or decoder", part[5]);
    if (t->has_word) FTH_TRY(keep_word(t, part[HEAD], &row.word));
    for (int i = 0; i < t->n_numbers; i++) FTH_TRY(number(r, part[own + i], &row.number[i]));
    return add_row(r, &name, row);
}

static fth_err read_lines(reading *r, char *text) {
    char *head = fth_strdup_printf(FTH_TABLE_HEAD "%s", r->t->columns);
    fth_err err = head ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a line");
    for (char *at = text; *at && err == FTH_OK;) {
        size_t length = strcspn(at, "\n");
        char *next = at[length] ? at + length + 1 : at + length;
        at[length] = 0;
        if (length && at[length - 1] == '\r') at[length - 1] = 0;
        r->line++;
        if (r->line > 1 && at[0])
            err = read_row(r, at);
        else if (r->line == 1 && strcmp(at, head) != 0)
            err = fth_fail(FTH_BAD_INPUT, "%s:1: %.80s: must be %s", r->file, at, head);
        at = next;
    }
    if (err == FTH_OK && !r->begun) err = fth_fail(FTH_BAD_INPUT, "%s: has no rows", r->file);
    free(head);
    return err;
}

fth_err fth_table_read(fth_table *t, const char *file, bool series) {
    reading r = {.file = file, .t = t, .series = series};
    char *text = NULL;
    size_t size = 0;
    FTH_TRY(fth_file_read(file, &text, &size));
    fth_err err = strlen(text) == size
                      ? read_lines(&r, text)
                      : fth_fail(FTH_BAD_INPUT, "%s: is no text: has a zero byte", file);
    free(text);
    return err;
}

/* ---- names ---- */

/* Step of a subject's last row. */
static int64_t last_step(const fth_table *t, int32_t subject) {
    int64_t step = 0;
    for (int64_t i = 0; i < t->n; i++)
        if (t->row[i].subject == subject) step = t->row[i].step;
    return step;
}

static fth_err name_subject(fth_table *t, int32_t i, bool series) {
    const fth_probe_name *s = &t->subject[i];
    fth_str label = {0};
    bool widths = false, steps = false;
    int32_t same = 0, before = 0; /* subjects that are told apart by a number alone */
    for (int32_t k = 0; k < t->n_subjects; k++) {
        const fth_probe_name *o = &t->subject[k];
        widths = widths || o->d != s->d;
        if (!same_model(s, o)) continue;
        bool other_step = !series && last_step(t, k) != last_step(t, i);
        steps = steps || other_step;
        same += !other_step;
        before += !other_step && k < i;
    }
    fth_err err = fth_str_addf(&label, "%s ", s->method);
    if (err == FTH_OK && s->layers[0] && s->layers[1])
        err = fth_str_addf(&label, "%d-%d", s->layers[0], s->layers[1]);
    else if (err == FTH_OK)
        err = fth_str_addf(&label, "%d", s->layers[0] + s->layers[1]);
    if (err == FTH_OK && widths) err = fth_str_addf(&label, " d%d", s->d);
    if (err == FTH_OK && steps)
        err = fth_str_addf(&label, ", update %lld", (long long)last_step(t, i));
    if (err == FTH_OK && same > 1) err = fth_str_addf(&label, " (%d)", before + 1);
    if (err != FTH_OK) {
        fth_str_fini(&label);
        return err;
    }
    free(t->subject[i].label);
    t->subject[i].label = label.text;
    return FTH_OK;
}

fth_err fth_table_name_subjects(fth_table *t, bool series) {
    for (int32_t i = 0; i < t->n_subjects; i++) FTH_TRY(name_subject(t, i, series));
    return FTH_OK;
}
