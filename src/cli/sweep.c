/* sweep.c: fathom sweep SPEC.yaml: a grid of runs, and the tables that come of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cores.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/model_options.h"
#include "figure/sweep_figure.h"
#include "cli/verb.h"
#include "sweep/verify_row.h"
#include "sweep/budget.h"
#include "sweep/data.h"
#include "sweep/paired.h"
#include "sweep/record.h"
#include "sweep/runner.h"
#include "sweep/table.h"

#define SWEEP_OPTIONS(X)                                                                           \
    X(STR, out, "", FTH_SHOWN_AS("FOLDER"),                                                        \
      "where runs and tables go; default: out of the file, or sweep/NAME for NAME.yaml")           \
    X(LIST, set, "", FTH_SHOWN_AS("KEY=VALUE"),                                                    \
      "a key of the file, with another value, as in --set max-update=100")                         \
    X(I64, jobs, "", FTH_RANGE(1, 1024), "runs at a time; default: jobs of the file, or 1")        \
    X(I64, limit, "10000", FTH_RANGE(1, 100000), "runs that a grid may have")                      \
    X(BOOL, dry_run, "false", FTH_ANY, "print the runs and do nothing")                            \
    X(BOOL, table, "false", FTH_ANY, "make the tables of what is there, without running")          \
    X(BOOL, budget, "false", FTH_ANY, "say how long the runs that are left will take, and end")    \
    X(STR, verify, "", FTH_SHOWN_AS("TABLE"),                                                      \
      "make a row of OUT/table.csv (.md, .tex) again and compare, instead of SPEC.yaml")           \
    X(I64, row, "", FTH_MIN(1), "which row --verify makes again, from 1")                          \
    X(F64, tolerance, "0", FTH_MIN(0), "how far its numbers may be off, relative to each")         \
    X(BOOL, quiet, "false", FTH_ANY, "no progress, only warnings")
FTH_OPTIONS(sweep_options, "sweep", SWEEP_OPTIONS)

typedef struct sweep {
    const sweep_options *o;
    fth_sweep_spec spec;
    fth_sweep_grid grid;
    fth_str out, data;
    fth_log log;
} sweep;

/* ---- is what the file says possible? ---- */

static fth_err check_method(const fth_factor *f, const char *id) {
    if (fth_method_find(id)) return FTH_OK;
    const char *names[64];
    size_t n = 0;
    for (const fth_method *const *m = fth_methods(); *m && n < 64; m++) names[n++] = (*m)->id;
    const char *near = fth_nearest(id, names, n);
    return fth_fail(FTH_BAD_INPUT, "%s: %s: there is no method %.40s%s%s%s", f->where, f->label, id,
                    near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* An option of a method with one of its values, by the rules of the method. */
static fth_err check_method_option(const fth_factor *f, const char *value) {
    fth_model_options o = {.arch = "encdec",
                           .head = "auto",
                           .pool = "first",
                           .adaptive_cutoffs = "",
                           .method = f->method,
                           .share = "all",
                           .activation = "relu",
                           .positions = "sinusoidal",
                           .encoder_layers = 6,
                           .decoder_layers = 6,
                           .d_model = 64,
                           .ffn_dim = 128,
                           .heads = 2,
                           .max_positions = 64,
                           .layer_norm_eps = 1e-5};
    char *pair = fth_strdup_printf("%s=%s", f->option[0], value);
    const char *items[] = {pair};
    fth_config config;
    fth_method_state state;
    o.method_option = (fth_list){items, 1};
    fth_err err =
        pair ? fth_config_from_options(&o, &config) : fth_fail(FTH_NO_MEMORY, "no memory");
    if (err == FTH_OK) err = fth_method_resolve(&config, &state);
    free(pair);
    if (err == FTH_OK || err == FTH_NO_MEMORY) return err;
    return fth_fail_in(FTH_BAD_INPUT, "%s: %s %.80s", f->where, f->label, value);
}

static fth_err check_methods(const sweep *s) {
    for (size_t i = 0; i < s->spec.n_factors; i++) {
        const fth_factor *f = &s->spec.factor[i];
        bool methods = !f->method && strcmp(f->option[0], "method") == 0;
        if (f->method) FTH_TRY(check_method(f, f->method));
        for (size_t k = 0; k < f->n; k++) {
            if (methods) FTH_TRY(check_method(f, f->value[k]));
            if (f->method) FTH_TRY(check_method_option(f, f->value[k]));
        }
    }
    return FTH_OK;
}

/* Where the option stands that a message of train begins with; the file, if it is none of ours. */
static const char *where_of(const sweep *s, const char *said) {
    const size_t n = strncmp(said, "--", 2) == 0 ? strcspn(said + 2, " :") : 0;
    for (size_t i = 0; i < s->spec.n_factors; i++)
        for (size_t k = 0; k < s->spec.factor[i].n_options && !s->spec.factor[i].method; k++) {
            const char *option = s->spec.factor[i].option[k];
            if (strlen(option) == n && strncmp(option, said + 2, n) == 0)
                return s->spec.factor[i].where;
        }
    return s->spec.file;
}

/* What train says to options that it refuses. */
static fth_err refused(const sweep *s, const char *text, int status) {
    if (strncmp(text, "fathom: ", 8) != 0)
        return fth_fail(FTH_FAILED, "%s: the options of a run cannot be checked: train, status %d",
                        s->spec.file, status);
    text += 8;
    return fth_fail(FTH_BAD_INPUT, "%s: %.*s", where_of(s, text), (int)strcspn(text, "\n"), text);
}

/* `train --dump-config` reads the options of a run as train will read them; its answer goes to a
 * file in memory, of which nothing can be left. */
static fth_err check_run(const sweep *s, const fth_sweep_run *run) {
    char name[64], *text = NULL;
    int fd = memfd_create("options", MFD_CLOEXEC), status = 0;
    size_t size = 0;
    if (fd < 0) return fth_fail(FTH_IO, "no file in memory for the options of a run");
    snprintf(name, sizeof name, "/proc/%ld/fd/%d", (long)getpid(), fd);
    const char **words = calloc(run->n_words + 4, sizeof *words);
    fth_err err = words ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a command line");
    if (err == FTH_OK) {
        words[0] = "train";
        memcpy(words + 1, run->words, run->n_words * sizeof *words);
        words[run->n_words + 1] = "--dump-config";
        err = fth_runner_call(words, name, NULL, &status);
    }
    if (err == FTH_OK && status != 0) {
        err = fth_file_read(name, &text, &size);
        if (err == FTH_OK) err = refused(s, text, status);
    }
    close(fd);
    free(text);
    free(words);
    return err;
}

/* Every value of every factor is in some run that is checked; not all runs need be. */
static fth_err check_options(const sweep *s) {
    bool **seen = calloc(s->spec.n_factors + 1, sizeof *seen);
    fth_err err = seen ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a check");
    for (size_t i = 0; i < s->spec.n_factors && err == FTH_OK; i++) {
        seen[i] = calloc(s->spec.factor[i].n, sizeof **seen);
        if (!seen[i]) err = fth_fail(FTH_NO_MEMORY, "no memory for a check");
    }
    for (size_t r = 0; r < s->grid.n && err == FTH_OK; r++) {
        bool fresh = r == 0;
        for (size_t i = 0; i < s->spec.n_factors; i++) {
            int32_t at = s->grid.run[r].choice[i];
            if (at < 0 || seen[i][at] || s->spec.factor[i].method) continue;
            fresh = seen[i][at] = true;
        }
        if (fresh) err = check_run(s, &s->grid.run[r]);
    }
    for (size_t i = 0; seen && i < s->spec.n_factors; i++) free(seen[i]);
    free(seen);
    return err;
}

/* ---- reading ---- */

static fth_err open_sweep(sweep *s, const char *file, const char *out, const char *const *set,
                          size_t n_set) {
    FTH_TRY(fth_sweep_spec_read(&s->spec, file, set, n_set));
    FTH_TRY(check_methods(s));
    FTH_TRY(fth_sweep_grid_make(&s->spec, FTH_DEFAULT_METHOD, s->o->limit, &s->grid));
    if (out[0])
        FTH_TRY(fth_str_addf(&s->out, "%s", out));
    else if (s->spec.out)
        FTH_TRY(fth_str_addf(&s->out, "%s", s->spec.out));
    else
        FTH_TRY(fth_str_addf(&s->out, "sweep/%s", s->spec.name));
    FTH_TRY(fth_sweep_data_path(&s->spec, s->out.text, &s->data));
    return check_options(s);
}

static void print_runs(const sweep *s) {
    for (size_t i = 0; i < s->grid.n; i++) {
        const fth_sweep_run *run = &s->grid.run[i];
        printf("fathom train %s --save-dir %s/runs/%s", s->data.text, s->out.text, run->name);
        for (size_t k = 0; k < run->n_words; k++) printf(" %s", run->words[k]);
        printf("\n");
    }
    fprintf(stderr, "%zu run%s, %zu line%s of the table\n", s->grid.n, s->grid.n == 1 ? "" : "s",
            s->grid.rows, s->grid.rows == 1 ? "" : "s");
}

/* ---- running ---- */

static bool is_set(const sweep *s, const char *option) {
    for (size_t i = 0; i < s->spec.n_factors; i++)
        for (size_t k = 0; k < s->spec.factor[i].n_options; k++)
            if (!s->spec.factor[i].method && strcmp(s->spec.factor[i].option[k], option) == 0)
                return true;
    return false;
}

static fth_err need(const char *where, const char *folder, const char *name, const char *rule) {
    if (fth_folder_has(folder, name)) return FTH_OK;
    return fth_fail(FTH_NOT_FOUND, "%s: %s: %s", where, folder, rule);
}

/* How runs are made, with what every one of them is told. */
typedef struct making {
    fth_runner runner;
    fth_measuring measuring;
    char threads[24];
    const char *extra[4];
} making;

static void set_making(sweep *s, making *m) {
    const int64_t jobs = s->o->jobs > 0 ? s->o->jobs : s->spec.jobs > 0 ? s->spec.jobs : 1;
    const int64_t cores = fth_cores_usable().cores;
    size_t n = 0;
    snprintf(m->threads, sizeof m->threads, "%" PRId64, cores > jobs ? cores / jobs : 1);
    if (!is_set(s, "threads")) {
        m->extra[n++] = "--threads";
        m->extra[n++] = m->threads;
    }
    if (!is_set(s, "judge-after")) { /* a shorter run has not failed for having learned little */
        m->extra[n++] = "--judge-after";
        m->extra[n++] = "200";
    }
    m->measuring = (fth_measuring){&s->spec, s->out.text, s->data.text, m->extra, n};
    m->runner = (fth_runner){.out_dir = s->out.text,
                             .data = s->data.text,
                             .jobs = (int)jobs,
                             .gpus = s->spec.gpus,
                             .n_gpus = s->spec.n_gpus,
                             .extra = m->extra,
                             .n_extra = n,
                             .measuring = &m->measuring,
                             .sweep_lock = -1,
                             .runs_lock = -1,
                             .log = &s->log};
}

/* With the folder's lock held: its data set is there, and its record. */
static fth_err open_folder(sweep *s, making *m) {
    if (s->spec.data)
        FTH_TRY(need(s->spec.data_where, s->spec.data, "dataset.json",
                     "is no data set; fathom prepare makes one"));
    FTH_TRY(fth_make_dirs(s->out.text));
    FTH_TRY(fth_runner_open(&m->runner));
    FTH_TRY(
        fth_sweep_record_write(&s->spec, &s->grid, s->out.text, s->o->set.items, s->o->set.count));
    return fth_sweep_data_make(&s->spec, s->out.text, &s->log);
}

static fth_err run_all(sweep *s, size_t *errors) {
    making m = {0};
    set_making(s, &m);
    fth_err err = open_folder(s, &m);
    if (err == FTH_OK) err = fth_runner_run(&m.runner, &s->grid, errors);
    fth_runner_close(&m.runner);
    return err;
}

static fth_err print_budget(sweep *s) {
    making m = {0};
    fth_sweep_results r = {0};
    fth_str text = {0};
    set_making(s, &m);
    fth_budget_row *rows = calloc(s->grid.rows + 1, sizeof *rows);
    char *said = fth_strdup_printf("%s/budget.txt", s->out.text);
    fth_err err = rows && said ? open_folder(s, &m) : fth_fail(FTH_NO_MEMORY, "no memory");
    if (err == FTH_OK) err = fth_sweep_results_read(&s->spec, &s->grid, s->out.text, &r);
    if (err == FTH_OK) err = fth_sweep_budget(&r, &m.measuring, said, rows);
    if (err == FTH_OK) err = fth_sweep_budget_text(&r, rows, m.runner.jobs, &text);
    if (err == FTH_OK) fputs(text.text, stdout);
    fth_runner_close(&m.runner);
    fth_sweep_results_fini(&r);
    fth_str_fini(&text);
    free(rows);
    free(said);
    return err;
}

/* ---- a row again ---- */

static fth_err verify_row(sweep *s) {
    making m = {0};
    fth_str text = {0};
    double worst = 0;
    const int64_t row = s->o->row;
    if (row < 1 || row > (int64_t)s->grid.rows)
        return fth_fail(FTH_USAGE, "--row %" PRId64 ": the table has rows 1 to %zu", row,
                        s->grid.rows);
    set_making(s, &m);
    fth_err err =
        fth_sweep_verify_row(&m.runner, &s->spec, &s->grid, (size_t)row - 1, &text, &worst);
    if (text.length) fputs(text.text, stdout);
    fth_str_fini(&text);
    if (err != FTH_OK || worst <= s->o->tolerance) return err;
    return fth_fail(FTH_FAILED, "%s: row %" PRId64 " is off by %.3g, more than --tolerance %g",
                    s->o->verify, row, worst, s->o->tolerance);
}

/* The sweep that made a table, from what its folder has recorded. */
static fth_err verify(sweep *s) {
    fth_sweep_origin origin;
    const char *slash = strrchr(s->o->verify, '/');
    char *folder = slash ? strndup(s->o->verify, (size_t)(slash - s->o->verify)) : strdup(".");
    if (!folder) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    fth_err err = fth_sweep_origin_read(folder, &origin);
    if (err == FTH_OK) err = open_sweep(s, origin.file, folder, origin.set, origin.n_set);
    if (err == FTH_OK) err = fth_sweep_record_check(&s->spec, &s->grid, s->out.text, true);
    if (err == FTH_OK) err = verify_row(s);
    fth_sweep_origin_fini(&origin);
    free(folder);
    return err;
}

/* ---- tables ---- */

static fth_err write_file(const sweep *s, const char *name, const fth_str *text) {
    char *path = fth_strdup_printf("%s/%s", s->out.text, name);
    fth_err err = path ? fth_file_write(path, text->length ? text->text : "", text->length)
                       : fth_fail(FTH_NO_MEMORY, "no memory for a name");
    free(path);
    return err;
}

static fth_err write_fits(const sweep *s, const fth_sweep_results *r, fth_str *text) {
    size_t n;
    fth_str_clear(text);
    FTH_TRY(fth_sweep_table_fits(r, false, text, &n));
    return n > 0 ? write_file(s, "fit.csv", text) : FTH_OK;
}

static fth_err write_tables(sweep *s, bool print) {
    static const struct {
        const char *name;
        fth_err (*make)(const fth_sweep_results *, fth_str *);
    } tables[] = {{"table.csv", fth_sweep_table_csv},
                  {"table.tex", fth_sweep_table_latex},
                  {"runs.csv", fth_sweep_table_runs},
                  {"table.md", fth_sweep_table_markdown}};
    fth_sweep_results r;
    fth_str text = {0};
    FTH_TRY(fth_sweep_results_read(&s->spec, &s->grid, s->out.text, &r));
    fth_err err = fth_make_dirs(s->out.text);
    if (err == FTH_OK) err = fth_sweep_paired(&r, s->out.text);
    for (size_t i = 0; i < sizeof tables / sizeof *tables && err == FTH_OK; i++) {
        fth_str_clear(&text);
        err = tables[i].make(&r, &text);
        if (err == FTH_OK) err = write_file(s, tables[i].name, &text);
    }
    if (err == FTH_OK && print) fputs(text.text, stdout); /* the Markdown is the last */
    if (err == FTH_OK) err = write_fits(s, &r, &text);
    if (err == FTH_OK) {
        err = fth_sweep_figure(&r, s->out.text);
        if (err == FTH_NOT_FOUND) { /* tables do not need gnuplot */
            fth_log_warn(&s->log, "%s", fth_error_message());
            err = FTH_OK;
        }
    }
    fth_str_fini(&text);
    fth_sweep_results_fini(&r);
    return err;
}

static fth_err work(sweep *s, const char *file) {
    size_t errors = 0;
    FTH_TRY(open_sweep(s, file, s->o->out, s->o->set.items, s->o->set.count));
    if (s->o->dry_run) {
        print_runs(s);
        return FTH_OK;
    }
    FTH_TRY(fth_sweep_record_check(&s->spec, &s->grid, s->out.text, s->o->table));
    if (s->o->budget) return print_budget(s);
    fth_err err = s->o->table
                      ? need(s->spec.file, s->out.text, "runs", "has no runs to make tables of")
                      : run_all(s, &errors);
    if (err == FTH_OK) err = write_tables(s, true);
    if (err == FTH_OK)
        fth_log_info(&s->log, "tables: %s/table.csv .md .tex, runs.csv%s", s->out.text,
                     fth_folder_has(s->out.text, "figure.svg") ? "; figure.svg .png" : "");
    if (err == FTH_OK && errors > 0)
        err =
            fth_fail(FTH_FAILED,
                     "%zu of %zu runs could not be made; their output.txt in %s/runs says why; the "
                     "same command tries them again",
                     errors, s->grid.n, s->out.text);
    return err;
}

fth_err fth_verb_sweep(int argc, char **argv) {
    sweep_options options;
    fth_option_group groups[] = {sweep_options_group(&options)};
    const fth_usage usage = {
        "fathom sweep", "SPEC.yaml",
        "Trains every combination of the options and seeds that a file lists, several at a time, "
        "and "
        "makes tables (CSV, Markdown, LaTeX) and a figure of the results. Stopped or killed, the "
        "same command goes on and repeats no finished run; a run that fails is a result. recipes/ "
        "has files to begin with.",
        0, 1};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 1, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) {
        sweep s = {.o = &options};
        fth_log_init(&s.log, stderr, options.quiet);
        if (options.verify[0])
            err = verify(&s);
        else if (parsed.n_positionals == 1)
            err = work(&s, parsed.positionals[0]);
        else
            err = fth_fail(FTH_USAGE, "SPEC.yaml is missing: the file of a sweep");
        fth_sweep_grid_fini(&s.grid);
        fth_sweep_spec_fini(&s.spec);
        fth_str_fini(&s.out);
        fth_str_fini(&s.data);
    }
    fth_parsed_fini(&parsed);
    return err;
}
