/* probe.c: fathom probe WHAT MODEL...: what happens inside of models, as CSV and figures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/device/device.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"
#include "base/option_uses.h"
#include "base/unfinished.h"
#include "cli/device_options.h"
#include "figure/probe_figure.h"
#include "cli/verb.h"
#include "data/folder.h"
#include "store/model_dir.h"
#include "probe/series.h"
#include "probe/table_read.h"

#define PROBE_OPTIONS(X)                                                                           \
    X(STR, out, "", FTH_SHOWN_AS("F.csv|DIR"),                                                     \
      "file to write; or folder for the same file and its figures")                                \
    X(LIST, from, "", FTH_SHOWN_AS("F.csv|DIR"),                                                   \
      "draw what an earlier call wrote instead of measuring")                                      \
    X(STR, batch, "", FTH_SHOWN_AS("FILE"), "probe set: a batch file as fathom trace takes it")    \
    X(STR, data, "", FTH_SHOWN_AS("DATASET"), "probe set: sentences drawn from this data set")     \
    X(CHOICE, split, "valid", FTH_CHOICES("train|valid|test"), "with --data: the part to draw of") \
    X(I64, sentences, "100", FTH_RANGE(1, 10000000), "with --data: how many to draw")              \
    X(I64, seed, "1", FTH_MIN(0), "of the draw, of random directions and of dropout")              \
    X(I64, max_tokens, "4096", FTH_RANGE(1, 16777216),                                             \
      "tokens of each side that are looked at together; bounds the memory")                        \
    X(I64, update, "", FTH_MIN(1),                                                                 \
      "number of the update whose schedule is used; default: the model's step, or 1")              \
    X(F64, label_smoothing, "0", FTH_BELOW(0, 1), "share of the target spread over all words")     \
    X(BOOL, dropout, "false", FTH_ANY,                                                             \
      "leave the model's dropouts on, with masks drawn by --seed")                                 \
    X(BOOL, embedding, "false", FTH_ANY, "similarity: the embeddings as layer 0")                  \
    X(I64, grid, "21", FTH_RANGE(3, 1001), "surface, trajectory: points along each axis, odd")     \
    X(CHOICE, proj, "pca", FTH_CHOICES("pca|angle"),                                               \
      "trajectory: second axis by principal component, or distance and angle")                     \
    X(STR, init, "", FTH_SHOWN_AS("MODEL"), "update, trajectory: theta_0, where the run began")
FTH_OPTIONS(probe_options, "probe", PROBE_OPTIONS)

/* One call. */
typedef struct call {
    const probe_options *o;
    const fth_option_group *groups; /* [2] of probe and device */
    const fth_analysis *what;
    const char **models; /* [n] */
    int32_t n;
    bool folder;       /* --out is one */
    char *batch;       /* the probe set */
    bool temporary;    /* it goes when the work is done */
    fth_new_dirs made; /* for --out */
    fth_log log;
    fth_probe_spec spec;
    fth_table table;
} call;

/* Drawing needs nothing but tables. */
static fth_err check_from(const call *c) {
    const probe_options *o = c->o;
    if (c->n > 0)
        return fth_fail(FTH_USAGE, "%s: --from draws tables, it takes no models", c->models[0]);
    static const char *const of_measuring[] = {
        "batch",           "data",    "split",     "sentences", "seed", "max_tokens", "update",
        "label_smoothing", "dropout", "embedding", "grid",      "proj", "init",       "device",
        "precision",       "threads", NULL};
    FTH_TRY(fth_refuse_options(c->groups, 2, of_measuring, "cannot be given with --from"));
    if (!c->folder)
        return fth_fail(FTH_USAGE, "--out %s: must be a folder, for the figures", o->out);
    return FTH_OK;
}

/* Options of other analyses, or of sets that are drawn. */
static fth_err check_uses(const call *c) {
    static const fth_option_use uses[] = {{"embedding", " similarity "},
                                          {"grid", " surface trajectory "},
                                          {"proj", " trajectory "},
                                          {"init", " update trajectory "}};
    static const char *const of_draw[] = {"split", "sentences", NULL};
    FTH_TRY(fth_check_uses(c->groups, 1, uses, sizeof uses / sizeof *uses, c->what->name));
    return c->o->data[0] ? FTH_OK : fth_refuse_options(c->groups, 1, of_draw, "needs --data");
}

static fth_err check(const call *c) {
    const probe_options *o = c->o;
    if (!o->out[0]) return fth_fail(FTH_USAGE, "--out F.csv or --out FOLDER is missing");
    if (o->from.count) return check_from(c);
    if (c->n == 0)
        return fth_fail(FTH_USAGE, "a MODEL is missing: fathom probe %s MODEL...", c->what->name);
    if (!o->batch[0] && !o->data[0])
        return fth_fail(FTH_USAGE, "--batch FILE or --data DATASET is missing");
    if (o->batch[0] && o->data[0])
        return fth_fail(FTH_USAGE, "--batch %s: cannot be given with --data", o->batch);
    if (o->grid % 2 == 0)
        return fth_fail(FTH_USAGE, "--grid %lld: must be odd, so that the middle is a point",
                        (long long)o->grid);
    return check_uses(c);
}

static bool is_folder(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static bool ends_in_csv(const char *path) {
    size_t length = strlen(path);
    return length >= 4 && strcmp(path + length - 4, ".csv") == 0;
}

/* A file is written when the work is done: its folder has to be there before. */
static fth_err check_parent(const char *path) {
    const char *slash = strrchr(path, '/');
    char *parent = slash && slash > path ? strndup(path, (size_t)(slash - path)) : strdup(".");
    fth_err err = parent ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a name");
    if (err == FTH_OK && !is_folder(parent))
        err = fth_fail(FTH_USAGE, "--out %s: %s is no folder", path, parent);
    free(parent);
    return err;
}

/* A table may be made anew, another file of the user may not be lost. Devices and pipes are
 * fine. */
static fth_err check_file(const char *path) {
    static const char head[] = "method,N,M,d,step,stack,index,"; /* doc/probe.md#the-columns */
    char begin[sizeof head];
    struct stat s;
    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode) || s.st_size == 0) return check_parent(path);
    FILE *f = fopen(path, "r");
    const bool table = f && fgets(begin, sizeof begin, f) && strcmp(begin, head) == 0;
    if (f) fclose(f);
    if (table) return FTH_OK;
    return fth_fail(FTH_USAGE, "--out %s: is there and is no table of fathom probe", path);
}

/* ---- the probe set ---- */

/* The folder of a model; of a run its newest checkpoint. malloc'd. */
static char *model_folder(const char *path) {
    return fth_is_run(path) ? fth_strdup_printf("%s/checkpoints/last", path) : strdup(path);
}

/* Before anything is measured: is each of them a model or a run that has one? */
static fth_err check_models(const call *c) {
    for (int32_t i = 0; i < c->n; i++) {
        const char *path = c->models[i];
        if (!is_folder(path)) return fth_fail(FTH_NOT_FOUND, "%s: there is no such folder", path);
        if (fth_folder_has(path, "config.json") || fth_folder_has(path, "checkpoints/last"))
            continue;
        if (fth_is_run(path) || fth_folder_has(path, "log.jsonl"))
            return fth_fail(FTH_NOT_FOUND,
                            "%s: has no checkpoints yet; train writes them every "
                            "--save-interval-updates updates",
                            path);
        return fth_fail(FTH_NOT_FOUND, "%s: is no model (it has no config.json) and no run", path);
    }
    return FTH_OK;
}

static int split_of(const char *name) {
    int split = FTH_TRAIN;
    while (strcmp(fth_split_name(split), name) != 0) split++;
    return split;
}

static fth_err draw(call *c) {
    const probe_options *o = c->o;
    fth_model_dir *dir = NULL;
    char *folder = model_folder(c->models[0]);
    fth_err err =
        folder ? fth_model_dir_open(folder, &dir) : fth_fail(FTH_NO_MEMORY, "no memory for a name");
    fth_probe_draw how = {.data = o->data,
                          .model = folder,
                          .split = split_of(o->split),
                          .sentences = o->sentences,
                          .seed = (uint64_t)o->seed};
    if (err == FTH_OK) err = fth_probe_set_draw(&how, &dir->config, c->batch);
    if (err == FTH_OK && !c->temporary)
        fth_log_info(&c->log, "%s: %lld sentences drawn", c->batch, (long long)o->sentences);
    fth_model_dir_close(dir);
    free(folder);
    return err;
}

/* A set that was drawn into the folder by an earlier call is used again. */
static fth_err find_set(call *c) {
    const probe_options *o = c->o;
    if (o->batch[0]) {
        c->batch = strdup(o->batch);
        return c->batch ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a name");
    }
    if (c->folder) {
        c->batch = fth_strdup_printf("%s/probe-set-%s-%lld-%lld.safetensors", o->out, o->split,
                                     (long long)o->sentences, (long long)o->seed);
        if (!c->batch) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
        return fth_file_exists(c->batch) ? FTH_OK : draw(c);
    }
    c->batch = fth_strdup_printf("%s.probe-set-%ld.tmp", o->out, (long)getpid());
    c->temporary = true;
    if (!c->batch) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    FTH_TRY(fth_unfinished_hold(c->batch));
    return draw(c);
}

/* ---- measuring ---- */

static fth_err measure_models(call *c) {
    for (int32_t i = 0; i < c->n; i++) {
        char *folder = model_folder(c->models[i]);
        fth_err err = folder ? fth_probe_model(c->what, &c->spec, folder, &c->table)
                             : fth_fail(FTH_NO_MEMORY, "no memory for a name");
        free(folder);
        if (err != FTH_OK) return err;
    }
    return FTH_OK;
}

static fth_err measure_series(call *c, fth_err made, fth_series *s) {
    fth_err err = made == FTH_OK ? fth_probe_series(c->what, &c->spec, s, &c->table) : made;
    fth_series_fini(s);
    return err;
}

/* Each run is a series of its own, models that are no runs are one together. */
static fth_err measure_runs(call *c) {
    const char *init = c->o->init[0] ? c->o->init : NULL;
    const char **plain = malloc(sizeof *plain * (size_t)c->n);
    fth_err err = plain ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for %d names", c->n);
    int32_t n = 0;
    for (int32_t i = 0; i < c->n && err == FTH_OK; i++) {
        fth_series s = {0};
        if (fth_is_run(c->models[i]))
            err = measure_series(c, fth_series_of_run(&s, c->models[i], init), &s);
        else
            plain[n++] = c->models[i];
    }
    if (err == FTH_OK && n > 0) {
        fth_series s = {0};
        err = measure_series(c, fth_series_of_models(&s, plain, n, init), &s);
    }
    free(plain);
    return err;
}

/* ---- tables that are there ---- */

static fth_err read_tables(call *c) {
    for (size_t i = 0; i < c->o->from.count; i++) {
        const char *from = c->o->from.items[i];
        char *file =
            is_folder(from) ? fth_strdup_printf("%s/%s.csv", from, c->what->name) : strdup(from);
        fth_err err = file ? fth_table_read(&c->table, file, c->what->series != NULL)
                           : fth_fail(FTH_NO_MEMORY, "no memory for a name");
        free(file);
        if (err != FTH_OK) return err;
    }
    return fth_table_name_subjects(&c->table, c->what->series != NULL);
}

/* ---- writing ---- */

/* doc/analyses.md#lninput: the mean over the LNs of a stack, of those around attention and of the
 * FFN's. */
static void print_norms(const fth_table *t, int32_t subject, fth_stack stack) {
    static const struct {
        const char *title, *part;
    } kinds[] = {{"mean LN input", ""}, {"attention", "attn"}, {"FFN", "ffn"}};
    for (int k = 0; k < 3; k++) {
        double sum = 0;
        int64_t n = 0;
        for (int64_t i = 0; i < t->n; i++) {
            const fth_probe_row *r = &t->row[i];
            if (r->subject != subject || r->stack != stack || !strstr(r->word, kinds[k].part))
                continue;
            sum += r->number[0];
            n++;
        }
        if (k == 0 && n == 0) return;
        if (k == 0) printf("%s, %s: ", t->subject[subject].label, fth_stack_name(stack));
        if (n)
            printf("%s%s %s", k ? ", " : "", kinds[k].title,
                   fth_shown_number(sum / (double)n).text);
    }
    printf("\n");
}

static void print_summary(const call *c) {
    if (strcmp(c->what->name, "lninput") != 0) return;
    for (int32_t i = 0; i < c->table.n_subjects; i++)
        for (int stack = 0; stack < 2; stack++) print_norms(&c->table, i, (fth_stack)stack);
}

static fth_err write_results(call *c) {
    fth_str csv = {0};
    char *name = c->folder ? fth_strdup_printf("%s/%s", c->o->out, c->what->name) : NULL;
    char *file = c->folder ? fth_strdup_printf("%s.csv", name ? name : "") : strdup(c->o->out);
    fth_err err = file && (name || !c->folder) ? fth_table_csv(&c->table, &csv)
                                               : fth_fail(FTH_NO_MEMORY, "no memory for a name");
    if (err == FTH_OK) err = fth_file_write(file, csv.text, csv.length);
    if (err == FTH_OK && c->folder) {
        bool drawn = true;
        err = fth_probe_figure(c->what->name, &c->table, name, &drawn);
        if (!drawn) fth_log_warn(&c->log, "%s: no value is finite: no figure is drawn", file);
        if (err == FTH_NOT_FOUND && c->o->from.count == 0) { /* the numbers are there */
            fth_log_warn(&c->log, "%s", fth_error_message());
            err = FTH_OK;
        }
    }
    if (err == FTH_OK) printf("%s: %lld rows\n", file, (long long)c->table.n);
    if (err == FTH_OK) print_summary(c);
    fth_str_fini(&csv);
    free(name);
    free(file);
    return err;
}

static fth_err draw_tables(call *c) {
    FTH_TRY(read_tables(c));
    FTH_TRY(fth_new_dirs_make(&c->made, c->o->out));
    fth_err err = write_results(c);
    /* without gnuplot nothing has been done that was asked for */
    return err == FTH_NOT_FOUND ? fth_fail_in(FTH_FAILED, "--from") : err;
}

static fth_err probe(call *c, const fth_device_options *d, bool update_given) {
    const probe_options *o = c->o;
    c->folder = is_folder(o->out) || !(ends_in_csv(o->out) || fth_file_exists(o->out));
    c->table = (fth_table){.columns = c->what->columns,
                           .n_numbers = c->what->n_numbers,
                           .has_word = c->what->has_word};
    FTH_TRY(check(c));
    if (o->from.count) return draw_tables(c);
    FTH_TRY(check_models(c));
    c->spec = (fth_probe_spec){.log = &c->log,
                               .max_tokens = o->max_tokens,
                               .update = update_given ? o->update : 0,
                               .smoothing = o->label_smoothing,
                               .dropout = o->dropout,
                               .seed = (uint64_t)o->seed,
                               .embedding = o->embedding,
                               .grid = (int32_t)o->grid,
                               .angle = strcmp(o->proj, "angle") == 0};
    FTH_TRY(c->folder ? fth_new_dirs_make(&c->made, o->out) : check_file(o->out));
    FTH_TRY(find_set(c));
    c->spec.batch = c->batch;
    FTH_TRY(fth_device_open(d->device, d->precision, (int)d->threads, &c->spec.device));
    FTH_TRY(c->what->series ? measure_runs(c) : measure_models(c));
    return write_results(c);
}

fth_err fth_verb_probe(int argc, char **argv) {
    probe_options options;
    fth_device_options device;
    fth_option_group groups[] = {probe_options_group(&options),
                                 fth_cpu_device_options_group(&device)};
    fth_str summary = {0};
    fth_err err = fth_str_addf(&summary, "Measures what happens inside of models on a fixed set of "
                                         "sentences and writes it as CSV; into a folder, with "
                                         "figures. WHAT is ");
    for (const fth_analysis *a = fth_analyses(); a->name && err == FTH_OK; a++)
        err = fth_str_addf(&summary, "%s: %s%s", a->name, a->about, a[1].name ? "; " : ". ");
    if (err == FTH_OK)
        err = fth_str_addf(&summary, "Several models come into one table and one figure. A MODEL "
                                     "may be a run: its newest checkpoint, or all of them for "
                                     "update and trajectory. doc/probe.md has examples, "
                                     "doc/analyses.md the formulas.");
    if (err != FTH_OK) return err;
    const fth_usage usage = {"fathom probe",
                             "WHAT MODEL... (--batch FILE | --data DATASET) --out F.csv|DIR",
                             summary.text, 1, -1};
    fth_parsed parsed;
    bool done;
    err = fth_verb_options(&usage, groups, 2, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) {
        call c = {.o = &options,
                  .groups = groups,
                  .models = parsed.positionals + 1,
                  .n = (int32_t)parsed.n_positionals - 1};
        fth_log_init(&c.log, stderr, false);
        err = fth_analysis_find(parsed.positionals[0], &c.what);
        if (err == FTH_OK) err = probe(&c, &device, fth_option_was_set(groups, 2, "update"));
        if (c.temporary && c.batch) unlink(c.batch);
        fth_unfinished_drop(c.batch);
        fth_new_dirs_fini(&c.made);
        free(c.batch);
        fth_table_fini(&c.table);
        fth_device_close(c.spec.device);
    }
    fth_parsed_fini(&parsed);
    fth_str_fini(&summary);
    return err;
}
