/* files.c: the files beside the weights: vocabularies, tokenizers, the model card. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "exchange/format.h"
#include "store/config_json.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* state.json is no such file: checkpoints are never replaced. */
int fth_is_export_file(const char *name) {
    static const char *const names[] = {"README.md",
                                        "args.json",
                                        "config.json",
                                        "dict.src.txt",
                                        "dict.tgt.txt",
                                        "generation_config.json",
                                        "model.bin",
                                        "model.onnx",
                                        "model.onnx.data",
                                        "model.safetensors",
                                        "shared_vocabulary.json",
                                        "source.spm",
                                        "source_vocabulary.json",
                                        "target.spm",
                                        "target_vocab.json",
                                        "target_vocabulary.json",
                                        "tokenizer.json",
                                        "tokenizer.model",
                                        "tokenizer.src.json",
                                        "tokenizer.src.model",
                                        "tokenizer.tgt.json",
                                        "tokenizer.tgt.model",
                                        "tokenizer_config.json",
                                        "vocab.json",
                                        "vocab.txt",
                                        "vocab-src.json",
                                        "vocab-tgt.json"};
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(name, names[i]) == 0) return 1;
    return 0;
}

static fth_err write_text(const char *folder, const char *name, const char *text, size_t size) {
    char *path = fth_strdup_printf("%s/%s", folder, name);
    if (!path) return fth_no_memory(name);
    fth_err err = fth_file_write(path, text, size);
    free(path);
    return err;
}

fth_err fth_write_tensors(const fth_export_job *job, const fth_row *rows, fth_tensors *more,
                          const char *name) {
    fth_tensors own = {0}, *t = more ? more : &own;
    char *path = fth_strdup_printf("%s/%s", job->folder, name);
    fth_err err = path ? fth_rows_out(rows, job->model, job->flat, t) : fth_no_memory(name);
    for (size_t i = 0; i < t->n && job->storage == FTH_STORE_BF16; i++)
        t->tensors[i].dtype = FTH_ST_BF16;
    if (err == FTH_OK) err = fth_st_write(path, t->tensors, t->n, fth_st_fill_from_f32, NULL, NULL);
    fth_tensors_fini(&own);
    free(path);
    return err;
}

/* What stands for a word that the tokenizer has no piece for. */
static const char *piece_of(const fth_export_job *job, const fth_tokenizer *t, int32_t id,
                            char spare[32]) {
    const char *piece = fth_tokenizer_piece(t, id);
    if (*piece) return piece;
    snprintf(spare, 32, id == job->model->config.pad ? "<pad>" : "<unused%d>", id);
    return spare;
}

fth_err fth_write_vocabulary(const fth_export_job *job, const fth_tokenizer *t, int32_t size,
                             bool ids, const char *name) {
    json_t *words = ids ? json_object() : json_array();
    char spare[32];
    for (int32_t i = 0; i < size && words; i++) {
        const char *piece = piece_of(job, t, i, spare);
        const int failed = ids ? json_object_set_new(words, piece, json_integer(i))
                               : json_array_append_new(words, json_string(piece));
        if (!failed) continue;
        json_decref(words);
        return fth_fail(FTH_FAILED, "piece %d of the tokenizer is no text, or there is no memory",
                        i);
    }
    return fth_json_save(words, job->folder, name);
}

static fth_err copy_file(const char *from, const char *name, const char *folder, const char *as) {
    char *data = NULL, *path = fth_strdup_printf("%s/%s", from, name);
    size_t size = 0;
    if (!path) return fth_no_memory(name);
    fth_err err = fth_file_read(path, &data, &size);
    if (err == FTH_OK) err = write_text(folder, as, data, size);
    free(data);
    free(path);
    return err;
}

fth_err fth_copy_tokenizer(const fth_export_job *job, bool source, const char *name) {
    const char *from = job->spec->model;
    const char *own = source ? "tokenizer.src.model" : "tokenizer.tgt.model";
    if (fth_folder_has(from, "tokenizer.model"))
        return copy_file(from, "tokenizer.model", job->folder, name);
    return fth_folder_has(from, own) ? copy_file(from, own, job->folder, name) : FTH_OK;
}

fth_err fth_copy_tokenizers(const fth_export_job *job) {
    static const char *const names[] = {"tokenizer.model",     "tokenizer.src.model",
                                        "tokenizer.tgt.model", "tokenizer.json",
                                        "tokenizer.src.json",  "tokenizer.tgt.json"};
    for (size_t i = 0; i < COUNT(names); i++)
        if (fth_folder_has(job->spec->model, names[i]))
            FTH_TRY(copy_file(job->spec->model, names[i], job->folder, names[i]));
    return FTH_OK;
}

fth_err fth_copy_config(const fth_export_job *job) {
    fth_str text = {0};
    fth_err err = fth_config_print(&job->model->config, &text);
    if (err == FTH_OK) err = write_text(job->folder, "config.json", text.text, text.length);
    fth_str_fini(&text);
    return err;
}

fth_err fth_read_config(const char *folder, fth_config *out) {
    char *path = fth_strdup_printf("%s/config.json", folder);
    fth_err err = path ? fth_config_read(path, out) : fth_no_memory("config.json");
    free(path);
    return err;
}

/* ---- the model card ---- */

static fth_err line(fth_str *s, const char *what, const char *value) {
    return fth_str_addf(s, "| %s | %s |\n", what, value);
}

static fth_err add_model(fth_str *s, const fth_weighted *w) {
    const fth_config *c = &w->model.config;
    const fth_method *m = w->model.method.method;
    char text[128];
    FTH_TRY(
        fth_str_addf(s, "| method | %s: %s |\n| paper | %s |\n", m->title, m->equation, m->paper));
    if (c->arch == FTH_ENCDEC)
        snprintf(text, sizeof text, "encoder %d, decoder %d", c->encoder_layers, c->decoder_layers);
    else
        snprintf(text, sizeof text, "%s %d", c->arch == FTH_ENC ? "encoder" : "decoder",
                 c->arch == FTH_ENC ? c->encoder_layers : c->decoder_layers);
    FTH_TRY(line(s, "layers", text));
    FTH_TRY(fth_str_addf(s, "| width, feed-forward, heads | %d, %d, %d |\n", c->d_model, c->ffn_dim,
                         c->heads));
    FTH_TRY(
        fth_str_addf(s, "| parameters | %lld |\n", (long long)fth_params_count(&w->model.params)));
    if (c->step > 0)
        FTH_TRY(fth_str_addf(s, "| updates of training | %lld |\n", (long long)c->step));
    return FTH_OK;
}

/* What a checkpoint knows of its training; nothing where it is a plain model. */
static fth_err add_training(fth_str *s, const char *folder) {
    char *path = fth_strdup_printf("%s/state.json", folder);
    json_t *state = NULL;
    double best = 0, nll = 0;
    if (!path) return fth_no_memory("the model card");
    fth_err err = fth_file_exists(path) ? fth_json_load(path, &state) : FTH_OK;
    const json_t *options = json_object_get(state, "options");
    const char *data = json_string_value(json_object_get(options, "data"));
    if (err == FTH_OK && data) {
        const char *name = strrchr(data, '/');
        err = line(s, "data set", name && name[1] ? name + 1 : data);
    }
    const json_t *score = json_object_get(state, "best_score");
    if (err == FTH_OK && score && fth_json_to_double(score, &best) == FTH_OK && isfinite(best))
        err = line(s, "best score in validation", fth_shown_number(best).text);
    const json_t *valid = json_object_get(state, "valid_nll");
    if (err == FTH_OK && valid && fth_json_to_double(valid, &nll) == FTH_OK && isfinite(nll))
        err =
            fth_str_addf(s, "| validation loss, nats a token | %s |\n", fth_shown_number(nll).text);
    json_decref(state);
    free(path);
    return err;
}

static fth_err card_text(const fth_export_job *job, const fth_weighted *source, fth_str *s) {
    const char *name = strrchr(job->spec->out, '/');
    name = name && name[1] ? name + 1 : job->spec->out;
    FTH_TRY(fth_str_addf(s,
                         "---\ntags:\n- fathom\n---\n# %s\n\nA Transformer trained with fathom, "
                         "for %s.\n\n| | |\n| --- | --- |\n",
                         name, job->format->title));
    FTH_TRY(add_model(s, source));
    FTH_TRY(add_training(s, job->spec->model));
    const char *method = source->model.config.method, *now = job->model->config.method;
    if (strcmp(method, now) != 0)
        FTH_TRY(fth_str_addf(s,
                             "\nThe weights were folded: this is plain %s with the outputs of "
                             "the trained model.\n",
                             job->model->method.method->title));
    FTH_TRY(fth_str_addf(
        s, "\nWritten by `fathom export MODEL --to %s` of fathom " FATHOM_VERSION ".\n",
        job->format->name));
    if (!job->format->example) return FTH_OK;
    return fth_str_addf(s, "\n```python\n%s```\n", job->format->example);
}

fth_err fth_write_card(const fth_export_job *job, const fth_weighted *source) {
    fth_str s = {0};
    fth_err err = card_text(job, source, &s);
    if (err == FTH_OK) err = write_text(job->folder, "README.md", s.text, s.length);
    fth_str_fini(&s);
    return err;
}
