/* import.c: reads a folder of another program and writes a model folder with its tokenizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "exchange/format.h"
#include "store/model_dir.h"
#include "base/staged_dir.h"
#include "train/weights.h"

typedef struct tokenizer_file {
    char *data; /* NULL: there is none */
    size_t size;
    const char *as; /* its name in the model folder */
} tokenizer_file;

/* Reads a tokenizer and takes it where its pieces have the numbers of the model's words. */
static fth_err take_file(const char *folder, const char *name, const char *as, int32_t words,
                         tokenizer_file *out, bool *taken) {
    *taken = false;
    if (!fth_folder_has(folder, name)) return FTH_OK;
    char *path = fth_strdup_printf("%s/%s", folder, name);
    fth_tokenizer *t = NULL;
    if (!path) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    fth_err err = fth_file_read(path, &out->data, &out->size);
    if (err == FTH_OK) err = fth_tokenizer_parse(out->data, out->size, path, &t);
    if (err == FTH_OK) *taken = fth_tokenizer_size(t) == words;
    out->as = as;
    if (!*taken) {
        free(out->data);
        out->data = NULL;
    }
    fth_tokenizer_free(t);
    free(path);
    return err;
}

/* The tokenizers of a folder that fathom can use as they are. */
static fth_err take_tokenizers(const char *folder, const fth_config *c, tokenizer_file files[2]) {
    const int32_t src = c->arch == FTH_DEC ? c->tgt_vocab : c->src_vocab;
    const int32_t tgt = c->arch == FTH_ENC ? c->src_vocab : c->tgt_vocab;
    bool taken = false, other = false;
    FTH_TRY(take_file(folder, "tokenizer.model", "tokenizer.model", src, &files[0], &taken));
    if (taken) return FTH_OK;
    /* such a file may hold other kinds than byte-level BPE, which are not taken */
    const fth_err err =
        take_file(folder, "tokenizer.json", "tokenizer.json", src, &files[0], &taken);
    if (err != FTH_BAD_INPUT && err != FTH_NOT_FOUND) FTH_TRY(err);
    if (taken) return FTH_OK;
    const char *names[2][2] = {{"tokenizer.src.model", "tokenizer.tgt.model"},
                               {"source.spm", "target.spm"}};
    for (int i = 0; i < 2 && !taken; i++) {
        FTH_TRY(take_file(folder, names[i][0], "tokenizer.src.model", src, &files[0], &taken));
        if (!taken) continue;
        FTH_TRY(take_file(folder, names[i][1], "tokenizer.tgt.model", tgt, &files[1], &other));
        taken = other;
    }
    if (!taken) {
        for (int i = 0; i < 2; i++) free(files[i].data);
        files[0].data = files[1].data = NULL;
        return FTH_OK;
    }
    if (files[0].size == files[1].size && !memcmp(files[0].data, files[1].data, files[0].size)) {
        free(files[1].data);
        files[1].data = NULL;
        files[0].as = "tokenizer.model";
    }
    return FTH_OK;
}

static fth_err write_file(const char *folder, const tokenizer_file *file) {
    char *path = fth_strdup_printf("%s/%s", folder, file->as);
    if (!path) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    fth_err err = fth_file_write(path, file->data, file->size);
    free(path);
    return err;
}

static fth_err write_model(const char *out, const fth_weighted *w, const tokenizer_file files[2]) {
    fth_staged_dir dir = {0};
    fth_file_sums sums = {0};
    fth_st_tensor *tensors = NULL;
    FTH_TRY(fth_weights_tensors(&w->model.params, "", w->flat, &tensors));
    const fth_model_content content = {
        .config = &w->model.config, .tensors = tensors, .n_tensors = (size_t)w->model.params.n};
    fth_err err = fth_staged_dir_open(&dir, out, fth_model_may_replace);
    if (err == FTH_OK) err = fth_model_files_write(dir.temp, &content, &sums);
    for (int i = 0; i < 2 && err == FTH_OK; i++)
        if (files[i].data) err = write_file(dir.temp, &files[i]);
    if (err == FTH_OK) err = fth_staged_dir_commit(&dir);
    fth_staged_dir_fini(&dir);
    free(tensors);
    return err;
}

fth_err fth_import(const char *from, const char *folder, const char *out, fth_import_note *note,
                   void *context) {
    const fth_format *format = NULL;
    fth_weighted w = {0};
    tokenizer_file files[2] = {{0}};
    FTH_TRY(fth_format_find(from, &format));
    if (fth_same_file(folder, out))
        return fth_fail(FTH_USAGE, "--out %s: is the folder that is read", out);
    if (fth_folder_has(out, "state.json"))
        return fth_fail(FTH_USAGE, "--out %s: is a checkpoint of a training; choose another folder",
                        out);
    fth_err err = format->read(folder, &w);
    if (err == FTH_OK && format->remarks) format->remarks(&w, note, context);
    if (err == FTH_OK) err = take_tokenizers(folder, &w.model.config, files);
    if (err == FTH_OK) err = write_model(out, &w, files);
    if (err == FTH_OK && !files[0].data)
        note(context,
             "no tokenizer was taken over: the folder has none that fathom reads and whose "
             "pieces have the numbers of the model's words");
    for (int i = 0; i < 2; i++) free(files[i].data);
    fth_weighted_fini(&w);
    return err;
}
