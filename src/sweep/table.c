/* table.c: the same rows as CSV, Markdown and LaTeX; seeds of one setting come together as mean and
 * deviation. */
#include "sweep/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum style { CSV, MARKDOWN, LATEX } style;

const char *fth_sweep_table_value(const fth_sweep_results *r, const fth_sweep_run *run,
                                  size_t factor) {
    int32_t at = run->choice[factor];
    if (at < 0) return "";
    return r->spec->factor[factor].value[at];
}

bool fth_factor_is_depth(const fth_factor *f) {
    for (size_t i = 0; i < f->n_options; i++)
        if (strcmp(f->option[i], "encoder-layers") == 0 ||
            strcmp(f->option[i], "decoder-layers") == 0)
            return true;
    return false;
}

bool fth_sweep_table_same(const fth_sweep_results *r, size_t row_a, size_t row_b,
                          const bool *skip) {
    const int32_t *a = r->row[row_a].run->choice, *b = r->row[row_b].run->choice;
    for (size_t i = 0; i < r->spec->n_factors; i++)
        if (!(skip && skip[i]) && a[i] != b[i]) return false;
    return true;
}

/* ---- cells ---- */

static fth_err add_csv_text(fth_str *out, const char *text) {
    if (!text[strcspn(text, ",\"\n\r")]) return fth_str_addf(out, "%s", text);
    FTH_TRY(fth_str_add(out, "\"", 1));
    for (; *text; text++) FTH_TRY(fth_str_addf(out, *text == '"' ? "\"%c" : "%c", *text));
    return fth_str_add(out, "\"", 1);
}

static fth_err add_latex_text(fth_str *out, const char *text) {
    for (; *text; text++) {
        if (strchr("_%&#${}", *text))
            FTH_TRY(fth_str_addf(out, "\\%c", *text));
        else if (strchr("\\^~", *text))
            FTH_TRY(fth_str_addf(out, "\\char`\\%c{}", *text));
        else
            FTH_TRY(fth_str_add(out, text, 1));
    }
    return FTH_OK;
}

static fth_err add_markdown_text(fth_str *out, const char *text) {
    for (; *text; text++)
        FTH_TRY(fth_str_addf(out, *text == '|' ? "\\%c" : "%c", *text == '\n' ? ' ' : *text));
    return FTH_OK;
}

static fth_err add_text(fth_str *out, style s, const char *text) {
    return s == CSV     ? add_csv_text(out, text)
           : s == LATEX ? add_latex_text(out, text)
                        : add_markdown_text(out, text);
}

static fth_err add_number(fth_str *out, double x) {
    return isnan(x) ? FTH_OK : fth_str_addf(out, "%.6g", x);
}

/* Mean and deviation for people. */
static fth_err add_digits(fth_str *out, style s, const fth_spread *x, int digits, bool failed) {
    if (x->n == 0) return fth_str_addf(out, failed ? "failed" : s == LATEX ? "--" : "");
    if (isnan(x->deviation)) return fth_str_addf(out, "%.*f", digits, x->mean);
    return fth_str_addf(out, s == LATEX ? "$%.*f \\pm %.*f$" : "%.*f ± %.*f", digits, x->mean,
                        digits, x->deviation);
}

static fth_err add_spread(fth_str *out, style s, const fth_spread *x, bool failed) {
    return add_digits(out, s, x, 4, failed);
}

/* Scores up to 100 with two digits, anything else with four. */
static int digits_of(const fth_measure *m) {
    static const char *const hundreds[] = {"bleu", "multi-bleu", "chrf", "ter"};
    for (size_t i = 0; m->metric && i < sizeof hundreds / sizeof *hundreds; i++)
        if (strcmp(m->metric, hundreds[i]) == 0) return 2;
    return 4;
}

static fth_err separate(fth_str *out, style s, bool first) {
    static const char *const between[] = {",", " | ", " & "};
    if (!first) return fth_str_addf(out, "%s", between[s]);
    return s == MARKDOWN ? fth_str_addf(out, "| ") : FTH_OK;
}

static fth_err end_line(fth_str *out, style s) {
    static const char *const ends[] = {"\n", " |\n", " \\\\\n"};
    return fth_str_addf(out, "%s", ends[s]);
}

/* ---- lines ---- */

/* The axes of the grid: their names without a row, their values with one. */
static fth_err add_axes(const fth_sweep_results *r, const fth_sweep_run *run, style s, fth_str *out,
                        const bool *skip, bool *first) {
    for (size_t i = 0; i < r->spec->n_factors; i++) {
        const fth_factor *f = &r->spec->factor[i];
        if (!fth_factor_varies(f) || (skip && skip[i])) continue;
        FTH_TRY(separate(out, s, *first));
        FTH_TRY(add_text(out, s, run ? fth_sweep_table_value(r, run, i) : f->label));
        *first = false;
    }
    return FTH_OK;
}

static fth_err add_words(fth_str *out, style s, const char *const *words, bool first) {
    for (; *words; words++, first = false) {
        FTH_TRY(separate(out, s, first));
        FTH_TRY(add_text(out, s, *words));
    }
    return FTH_OK;
}

/* Columns of the measures: their names without a row, their values with one. */
static fth_err add_measures(const fth_sweep_results *r, const fth_sweep_row *row, style s,
                            fth_str *out) {
    for (size_t i = 0; i < r->spec->n_measures; i++) {
        const fth_measure *m = &r->spec->measure[i];
        FTH_TRY(separate(out, s, false));
        if (!row && s == CSV)
            FTH_TRY(fth_str_addf(out, "%s_mean,%s_dev,%s_p", m->name, m->name, m->name));
        else if (!row)
            FTH_TRY(add_text(out, s, m->name));
        else if (s == CSV) {
            FTH_TRY(add_number(out, row->measure[i].mean));
            FTH_TRY(fth_str_addf(out, ","));
            FTH_TRY(add_number(out, row->measure[i].deviation));
            FTH_TRY(fth_str_addf(out, ","));
            FTH_TRY(add_number(out, row->p[i]));
        } else {
            FTH_TRY(add_digits(out, s, &row->measure[i], digits_of(m), false));
            if (!isnan(row->p[i])) FTH_TRY(fth_str_addf(out, " (p %.3f)", row->p[i]));
        }
    }
    return FTH_OK;
}

static fth_err add_head(const fth_sweep_results *r, style s, fth_str *out) {
    static const char *const csv[] = {"runs",      "done",        "failed",
                                      "best_mean", "best_dev",    "final_mean",
                                      "final_dev", "failed_last", NULL};
    static const char *const people[] = {"runs",          "failed",         "best dev NLL",
                                         "final dev NLL", "last of failed", NULL};
    bool first = true;
    FTH_TRY(add_axes(r, NULL, s, out, NULL, &first));
    FTH_TRY(add_words(out, s, s == CSV ? csv : people, first));
    return add_measures(r, NULL, s, out);
}

/* "3", or "2/3" while runs are missing. */
static fth_err add_count(fth_str *out, const fth_sweep_row *row) {
    if (row->done == row->runs) return fth_str_addf(out, "%zu", row->runs);
    return fth_str_addf(out, "%zu/%zu", row->done, row->runs);
}

static fth_err add_row(const fth_sweep_results *r, const fth_sweep_row *row, style s,
                       fth_str *out) {
    bool first = true, failed = row->failed > 0 && row->failed == row->done;
    FTH_TRY(add_axes(r, row->run, s, out, NULL, &first));
    FTH_TRY(separate(out, s, first));
    if (s == CSV) {
        const double numbers[] = {row->best.mean, row->best.deviation, row->final.mean,
                                  row->final.deviation, row->last.mean};
        FTH_TRY(fth_str_addf(out, "%zu,%zu,%zu", row->runs, row->done, row->failed));
        for (int i = 0; i < 5; i++) {
            FTH_TRY(fth_str_addf(out, ","));
            FTH_TRY(add_number(out, numbers[i]));
        }
        FTH_TRY(add_measures(r, row, s, out));
        return end_line(out, s);
    }
    FTH_TRY(add_count(out, row));
    FTH_TRY(separate(out, s, false));
    FTH_TRY(fth_str_addf(out, "%zu", row->failed));
    FTH_TRY(separate(out, s, false));
    FTH_TRY(add_spread(out, s, &row->best, failed));
    FTH_TRY(separate(out, s, false));
    FTH_TRY(add_spread(out, s, &row->final, failed));
    FTH_TRY(separate(out, s, false));
    FTH_TRY(add_spread(out, s, &row->last, false));
    FTH_TRY(add_measures(r, row, s, out));
    return end_line(out, s);
}

static size_t count_axes(const fth_sweep_results *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->spec->n_factors; i++) n += fth_factor_varies(&r->spec->factor[i]);
    return n;
}

/* ---- tables ---- */

fth_err fth_sweep_table_csv(const fth_sweep_results *r, fth_str *out) {
    FTH_TRY(add_head(r, CSV, out));
    FTH_TRY(end_line(out, CSV));
    for (size_t i = 0; i < r->grid->rows; i++) FTH_TRY(add_row(r, &r->row[i], CSV, out));
    return FTH_OK;
}

fth_err fth_sweep_table_markdown(const fth_sweep_results *r, fth_str *out) {
    size_t axes = count_axes(r), fits;
    FTH_TRY(add_head(r, MARKDOWN, out));
    FTH_TRY(end_line(out, MARKDOWN));
    for (size_t i = 0; i < axes + 5 + r->spec->n_measures; i++)
        FTH_TRY(fth_str_addf(out, i < axes ? "| --- " : "| ---: "));
    FTH_TRY(fth_str_addf(out, "|\n"));
    for (size_t i = 0; i < r->grid->rows; i++) FTH_TRY(add_row(r, &r->row[i], MARKDOWN, out));
    FTH_TRY(fth_str_addf(out, "\nNLL in nats per token: mean ± deviation over the seeds that did "
                              "not fail, and the last number of those that did.\n"));
    if (r->spec->n_baseline > 0)
        FTH_TRY(fth_str_addf(out, "\np: how often random exchanges of lines between a row and its "
                                  "baseline differ as much.\n"));
    fth_str fit = {0};
    fth_err err = fth_sweep_table_fits(r, true, &fit, &fits);
    if (err == FTH_OK && fits > 0) err = fth_str_addf(out, "\n%s", fit.text);
    fth_str_fini(&fit);
    return err;
}

fth_err fth_sweep_table_latex(const fth_sweep_results *r, fth_str *out) {
    size_t axes = count_axes(r);
    FTH_TRY(fth_str_addf(out, "\\begin{tabular}{"));
    for (size_t i = 0; i < axes; i++) FTH_TRY(fth_str_add(out, "l", 1));
    for (size_t i = 0; i < 5 + r->spec->n_measures; i++) FTH_TRY(fth_str_add(out, "r", 1));
    FTH_TRY(fth_str_addf(out, "}\n\\hline\n"));
    FTH_TRY(add_head(r, LATEX, out));
    FTH_TRY(end_line(out, LATEX));
    FTH_TRY(fth_str_addf(out, "\\hline\n"));
    for (size_t i = 0; i < r->grid->rows; i++) FTH_TRY(add_row(r, &r->row[i], LATEX, out));
    return fth_str_addf(out, "\\hline\n\\end{tabular}\n");
}

fth_err fth_sweep_table_runs(const fth_sweep_results *r, fth_str *out) {
    static const char *const head[] = {"seed", "state",  "update", "best", "final",
                                       "last", "reason", "folder", NULL};
    bool first = true;
    FTH_TRY(add_axes(r, NULL, CSV, out, NULL, &first));
    FTH_TRY(add_words(out, CSV, head, first));
    for (size_t m = 0; m < r->spec->n_measures; m++)
        FTH_TRY(fth_str_addf(out, ",%s", r->spec->measure[m].name));
    FTH_TRY(end_line(out, CSV));
    for (size_t i = 0; i < r->grid->n; i++) {
        const fth_sweep_run *run = &r->grid->run[i];
        const fth_sweep_result *x = &r->result[i];
        const char *state =
            x->state == FTH_VIEW_MISSING ? "not begun" : fth_run_view_state_name(x->state);
        first = true;
        FTH_TRY(add_axes(r, run, CSV, out, NULL, &first));
        FTH_TRY(fth_str_addf(out, "%s%s,%s,%lld,", first ? "" : ",", run->seed, state,
                             (long long)x->update));
        FTH_TRY(add_number(out, x->best));
        FTH_TRY(fth_str_addf(out, ","));
        FTH_TRY(add_number(out, x->final));
        FTH_TRY(fth_str_addf(out, ","));
        FTH_TRY(add_number(out, x->last));
        FTH_TRY(fth_str_addf(out, ","));
        FTH_TRY(add_csv_text(out, x->reason ? x->reason : ""));
        FTH_TRY(fth_str_addf(out, ",runs/%s", run->name));
        for (size_t m = 0; m < r->spec->n_measures; m++) {
            FTH_TRY(fth_str_addf(out, ","));
            FTH_TRY(add_number(out, x->measure[m]));
        }
        FTH_TRY(end_line(out, CSV));
    }
    return FTH_OK;
}

/* ---- fits ---- */

/* The fit through all rows that are like this one but for the depth; n = 0 when there is none, or
 * when an earlier row has given it already. */
static fth_err fit_group(const fth_sweep_results *r, size_t row, const bool *skip, fth_fit *fit) {
    double *depth = calloc(2 * r->grid->rows + 1, sizeof *depth);
    *fit = (fth_fit){0};
    if (!depth) return fth_fail(FTH_NO_MEMORY, "no memory for a fit");
    double *y = depth + r->grid->rows;
    size_t n = 0;
    bool fresh = true;
    for (size_t i = 0; i < r->grid->rows; i++) {
        if (!fth_sweep_table_same(r, row, i, skip)) continue;
        fresh = fresh && i >= row;
        if (r->row[i].best.n == 0 || !(r->row[i].depth > 0)) continue;
        depth[n] = r->row[i].depth;
        y[n++] = -r->row[i].best.mean;
    }
    if (fresh && fth_fit_depth(depth, y, n, fit) != FTH_OK) *fit = (fth_fit){0};
    free(depth);
    return FTH_OK;
}

static fth_err fit_line(const fth_sweep_results *r, size_t row, const bool *skip, style s,
                        const fth_fit *fit, fth_str *out) {
    bool first = true;
    const double numbers[] = {fit->a, fit->b, fit->r2};
    FTH_TRY(add_axes(r, r->row[row].run, s, out, skip, &first));
    FTH_TRY(separate(out, s, first));
    FTH_TRY(fth_str_addf(out, "%zu", fit->n));
    for (int i = 0; i < 3; i++) {
        FTH_TRY(separate(out, s, false));
        FTH_TRY(add_number(out, numbers[i]));
    }
    return end_line(out, s);
}

static fth_err fit_head(const fth_sweep_results *r, const bool *skip, style s, fth_str *out) {
    static const char *const head[] = {"points", "A", "B", "R2", NULL};
    bool first = true;
    if (s == MARKDOWN)
        FTH_TRY(fth_str_addf(out, "Scaling law: minus best dev NLL = A ln(depth) + B, depth = "
                                  "encoder plus decoder layers.\n\n"));
    FTH_TRY(add_axes(r, NULL, s, out, skip, &first));
    FTH_TRY(add_words(out, s, head, first));
    FTH_TRY(end_line(out, s));
    for (size_t i = 0; s == MARKDOWN && i < r->spec->n_factors; i++)
        if (fth_factor_varies(&r->spec->factor[i]) && !skip[i])
            FTH_TRY(fth_str_addf(out, "| --- "));
    return s == MARKDOWN ? fth_str_addf(out, "| ---: | ---: | ---: | ---: |\n") : FTH_OK;
}

fth_err fth_sweep_table_fits(const fth_sweep_results *r, bool markdown, fth_str *out, size_t *n) {
    style s = markdown ? MARKDOWN : CSV;
    bool *skip = calloc(r->spec->n_factors + 1, sizeof *skip), varies = false;
    *n = 0;
    if (!skip) return fth_fail(FTH_NO_MEMORY, "no memory for a fit");
    for (size_t i = 0; i < r->spec->n_factors; i++) {
        skip[i] = fth_factor_is_depth(&r->spec->factor[i]);
        varies = varies || (skip[i] && fth_factor_varies(&r->spec->factor[i]));
    }
    fth_err err = FTH_OK;
    for (size_t i = 0; varies && i < r->grid->rows && err == FTH_OK; i++) {
        fth_fit fit;
        err = fit_group(r, i, skip, &fit);
        if (err != FTH_OK || fit.n == 0) continue;
        if ((*n)++ == 0) err = fit_head(r, skip, s, out);
        if (err == FTH_OK) err = fit_line(r, i, skip, s, &fit, out);
    }
    free(skip);
    return err;
}
