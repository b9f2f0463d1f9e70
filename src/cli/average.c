/* average.c: fathom average: the mean of several checkpoints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/model_path.h"
#include "cli/verb.h"
#include "store/average.h"
#include "store/checkpoint.h"
#include "method/method.h"

#define AVERAGE_OPTIONS(X)                                                                         \
    X(I64, last, "", FTH_MIN(1), "take the newest N checkpoints of the one run that is named")     \
    X(STR, out, "", FTH_SHOWN_AS("FOLDER"), "model folder to write")
FTH_OPTIONS(average_options, "average", AVERAGE_OPTIONS)

/* The folders to average; a zeroed one is empty. */
typedef struct folders {
    char **paths; /* [n] */
    size_t n;
} folders;

static void folders_fini(folders *f) {
    for (size_t i = 0; i < f->n; i++) free(f->paths[i]);
    free(f->paths);
}

static fth_err folders_add(folders *f, char *path) {
    char **more = realloc(f->paths, (f->n + 1) * sizeof *more);
    if (more) f->paths = more;
    if (!more || !path) {
        free(path);
        return fth_fail(FTH_NO_MEMORY, "no memory for the names of folders");
    }
    f->paths[f->n++] = path;
    return FTH_OK;
}

/* RUN/checkpoints, or the folder itself when it has no such folder; malloc'd. */
static char *checkpoints_of(const char *run) {
    char *folder = fth_strdup_printf("%s/checkpoints", run);
    if (!folder || fth_file_exists(folder)) return folder;
    free(folder);
    return strdup(run);
}

static fth_err add_newest(folders *f, const char *run, size_t count) {
    int64_t *updates = NULL;
    size_t n = 0;
    char *folder = checkpoints_of(run);
    fth_err err = folder ? fth_checkpoint_list(folder, &updates, &n)
                         : fth_fail(FTH_NO_MEMORY, "%s: no memory for a name", run);
    if (!err && n < count)
        err = fth_fail(FTH_USAGE, "--last %zu: %s has only %zu checkpoints", count, folder, n);
    for (size_t i = 0; !err && i < count; i++)
        err = folders_add(
            f, fth_strdup_printf("%s/step-%08lld", folder, (long long)updates[n - count + i]));
    free(folder);
    free(updates);
    return err;
}

/* What slot 0 of a method's schedule is when the model is used (doc/mathematics.md#branchnorm). */
static fth_err alpha_of(const fth_model_dir *m, double *alpha) {
    fth_method_state state;
    double slots[FTH_STEP_SLOTS];
    fth_err err = fth_method_resolve(&m->config, &state);
    if (err) return fth_fail_in(err, "%s/config.json", m->path);
    fth_method_step(&state, m->config.step > 0 ? m->config.step : 1, slots);
    *alpha = slots[0];
    return FTH_OK;
}

/* The mean of parameters that were trained for different branch scales fits none of them. */
static fth_err check_alphas(fth_model_dir *const *models, size_t n) {
    double first = 0, alpha = 0;
    for (size_t i = n; i-- > 0;) {
        FTH_TRY(alpha_of(models[i], &alpha));
        if (i == n - 1) first = alpha;
        if (alpha != first)
            return fth_fail(FTH_BAD_INPUT,
                            "%s (step %lld) has alpha %.9g, but %s (step %lld) has %.9g: models "
                            "whose alphas differ cannot be averaged; the last %zu can",
                            models[n - 1]->path, (long long)models[n - 1]->config.step, first,
                            models[i]->path, (long long)models[i]->config.step, alpha, n - 1 - i);
    }
    return FTH_OK;
}

static fth_err average(const folders *f, const char *out) {
    fth_model_dir **models = calloc(f->n + 1, sizeof *models);
    fth_err err = models ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for %zu models", f->n);
    for (size_t i = 0; !err && i < f->n; i++)
        err = fth_checkpoint_open_model(f->paths[i], &models[i]);
    if (!err) err = check_alphas(models, f->n);
    if (!err) err = fth_average_write(out, (const fth_model_dir *const *)models, f->n);
    if (!err) {
        fth_log log;
        fth_log_init(&log, stderr, false);
        fth_log_info(&log, "%s: the mean of %zu model%s", out, f->n, f->n == 1 ? "" : "s");
    }
    for (size_t i = 0; models && i < f->n; i++) fth_model_dir_close(models[i]);
    free(models);
    return err;
}

static fth_err run(const average_options *o, bool has_last, fth_parsed *parsed) {
    folders f = {0};
    fth_err err = FTH_OK;
    if (!o->out[0]) return fth_fail(FTH_USAGE, "--out FOLDER is missing");
    if (has_last && parsed->n_positionals != 1)
        return fth_fail(FTH_USAGE, "--last %lld: takes one run, not %zu folders",
                        (long long)o->last, parsed->n_positionals);
    if (!has_last) FTH_TRY(fth_model_paths(parsed, 0, parsed->n_positionals));
    if (has_last) {
        err = add_newest(&f, parsed->positionals[0], (size_t)o->last);
    } else {
        for (size_t i = 0; !err && i < parsed->n_positionals; i++)
            err = folders_add(&f, strdup(parsed->positionals[i]));
    }
    if (!err) err = average(&f, o->out);
    folders_fini(&f);
    return err;
}

fth_err fth_verb_average(int argc, char **argv) {
    average_options options;
    fth_option_group groups[] = {average_options_group(&options)};
    const fth_usage usage = {
        "fathom average", "FOLDER... --out FOLDER | RUN --last N --out FOLDER",
        "Writes a model whose parameters are the means over several checkpoints or models. They "
        "must be of one kind and, where the method has a schedule, of one alpha.",
        1, -1};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 1, argc, argv, &parsed, &done);
    if (!err && !done) err = run(&options, fth_option_was_set(groups, 1, "last"), &parsed);
    fth_parsed_fini(&parsed);
    return err;
}
