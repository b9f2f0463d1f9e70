/* language_sample.c: counts the training files of each language, then keeps a sample of each within
 * its share. */
#include "data/language_sample.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "base/utf8.h"
#include "text/lines.h"

/* ---- reading ---- */

/* A training file stands in every direction of its language, and is read once. */
static bool came_before(const fth_text_spec *text, size_t i, int side) {
    const char *path = text->files[side][i].path;
    for (size_t k = 0; k <= i; k++)
        for (int s = 0; s < 2; s++) {
            if (k == i && s >= side) return false;
            if (strcmp(text->files[s][k].path, path) == 0) return true;
        }
    return false;
}

static fth_err count_line(fth_language_sample *s, int32_t language, const char *text, size_t length,
                          size_t longest) {
    (void)text;
    (void)longest;
    s->bytes[language] += (int64_t)length;
    s->lines[language]++;
    return FTH_OK;
}

static fth_err keep_line(fth_language_sample *s, int32_t language, const char *text, size_t length,
                         size_t longest) {
    return fth_sample_add_cut(&s->of[language], text, length, longest, &s->cut);
}

typedef fth_err take_line(fth_language_sample *s, int32_t language, const char *text, size_t length,
                          size_t longest);

static fth_err read_file(fth_language_sample *s, const fth_text_file *file, int32_t language,
                         size_t longest, take_line *take) {
    fth_lines *lines = NULL;
    const char *line = "";
    size_t length;
    fth_err err = fth_lines_new(file, 1, &lines);
    while (err == FTH_OK) {
        FTH_TRY_OR(err, fth_lines_next(lines, &line, &length), end);
        if (!line) break;
        if (!fth_utf8_is_blank(line, length)) err = take(s, language, line, length, longest);
    }
end:
    fth_lines_free(lines);
    return err;
}

static fth_err read_all(fth_language_sample *s, const fth_languages *languages,
                        const fth_text_spec *text, size_t longest, take_line *take) {
    for (size_t i = 0; i < text->n_files[0]; i++)
        for (int side = 0; side < 2; side++) {
            const fth_direction d = languages->of[text->directions[i]];
            if (came_before(text, i, side)) continue;
            FTH_TRY(read_file(s, &text->files[side][i], side ? d.target : d.source, longest, take));
        }
    return FTH_OK;
}

/* The share of each language, of the budget or of all bytes where they are fewer. */
static void find_shares(fth_language_sample *s, double temperature, uint64_t budget) {
    double all = 0, total = 0;
    for (int32_t l = 0; l < s->n; l++) {
        all += (double)s->bytes[l];
        if (s->bytes[l]) total += pow((double)s->bytes[l], 1 / temperature);
    }
    if (all > (double)budget) all = (double)budget;
    for (int32_t l = 0; l < s->n; l++) {
        if (s->bytes[l]) s->wanted[l] = pow((double)s->bytes[l], 1 / temperature) / total * all;
        s->of[l].budget = (size_t)ceil(s->wanted[l]) + (size_t)s->lines[l] * FTH_SAMPLE_LINE;
    }
}

fth_err fth_language_sample_read(fth_language_sample *s, const fth_languages *languages,
                                 const fth_text_spec *text, uint64_t budget, size_t longest) {
    const size_t n = (size_t)languages->n_codes;
    *s = (fth_language_sample){.n = languages->n_codes};
    s->of = calloc(n, sizeof *s->of);
    s->wanted = calloc(n, sizeof *s->wanted);
    s->bytes = calloc(n, sizeof *s->bytes);
    s->lines = calloc(n, sizeof *s->lines);
    if (!s->of || !s->wanted || !s->bytes || !s->lines) return fth_no_memory("a sample of %s");
    FTH_TRY(read_all(s, languages, text, longest, count_line));
    find_shares(s, languages->temperature, budget);
    return read_all(s, languages, text, longest, keep_line);
}

/* ---- giving ---- */

/* How often a line comes: r on average. */
static int64_t copies_of(const fth_language_sample *s) {
    const fth_sample *sample = &s->of[s->at];
    const double kept = (double)(sample->size - sample->kept * FTH_SAMPLE_LINE);
    const double r = kept > 0 ? s->wanted[s->at] / kept : 0;
    uint32_t counter[4] = {(uint32_t)s->line, (uint32_t)(s->line >> 32), (uint32_t)s->at, 0};
    uint32_t out[4];
    fth_philox(UINT64_C(0x6c616e6775616765), counter, out);
    return (int64_t)floor(r) + (out[0] / 4294967296.0 < r - floor(r));
}

fth_err fth_language_sample_next(void *state, const char **text, size_t *length) {
    fth_language_sample *s = state;
    while (s->copies == 0) {
        *text = NULL;
        if (s->at == s->n) return FTH_OK;
        FTH_TRY(fth_sample_next(&s->of[s->at], &s->text, &s->length));
        if (s->text) {
            s->copies = copies_of(s);
            s->line++;
        } else {
            s->at++;
            s->line = 0;
        }
    }
    s->copies--;
    *text = s->text;
    *length = s->length;
    return FTH_OK;
}

void fth_language_sample_fini(fth_language_sample *s) {
    for (int32_t l = 0; s->of && l < s->n; l++) fth_sample_fini(&s->of[l]);
    free(s->of);
    free(s->wanted);
    free(s->bytes);
    free(s->lines);
    *s = (fth_language_sample){0};
}
