/* checkpoint.c: writes and reads one checkpoint. The folder of all of them is checkpoints.c's. */
#include "store/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/staged_dir.h"

static const char model_file[] = "model.safetensors";
static const char optimizer_file[] = "optimizer.safetensors";
static const char state_file[] = "state.json";

/* The tensor of one moment of a parameter; its name is malloc'd. */
static fth_st_tensor moment_of(const fth_st_tensor *parameter, const char *prefix,
                               const void *data) {
    fth_st_tensor moment = *parameter;
    moment.name = fth_strdup_printf("%s.%s", prefix, parameter->name);
    moment.dtype = FTH_ST_F32;
    moment.data = data;
    return moment;
}

/* The two moments of each of n parameters; *out [2 n]. The data may be left out (NULL). */
static fth_err list_moments(const fth_st_tensor *tensors, size_t n, const void *const *exp_avg,
                            const void *const *exp_avg_sq, fth_st_tensor **out) {
    fth_st_tensor *moments = *out = calloc(2 * n + 1, sizeof *moments);
    int failed = !moments;
    for (size_t i = 0; i < n && !failed; i++) {
        moments[i] = moment_of(&tensors[i], "exp_avg", exp_avg ? exp_avg[i] : NULL);
        moments[n + i] = moment_of(&tensors[i], "exp_avg_sq", exp_avg_sq ? exp_avg_sq[i] : NULL);
        failed = !moments[i].name || !moments[n + i].name;
    }
    return failed ? fth_fail(FTH_NO_MEMORY, "no memory for %zu moments", 2 * n) : FTH_OK;
}

static void free_moments(fth_st_tensor *moments, size_t n) {
    for (size_t i = 0; moments && i < 2 * n; i++) free((char *)moments[i].name);
    free(moments);
}

static fth_err write_optimizer(const char *folder, const fth_checkpoint_content *c,
                               fth_file_sums *sums) {
    const fth_model_content *m = &c->model;
    fth_st_tensor *moments = NULL;
    fth_st_sum sum = {0};
    char *path = fth_strdup_printf("%s/%s", folder, optimizer_file);
    fth_err err = list_moments(m->tensors, m->n_tensors, c->exp_avg, c->exp_avg_sq, &moments);
    if (!err && !path) err = fth_fail(FTH_NO_MEMORY, "%s: no memory for a name", folder);
    if (!err) err = fth_st_write(path, moments, 2 * m->n_tensors, m->fill, m->context, &sum);
    if (!err) fth_file_sums_add(sums, optimizer_file, sum);
    free_moments(moments, m->n_tensors);
    free(path);
    return err;
}

static fth_err write_state(const char *folder, const fth_checkpoint_content *c,
                           const fth_file_sums *sums) {
    fth_str text = {0};
    char *path = fth_strdup_printf("%s/%s", folder, state_file);
    fth_err err = path ? fth_train_state_print(&c->state, c->options, sums, &text)
                       : fth_fail(FTH_NO_MEMORY, "%s: no memory for a name", folder);
    if (!err) err = fth_file_write(path, text.text, text.length);
    fth_str_fini(&text);
    free(path);
    return err;
}

fth_err fth_checkpoint_write(const char *path, const fth_checkpoint_content *c) {
    fth_config config = *c->model.config;
    fth_model_content model = c->model;
    fth_staged_dir dir = {0};
    fth_file_sums sums = {0};
    config.step = c->state.update;
    model.config = &config;
    FTH_TRY(fth_staged_dir_open(&dir, path, fth_model_may_replace));
    fth_err err = fth_model_files_write(dir.temp, &model, &sums);
    if (!err) err = write_optimizer(dir.temp, c, &sums);
    if (!err) err = write_state(dir.temp, c, &sums);
    if (!err) err = fth_staged_dir_commit(&dir);
    fth_staged_dir_fini(&dir);
    return err;
}

/* The sum of a file of the folder; tensor files are mapped already. */
static fth_err measure(const fth_model_dir *model, const fth_st_file *optimizer, const char *name,
                       fth_st_sum *sum) {
    const fth_st_file *mapped = !strcmp(name, model_file)       ? model->weights
                                : !strcmp(name, optimizer_file) ? optimizer
                                                                : NULL;
    if (mapped) {
        *sum = (fth_st_sum){mapped->map_size, fth_crc32(0, mapped->map, mapped->map_size)};
        return FTH_OK;
    }
    char *path = fth_strdup_printf("%s/%s", model->path, name), *data = NULL;
    size_t size = 0;
    fth_err err = path ? fth_file_read(path, &data, &size)
                       : fth_fail(FTH_NO_MEMORY, "%s: no memory for a name", name);
    *sum = (fth_st_sum){size, fth_crc32(0, data, size)};
    free(data);
    free(path);
    return err;
}

static fth_err check_sum(const fth_model_dir *model, const fth_file_sum *noted, fth_st_sum found) {
    if (found.bytes == noted->sum.bytes && found.crc32 == noted->sum.crc32) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT,
                    "%s/%s: %llu bytes with crc32 %08x, but %s says %llu with %08x: the file is "
                    "damaged",
                    model->path, noted->name, (unsigned long long)found.bytes, found.crc32,
                    state_file, (unsigned long long)noted->sum.bytes, noted->sum.crc32);
}

/* Without an optimizer its file is not looked at. */
static fth_err check_sums(const fth_model_dir *model, const fth_st_file *optimizer,
                          const fth_file_sums *sums) {
    static const char *const needed[] = {"config.json", model_file, optimizer_file};
    for (size_t k = 0; k < sizeof needed / sizeof needed[0]; k++) {
        size_t i = 0;
        while (i < sums->n && strcmp(sums->files[i].name, needed[k])) i++;
        if (i == sums->n)
            return fth_fail(FTH_BAD_INPUT, "%s: %s does not list %s", model->path, state_file,
                            needed[k]);
    }
    for (size_t i = 0; i < sums->n; i++) {
        fth_st_sum found = {0};
        if (!optimizer && !strcmp(sums->files[i].name, optimizer_file)) continue;
        FTH_TRY(measure(model, optimizer, sums->files[i].name, &found));
        FTH_TRY(check_sum(model, &sums->files[i], found));
    }
    return FTH_OK;
}

static fth_err check_moments(const fth_checkpoint *c) {
    const fth_st_file *weights = c->model->weights;
    fth_st_tensor *moments = NULL;
    fth_err err = list_moments(weights->tensors, weights->n, NULL, NULL, &moments);
    if (!err) err = fth_st_expect(c->optimizer, moments, 2 * weights->n);
    free_moments(moments, weights->n);
    return err;
}

static fth_err read_state(const fth_model_dir *model, const char *path, fth_train_state *state,
                          char **options, fth_file_sums *sums) {
    FTH_TRY(fth_train_state_read(path, state, options, sums));
    if (state->update == model->config.step) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s: update is %lld, but step in config.json is %lld", path,
                    (long long)state->update, (long long)model->config.step);
}

static fth_err read_all(const char *path, fth_checkpoint *c) {
    fth_file_sums sums = {0};
    FTH_TRY(fth_model_dir_open(path, &c->model));
    char *state = fth_strdup_printf("%s/%s", c->model->path, state_file);
    char *optimizer = fth_strdup_printf("%s/%s", c->model->path, optimizer_file);
    fth_err err = state && optimizer ? FTH_OK : fth_fail(FTH_NO_MEMORY, "%s: no memory", path);
    if (!err) err = read_state(c->model, state, &c->state, &c->options, &sums);
    if (!err) err = fth_st_open(optimizer, &c->optimizer);
    if (!err) err = check_sums(c->model, c->optimizer, &sums);
    if (!err) err = check_moments(c);
    free(state);
    free(optimizer);
    return err;
}

fth_err fth_checkpoint_open_model(const char *path, fth_model_dir **out) {
    fth_train_state state;
    fth_file_sums sums = {0};
    FTH_TRY(fth_model_dir_open(path, out));
    char *file = fth_strdup_printf("%s/%s", (*out)->path, state_file);
    fth_err err = file ? FTH_OK : fth_fail(FTH_NO_MEMORY, "%s: no memory", path);
    if (!err && fth_file_exists(file)) {
        err = read_state(*out, file, &state, NULL, &sums);
        if (!err) err = check_sums(*out, NULL, &sums);
    }
    free(file);
    if (err) {
        fth_model_dir_close(*out);
        *out = NULL;
    }
    return err;
}

fth_err fth_checkpoint_open(const char *path, fth_checkpoint **out) {
    fth_checkpoint *c = calloc(1, sizeof *c);
    fth_err err = c ? read_all(path, c) : fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", path);
    if (err) {
        fth_checkpoint_close(c);
        c = NULL;
    }
    *out = c;
    return err;
}

void fth_checkpoint_close(fth_checkpoint *c) {
    if (!c) return;
    fth_model_dir_close(c->model);
    fth_st_close(c->optimizer);
    free(c->options);
    free(c);
}
