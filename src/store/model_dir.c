/* model_dir.c: writes config.json, the tensors and the tokenizer with the hash of each; reads them
 * back and checks shapes and hashes. */
#include "store/model_dir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/staged_dir.h"
#include "store/config_json.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What a model needs of the data set that it was trained on, to be used on other data. */
static const char *const input_files[] = {
    "tokenizer.model",    "tokenizer.src.model", "tokenizer.tgt.model", "tokenizer.json",
    "tokenizer.src.json", "tokenizer.tgt.json",  "labels.json",         "image.json",
    "speech.json",        "languages.json"};

int fth_is_model_file(const char *name) {
    static const char *const others[] = {"config.json", "model.safetensors",
                                         "optimizer.safetensors", "state.json"};
    for (size_t i = 0; i < COUNT(others); i++)
        if (!strcmp(name, others[i])) return 1;
    for (size_t i = 0; i < COUNT(input_files); i++)
        if (!strcmp(name, input_files[i])) return 1;
    return 0;
}

fth_err fth_model_may_replace(const char *path) {
    return fth_holds_only(path, fth_is_model_file, "a model folder");
}

static fth_err join(const char *folder, const char *name, char **out) {
    *out = fth_strdup_printf("%s/%s", folder, name);
    return *out ? FTH_OK : fth_fail(FTH_NO_MEMORY, "%s/%s: no memory for its name", folder, name);
}

void fth_file_sums_add(fth_file_sums *sums, const char *name, fth_st_sum sum) {
    fth_file_sum *file = &sums->files[sums->n++];
    memcpy(file->name, name, strlen(name) + 1);
    file->sum = sum;
}

static fth_err write_file(const char *folder, const char *name, const void *data, size_t size,
                          fth_file_sums *sums) {
    char *path = NULL;
    FTH_TRY(join(folder, name, &path));
    fth_err err = fth_file_write(path, data, size);
    free(path);
    fth_file_sums_add(sums, name, (fth_st_sum){.bytes = size, .crc32 = fth_crc32(0, data, size)});
    return err;
}

/* A safetensors file of the folder, and its sum. */
static fth_err write_tensors(const char *folder, const char *name, const fth_model_content *m,
                             fth_file_sums *sums) {
    char *path = NULL;
    fth_st_sum sum = {0};
    FTH_TRY(join(folder, name, &path));
    fth_err err = fth_st_write(path, m->tensors, m->n_tensors, m->fill, m->context, &sum);
    free(path);
    fth_file_sums_add(sums, name, sum);
    return err;
}

static fth_err write_config(const char *folder, const fth_config *config, fth_file_sums *sums) {
    fth_str text = {0};
    fth_err err = fth_config_print(config, &text);
    if (!err) err = write_file(folder, "config.json", text.text, text.length, sums);
    fth_str_fini(&text);
    return err;
}

static fth_err copy_input_files(const char *from, const char *folder, fth_file_sums *sums) {
    fth_err err = FTH_OK;
    for (size_t i = 0; i < COUNT(input_files) && !err; i++) {
        char *path = NULL, *data = NULL;
        size_t size = 0;
        err = join(from, input_files[i], &path);
        if (!err && fth_file_exists(path)) {
            err = fth_file_read(path, &data, &size);
            if (!err) err = write_file(folder, input_files[i], data, size, sums);
        }
        free(data);
        free(path);
    }
    return err;
}

fth_err fth_model_files_write(const char *folder, const fth_model_content *m, fth_file_sums *sums) {
    FTH_TRY(write_config(folder, m->config, sums));
    if (m->tokenizer_from) FTH_TRY(copy_input_files(m->tokenizer_from, folder, sums));
    return write_tensors(folder, "model.safetensors", m, sums);
}

fth_err fth_model_dir_write(const char *path, const fth_model_content *m) {
    if (fth_folder_has(path, "state.json"))
        return fth_fail(FTH_USAGE, "%s: is a checkpoint of a training; choose another folder",
                        path);
    fth_staged_dir dir = {0};
    fth_file_sums sums = {0};
    FTH_TRY(fth_staged_dir_open(&dir, path, fth_model_may_replace));
    fth_err err = fth_model_files_write(dir.temp, m, &sums);
    if (!err) err = fth_staged_dir_commit(&dir);
    fth_staged_dir_fini(&dir);
    return err;
}

static fth_err read_files(fth_model_dir *m) {
    char *config = NULL, *weights = NULL;
    fth_err err = join(m->path, "config.json", &config);
    if (!err) err = join(m->path, "model.safetensors", &weights);
    if (!err) err = fth_config_read(config, &m->config);
    if (!err) err = fth_st_open(weights, &m->weights);
    free(config);
    free(weights);
    return err;
}

/* One attempt. *moved: another folder came into this place meanwhile. */
static fth_err open_once(const char *path, fth_model_dir **out, int *moved) {
    struct stat before = {0}, after = {0};
    fth_model_dir *m = calloc(1, sizeof *m);
    fth_err err = m ? fth_staged_dir_resolve(path, &m->path)
                    : fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", path);
    if (!err) {
        int there = stat(m->path, &before) == 0;
        if (!there)
            err = errno == ENOENT ? fth_fail(FTH_NOT_FOUND, "%s: no such model folder", path)
                                  : fth_fail(FTH_IO, "%s: cannot open: %s", path, strerror(errno));
        else if (fth_folder_has(path, "checkpoints/last"))
            err = fth_fail(FTH_BAD_INPUT, "%s: is a run; name a model in it, checkpoints/best, say",
                           path);
        else
            err = read_files(m);
        *moved = there && (stat(m->path, &after) != 0 || after.st_ino != before.st_ino ||
                           after.st_dev != before.st_dev);
    }
    if (err || *moved) {
        fth_model_dir_close(m);
        m = NULL;
    }
    *out = m;
    return err;
}

/* A writer may replace the folder between its two files, which would give the config of one model
 * and the weights of another; then it is read again. */
fth_err fth_model_dir_open(const char *path, fth_model_dir **out) {
    int moved = 1;
    fth_err err = FTH_OK;
    for (int attempt = 0; moved && attempt < 5; attempt++) {
        moved = 0;
        err = open_once(path, out, &moved);
    }
    if (!err && moved) err = fth_fail(FTH_IO, "%s: is replaced all the time", path);
    return err;
}

void fth_model_dir_close(fth_model_dir *m) {
    if (!m) return;
    fth_st_close(m->weights);
    free(m->path);
    free(m);
}
