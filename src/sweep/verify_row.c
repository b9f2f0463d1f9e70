/* verify_row.c: a sweep of one row in a folder of its own, beside which the numbers of the old one
 * are put. */
#include "sweep/verify_row.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* An empty folder in which the test texts of a corpus are found as in OUT. */
static fth_err make_folder(const fth_sweep_spec *s, const char *folder) {
    FTH_TRY(fth_remove_tree(folder));
    FTH_TRY(fth_make_dirs(folder));
    if (!s->has_corpus) return FTH_OK;
    char *text = fth_strdup_printf("%s/text", folder);
    fth_err err = text ? FTH_OK : fth_no_memory("a row of a sweep");
    if (err == FTH_OK && symlink("../text", text) != 0)
        err = fth_fail(FTH_IO, "%s: cannot be linked: %s", text, strerror(errno));
    free(text);
    return err;
}

static fth_err compare(const char *run, const char *what, double was, double is, fth_str *out,
                       double *worst) {
    if (isnan(was) && isnan(is)) return FTH_OK;
    double off = fabs(is - was) / (fabs(was) + 1e-12);
    if (isnan(off)) off = INFINITY;
    if (off > *worst) *worst = off;
    return fth_str_addf(out, "%s, %s: %.6g in the table, %.6g again%s\n", run, what, was, is,
                        was == is ? ", the same" : "");
}

static fth_err compare_runs(const fth_sweep_results *was, const fth_sweep_results *is, size_t first,
                            fth_str *out, double *worst) {
    for (size_t i = 0; i < is->grid->n; i++) {
        const fth_sweep_result *a = &was->result[first + i], *b = &is->result[i];
        const char *name = is->grid->run[i].name;
        if (a->state != b->state) {
            *worst = INFINITY;
            FTH_TRY(fth_str_addf(out, "%s: %s in the table, %s again\n", name,
                                 fth_run_view_state_name(a->state),
                                 fth_run_view_state_name(b->state)));
        }
        FTH_TRY(compare(name, "best NLL", a->best, b->best, out, worst));
        FTH_TRY(compare(name, "final NLL", a->final, b->final, out, worst));
        for (size_t m = 0; m < is->spec->n_measures; m++)
            FTH_TRY(
                compare(name, is->spec->measure[m].name, a->measure[m], b->measure[m], out, worst));
    }
    return FTH_OK;
}

/* Trains, measures and reads the runs of `part` in folder. */
static fth_err make(const fth_runner *r, const fth_sweep_spec *s, const fth_sweep_grid *part,
                    const char *folder, fth_sweep_results *is) {
    size_t errors = 0;
    fth_measuring measuring = *r->measuring;
    measuring.out_dir = folder;
    fth_runner again = *r;
    again.out_dir = folder;
    again.measuring = &measuring;
    again.sweep_lock = again.runs_lock = -1;
    fth_runner whole = *r; /* holds the lock of OUT: that of the folder is removed with it */
    fth_err err = fth_runner_open(&whole);
    if (err == FTH_OK) err = make_folder(s, folder);
    if (err == FTH_OK) err = fth_runner_open(&again);
    if (err == FTH_OK) err = fth_runner_run(&again, part, &errors);
    fth_runner_close(&again);
    fth_runner_close(&whole);
    if (err == FTH_OK && errors > 0)
        err = fth_fail(FTH_FAILED,
                       "%zu of %zu runs could not be made again; their output.txt in "
                       "%s/runs says why",
                       errors, part->n, folder);
    return err == FTH_OK ? fth_sweep_results_read(s, part, folder, is) : err;
}

fth_err fth_sweep_verify_row(const fth_runner *r, const fth_sweep_spec *s, const fth_sweep_grid *g,
                             size_t row, fth_str *out, double *worst) {
    fth_sweep_results was = {0}, is = {0};
    size_t first = 0;
    fth_sweep_grid part = {.rows = g->rows};
    while (first < g->n && g->run[first].row != row) first++;
    part.run = g->run + first; /* runs of a row stand one after the other */
    while (first + part.n < g->n && g->run[first + part.n].row == row) part.n++;
    char *folder = fth_strdup_printf("%s/again", r->out_dir);
    *worst = 0;
    fth_err err =
        folder ? fth_sweep_results_read(s, g, r->out_dir, &was) : fth_no_memory("a row of a sweep");
    if (err == FTH_OK) err = make(r, s, &part, folder, &is);
    if (err == FTH_OK) err = compare_runs(&was, &is, first, out, worst);
    fth_sweep_results_fini(&was);
    fth_sweep_results_fini(&is);
    free(folder);
    return err;
}
