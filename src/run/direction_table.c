/* direction_table.c: makes the rows, then prints them in the form asked for. */
#include "run/direction_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

enum { MEANS = 4, SCORES = 3 };

static const char *const score_names[SCORES] = {"BLEU", "chrF", "spBLEU"};

typedef struct row {
    char name[64];
    int64_t sentences;
    int32_t directions; /* of a mean; 0: one direction */
    double score[SCORES];
} row;

typedef struct table {
    row *rows; /* [n] */
    size_t n;
} table;

static bool belongs(const fth_direction_scores *s, const fth_languages *l, int32_t k, int mean,
                    const char *centre) {
    if (s->of[k].trained != (mean < 3)) return false;
    if (mean == 0) return strcmp(fth_languages_source(l, k), centre) == 0;
    if (mean == 1) return strcmp(fth_languages_target(l, k), centre) == 0;
    return true;
}

static void take_scores(const fth_direction_score *s, double *out) {
    out[0] = s->bleu;
    out[1] = s->chrf;
    out[2] = s->spbleu;
}

/* The mean of some directions, at the end of the table where there is any. */
static void add_mean(table *t, const fth_direction_scores *s, const fth_languages *l, int mean,
                     const char *centre) {
    row *r = &t->rows[t->n];
    *r = (row){0};
    for (int32_t k = 0; k < s->n; k++) {
        double one[SCORES];
        if (!s->of[k].sentences || !belongs(s, l, k, mean, centre)) continue;
        take_scores(&s->of[k], one);
        for (int i = 0; i < SCORES; i++) r->score[i] += one[i];
        r->sentences += s->of[k].sentences;
        r->directions++;
    }
    if (!r->directions) return;
    for (int i = 0; i < SCORES; i++) r->score[i] /= r->directions;
    if (mean < 2)
        snprintf(r->name, sizeof r->name, mean ? "X-%s" : "%s-X", centre);
    else
        snprintf(r->name, sizeof r->name, mean == 2 ? "all" : "zero-shot");
    t->n++;
}

static fth_err make_rows(table *t, const fth_direction_scores *s, const fth_languages *l,
                         const char *centre) {
    t->rows = calloc((size_t)s->n + MEANS, sizeof *t->rows);
    if (!t->rows) return fth_fail(FTH_NO_MEMORY, "no memory for a table of directions");
    for (int32_t k = 0; k < s->n; k++) {
        if (!s->of[k].sentences) continue;
        row *r = &t->rows[t->n++];
        *r = (row){.sentences = s->of[k].sentences};
        snprintf(r->name, sizeof r->name, "%s%s", fth_languages_name(l, k).text,
                 s->of[k].trained ? "" : " (zero-shot)");
        take_scores(&s->of[k], r->score);
    }
    for (int mean = 0; mean < MEANS; mean++) add_mean(t, s, l, mean, centre);
    return FTH_OK;
}

/* ---- forms ---- */

static fth_err print_text(const table *t, fth_str *out) {
    FTH_TRY(fth_str_addf(out, "%-24s %9s", "direction", "sentences"));
    for (int i = 0; i < SCORES; i++) FTH_TRY(fth_str_addf(out, " %7s", score_names[i]));
    FTH_TRY(fth_str_addf(out, "\n"));
    for (size_t k = 0; k < t->n; k++) {
        const row *r = &t->rows[k];
        if (r->directions && (k == 0 || !t->rows[k - 1].directions))
            FTH_TRY(fth_str_addf(out, "means over directions\n"));
        FTH_TRY(fth_str_addf(out, "%-24s %9lld", r->name, (long long)r->sentences));
        for (int i = 0; i < SCORES; i++) FTH_TRY(fth_str_addf(out, " %7.2f", r->score[i]));
        FTH_TRY(fth_str_addf(out, "\n"));
    }
    return FTH_OK;
}

/* CSV, Markdown and LaTeX differ in what stands around and between. */
typedef struct form {
    const char *head, *begin, *between, *end, *rule, *foot;
    int digits;
} form;

static const form forms[] = {
    [FTH_TABLE_CSV] = {"", "", ",", "\n", "", "", 4},
    [FTH_TABLE_MARKDOWN] = {"", "| ", " | ", " |\n", "| --- | ---: | ---: | ---: | ---: | ---: |\n",
                            "", 2},
    [FTH_TABLE_LATEX] = {"\\begin{tabular}{lrrrrr}\n\\hline\n", "", " & ", " \\\\\n", "\\hline\n",
                         "\\hline\n\\end{tabular}\n", 2},
};

static fth_err print_form(const table *t, const form *f, fth_str *out) {
    FTH_TRY(fth_str_addf(out, "%s%sdirection%sdirections%ssentences", f->head, f->begin, f->between,
                         f->between));
    for (int i = 0; i < SCORES; i++) FTH_TRY(fth_str_addf(out, "%s%s", f->between, score_names[i]));
    FTH_TRY(fth_str_addf(out, "%s%s", f->end, f->rule));
    for (size_t k = 0; k < t->n; k++) {
        const row *r = &t->rows[k];
        FTH_TRY(fth_str_addf(out, "%s%s%s%d%s%lld", f->begin, r->name, f->between,
                             r->directions ? r->directions : 1, f->between,
                             (long long)r->sentences));
        for (int i = 0; i < SCORES; i++)
            FTH_TRY(fth_str_addf(out, "%s%.*f", f->between, f->digits, r->score[i]));
        FTH_TRY(fth_str_addf(out, "%s", f->end));
    }
    return fth_str_addf(out, "%s", f->foot);
}

static fth_err print_json(const table *t, fth_str *out) {
    json_t *of = json_object(), *means = json_object();
    for (size_t k = 0; k < t->n; k++) {
        const row *r = &t->rows[k];
        json_t *one = json_pack("{s:I}", "sentences", (json_int_t)r->sentences);
        static const char *const keys[SCORES] = {"bleu", "chrf", "spbleu"};
        if (r->directions) json_object_set_new(one, "directions", json_integer(r->directions));
        for (int i = 0; i < SCORES; i++)
            json_object_set_new(one, keys[i], fth_json_number(r->score[i]));
        json_object_set_new(r->directions ? means : of, r->name, one);
    }
    json_t *all = json_pack("{s:o, s:o}", "directions", of, "means", means);
    fth_err err =
        all ? fth_json_write(all, 0, out) : fth_fail(FTH_NO_MEMORY, "no memory for a JSON object");
    json_decref(all);
    return err == FTH_OK ? fth_str_add(out, "\n", 1) : err;
}

fth_err fth_direction_table(const fth_direction_scores *s, const fth_languages *l,
                            const char *centre, fth_table_format format, fth_str *out) {
    table t = {0};
    fth_err err = make_rows(&t, s, l, centre);
    if (err == FTH_OK)
        err = format == FTH_TABLE_TEXT   ? print_text(&t, out)
              : format == FTH_TABLE_JSON ? print_json(&t, out)
                                         : print_form(&t, &forms[format], out);
    free(t.rows);
    return err;
}
