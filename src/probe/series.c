/* series.c: finds the checkpoints of a run, oldest first, and the parameters that it began with,
 * from a model or drawn again by its seed. */
#include "probe/series.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "store/checkpoint.h"
#include "train/profile.h"
#include "train/weights.h"

void fth_series_fini(fth_series *s) {
    for (int32_t i = 0; i < s->n; i++) free(s->folder[i]);
    free(s->folder);
    free(s->step);
    free(s->label);
    *s = (fth_series){0};
}

bool fth_is_run(const char *folder) {
    return fth_folder_has(folder, "checkpoints");
}

/* Takes the path over; NULL stands for a theta_0 that is drawn. */
static fth_err append(fth_series *s, char *folder, int64_t step) {
    size_t n = (size_t)s->n + 1;
    char **folders = realloc(s->folder, sizeof *folders * n);
    if (folders) s->folder = folders;
    int64_t *steps = realloc(s->step, sizeof *steps * n);
    if (steps) s->step = steps;
    if (!folders || !steps) {
        free(folder);
        return fth_fail(FTH_NO_MEMORY, "no memory for %zu checkpoints", n);
    }
    s->folder[s->n] = folder;
    s->step[s->n++] = step;
    return FTH_OK;
}

static fth_err append_copy(fth_series *s, const char *folder, int64_t step) {
    char *copy = strdup(folder);
    return copy ? append(s, copy, step) : fth_fail(FTH_NO_MEMORY, "no memory for a name");
}

static fth_err step_of(const char *folder, int64_t *step) {
    fth_model_dir *dir = NULL;
    FTH_TRY(fth_model_dir_open(folder, &dir));
    *step = dir->config.step;
    fth_model_dir_close(dir);
    return FTH_OK;
}

/* The model that is given as theta_0. */
static fth_err append_init(fth_series *s, const char *folder) {
    int64_t step;
    FTH_TRY(step_of(folder, &step));
    s->given = true;
    return append_copy(s, folder, step);
}

static fth_err set_label(fth_series *s, const char *path) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    size_t first = length;
    while (first > 0 && path[first - 1] != '/') first--;
    s->label = strndup(path + first, length - first);
    return s->label ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a name");
}

/* The seed that a checkpoint's run began with. */
static fth_err seed_of(const char *folder, uint64_t *seed) {
    fth_train_state state;
    char *path = fth_strdup_printf("%s/state.json", folder);
    fth_err err = path ? fth_train_state_read(path, &state, NULL, NULL)
                       : fth_fail(FTH_NO_MEMORY, "no memory for a name");
    if (err == FTH_OK) *seed = (uint64_t)state.seed;
    free(path);
    return err;
}

/* What the drawn start of a run cannot be: another model's weights, or profiled. */
static fth_err check_drawn(const char *run, const char *folder) {
    char *path = fth_strdup_printf("%s/config.yaml", run), *text = NULL;
    size_t size;
    fth_err err = path ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a name");
    if (err == FTH_OK && fth_file_exists(path)) err = fth_file_read(path, &text, &size);
    const char *restored = text ? strstr(text, "restore-file:") : NULL;
    if (err == FTH_OK && restored && strncmp(restored, "restore-file: \"\"", 16) != 0)
        err = fth_fail(FTH_USAGE, "%s: began from other weights: give them with --init MODEL", run);
    free(path);
    free(text);
    if (err != FTH_OK) return err;
    fth_model_dir *dir = NULL;
    fth_model model;
    FTH_TRY(fth_model_dir_open(folder, &dir));
    err = fth_model_init(&model, &dir->config);
    if (err == FTH_OK && fth_profile_wanted(&model))
        err = fth_fail(FTH_USAGE,
                       "%s: method %s began with a profiling pass, which is not kept: give its "
                       "step 0 with --init MODEL",
                       run, model.config.method);
    fth_model_fini(&model);
    fth_model_dir_close(dir);
    return err;
}

fth_err fth_series_of_run(fth_series *s, const char *run, const char *init) {
    *s = (fth_series){0};
    int64_t *steps = NULL;
    size_t n = 0;
    char *folder = fth_strdup_printf("%s/checkpoints", run), *first = NULL;
    char *start = fth_strdup_printf("%s/start", run);
    fth_err err = folder && start ? fth_checkpoint_list(folder, &steps, &n)
                                  : fth_fail(FTH_NO_MEMORY, "no memory for a name");
    if (err == FTH_OK && !init && fth_folder_has(start, "config.json")) init = start;
    if (err == FTH_OK && n == 0) err = fth_fail(FTH_NOT_FOUND, "%s: has no checkpoints", folder);
    if (err == FTH_OK) err = set_label(s, run);
    if (err == FTH_OK && init) err = append_init(s, init);
    if (err == FTH_OK && !init && steps[0] > 0) {
        first = fth_strdup_printf("%s/step-%08lld", folder, (long long)steps[0]);
        err = first ? check_drawn(run, first) : fth_fail(FTH_NO_MEMORY, "no memory for a name");
        if (err == FTH_OK) err = seed_of(first, &s->seed);
        if (err == FTH_OK) err = append(s, NULL, 0);
    }
    for (size_t i = 0; i < n && err == FTH_OK; i++) {
        char *path = fth_strdup_printf("%s/step-%08lld", folder, (long long)steps[i]);
        err = path ? append(s, path, steps[i]) : fth_fail(FTH_NO_MEMORY, "no memory for a name");
    }
    free(folder);
    free(start);
    free(first);
    free(steps);
    if (err != FTH_OK) fth_series_fini(s);
    return err;
}

/* Few checkpoints: moved one by one to their places, equal steps stay in order. */
static void sort_by_step(fth_series *s, int32_t from) {
    for (int32_t i = from + 1; i < s->n; i++)
        for (int32_t k = i; k > from && s->step[k - 1] > s->step[k]; k--) {
            int64_t step = s->step[k];
            char *folder = s->folder[k];
            s->step[k] = s->step[k - 1];
            s->folder[k] = s->folder[k - 1];
            s->step[k - 1] = step;
            s->folder[k - 1] = folder;
        }
}

fth_err fth_series_of_models(fth_series *s, const char *const *folders, int32_t n,
                             const char *init) {
    *s = (fth_series){0};
    fth_err err = set_label(s, folders[n - 1]);
    if (err == FTH_OK && init) err = append_init(s, init);
    for (int32_t i = 0; i < n && err == FTH_OK; i++) {
        int64_t step;
        err = step_of(folders[i], &step);
        if (err == FTH_OK) err = append_copy(s, folders[i], step);
    }
    if (err == FTH_OK) sort_by_step(s, init ? 1 : 0);
    if (err != FTH_OK) fth_series_fini(s);
    return err;
}

fth_err fth_series_weights(const fth_series *s, int32_t i, const fth_model *model, float *flat) {
    if (!s->folder[i]) {
        fth_model_draw(model, s->seed, flat);
        return FTH_OK;
    }
    fth_model_dir *dir = NULL;
    FTH_TRY(fth_model_dir_open(s->folder[i], &dir));
    fth_err err = FTH_OK;
    if (strcmp(dir->config.method, model->config.method) != 0)
        err = fth_fail(FTH_BAD_INPUT, "%s: its method is %s, that of the others is %s",
                       s->folder[i], dir->config.method, model->config.method);
    if (err == FTH_OK) err = fth_weights_from(dir->weights, &model->params, "", flat);
    fth_model_dir_close(dir);
    return err;
}
