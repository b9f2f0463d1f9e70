/* budget.c: seconds of a run are those of its updates, as preflight has measured them. Measures
 * after the training are not in them. */
#include "sweep/budget.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "sweep/runner.h"
#include "sweep/table.h"

static fth_err read_seconds(const char *path, double *seconds) {
    json_t *answer;
    FTH_TRY(fth_json_load(path, &answer));
    const json_t *value = json_object_get(answer, "seconds_of_run");
    fth_err err = value ? fth_json_to_double(value, seconds)
                        : fth_fail(FTH_FAILED, "%s: has no seconds_of_run", path);
    json_decref(answer);
    return err;
}

/* `preflight` with all that the run is told; its answer goes to a file that is removed. */
static fth_err ask(const fth_measuring *m, const fth_sweep_run *run, const char *said,
                   double *seconds) {
    fth_command c = {0};
    int status = 0;
    char *answer = fth_strdup_printf("%s/.budget.json", m->out_dir);
    fth_err err =
        answer ? fth_command_add(&c, "preflight") : fth_fail(FTH_NO_MEMORY, "no memory for a name");
    if (err == FTH_OK) err = fth_command_add(&c, m->data);
    if (err == FTH_OK) err = fth_command_add(&c, "--json");
    for (size_t i = 0; i < m->n_extra && err == FTH_OK; i++) err = fth_command_add(&c, m->extra[i]);
    for (size_t i = 0; i < run->n_words && err == FTH_OK; i++)
        err = fth_command_add(&c, run->words[i]);
    if (err == FTH_OK) err = fth_runner_call(c.word, said, answer, &status);
    if (err == FTH_OK && status != 0)
        err = fth_fail(FTH_FAILED, "preflight of %s ended with status %d; %s says why", run->name,
                       status, said);
    if (err == FTH_OK) err = read_seconds(answer, seconds);
    if (answer) (void)fth_remove_tree(answer);
    fth_command_fini(&c);
    free(answer);
    return err;
}

static bool is_finished(const fth_sweep_result *r) {
    return r->state == FTH_VIEW_ENDED || r->state == FTH_VIEW_FAILED;
}

fth_err fth_sweep_budget(const fth_sweep_results *r, const fth_measuring *m, const char *said,
                         fth_budget_row *rows) {
    memset(rows, 0, r->grid->rows * sizeof *rows);
    for (size_t i = 0; i < r->grid->n; i++) {
        const fth_sweep_run *run = &r->grid->run[i];
        fth_budget_row *row = &rows[run->row];
        if (is_finished(&r->result[i])) continue;
        if (row->left++ == 0) FTH_TRY(ask(m, run, said, &row->seconds));
    }
    return FTH_OK;
}

static fth_err add_time(fth_str *out, double seconds) {
    if (seconds < 90) return fth_str_addf(out, "%.0f s", seconds);
    if (seconds < 90 * 60) return fth_str_addf(out, "%.0f minutes", seconds / 60);
    if (seconds < 48 * 3600) return fth_str_addf(out, "%.1f hours", seconds / 3600);
    return fth_str_addf(out, "%.1f days", seconds / 86400);
}

fth_err fth_sweep_budget_text(const fth_sweep_results *r, const fth_budget_row *rows, int64_t jobs,
                              fth_str *out) {
    double total = 0;
    size_t left = 0;
    for (size_t i = 0; i < r->grid->rows; i++) {
        const fth_sweep_run *run = r->row[i].run;
        for (size_t f = 0; f < r->spec->n_factors; f++)
            if (fth_factor_varies(&r->spec->factor[f]) && run->choice[f] >= 0)
                FTH_TRY(fth_str_addf(out, "%s %s, ", r->spec->factor[f].label,
                                     fth_sweep_table_value(r, run, f)));
        FTH_TRY(fth_str_addf(out, "%zu of %zu runs left", rows[i].left, r->row[i].runs));
        if (rows[i].left > 0) {
            FTH_TRY(fth_str_addf(out, ", each "));
            FTH_TRY(add_time(out, rows[i].seconds));
        }
        FTH_TRY(fth_str_addf(out, "\n"));
        left += rows[i].left;
        total += (double)rows[i].left * rows[i].seconds;
    }
    FTH_TRY(fth_str_addf(out, "%zu run%s, about ", left, left == 1 ? "" : "s"));
    FTH_TRY(add_time(out, total / (double)jobs));
    if (jobs > 1)
        FTH_TRY(fth_str_addf(out, " if %lld at a time do not slow each other down, at most ",
                             (long long)jobs));
    if (jobs > 1) FTH_TRY(add_time(out, total));
    return fth_str_addf(out, "\n");
}
