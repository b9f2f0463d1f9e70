/* export.c: reads a model, brings it into a format's form, writes the folder and checks it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "exchange/format.h"
#include "base/staged_dir.h"
#include "train/weights.h"

#define FORMAT(name) &fth_format_##name,
static const fth_format *const formats[] = {
#include "exchange/formats.def"
    NULL};
#undef FORMAT

const fth_format *const *fth_formats(void) {
    return formats;
}

fth_err fth_format_find(const char *name, const fth_format **out) {
    for (const fth_format *const *f = formats; *f; f++)
        if (strcmp((*f)->name, name) == 0) {
            *out = *f;
            return FTH_OK;
        }
    return fth_fail(FTH_USAGE, "%.40s: unknown format; there are " FTH_EXPORT_NAMES, name);
}

/* Why a format cannot hold a model; NULL: it can. Words that every format needs come first. */
static const char *lacks(const fth_format *f, const fth_model *m) {
    const fth_method *method = m->method.method;
    if (m->config.front != FTH_FRONT_TEXT) return "reads text alone";
    if (!f->any_method && fth_config_is_adaptive(&m->config))
        return "has one width for all words, and the model's words come in bands";
    const char *reason = f->lacks(m, method->norm);
    if (reason) return reason;
    if (f->any_method || method->plain || method->fold) return NULL;
    return "has no place for the method";
}

/* The reason, with what would work. */
static fth_err refuse(const fth_format *f, const fth_model *m, const char *reason) {
    const fth_method *method = m->method.method;
    const fth_format *other = NULL;
    for (const fth_format *const *each = formats; *each && !other; each++)
        if (!lacks(*each, m)) other = *each;
    char why[160] = "", hint[64] = "; no format of fathom export can hold it";
    if (!method->plain && !method->fold && !f->any_method)
        snprintf(why, sizeof why, " (%s as plain Post-LN or Pre-LN %s)", method->id,
                 method->export_to);
    if (other) snprintf(hint, sizeof hint, "; --to %s can hold it", other->name);
    return fth_fail(FTH_BAD_CONFIG, "%s %s%s%s", f->title, reason, why, hint);
}

static fth_err load_tokenizers(fth_export_job *job) {
    const char *folder = job->spec->model;
    static const char *const parts[] = {"", ".src", ".tgt"};
    fth_tokenizer *found[3] = {NULL};
    fth_err err = FTH_OK;
    for (int i = 0; i < 3 && err == FTH_OK; i++) {
        char *path = NULL;
        err = fth_tokenizer_find(folder, parts[i], &path);
        if (err == FTH_OK && path) err = fth_tokenizer_load(path, &found[i]);
        free(path);
    }
    job->src = found[1] ? found[1] : found[0];
    job->tgt = found[2] ? found[2] : found[0];
    return err;
}

static void free_tokenizers(fth_export_job *job) {
    if (job->src != job->tgt) fth_tokenizer_free(job->src);
    fth_tokenizer_free(job->tgt);
}

/* How far logits may be apart, as a share of the largest. */
static double tolerance(fth_storage_kind storage) {
    return storage == FTH_STORE_F32 ? 1e-4 : storage == FTH_STORE_BF16 ? 0.1 : 0.3;
}

static fth_err check(const fth_export_job *job, const fth_weighted *source,
                     fth_check_result *result) {
    fth_weighted back = {0};
    fth_err err = job->format->read(job->folder, &back);
    if (err == FTH_OK) err = fth_check(source, &back, result);
    fth_weighted_fini(&back);
    if (err != FTH_OK) return fth_fail_in(err, "the check of what was written");
    const double most = tolerance(job->storage) * fmax(1, result->largest);
    if (result->difference <= most) return FTH_OK;
    return fth_fail(FTH_FAILED,
                    "what was written gives other logits: they differ by %g of %g, at most %g is "
                    "allowed; nothing is kept (--no-check writes it all the same)",
                    result->difference, result->largest, most);
}

static fth_err may_replace(const char *path) {
    return fth_holds_only(path, fth_is_export_file, "an exported model");
}

/* Into a folder that appears when all is well. */
static fth_err write_all(fth_export_job *job, const fth_weighted *source,
                         fth_check_result *result) {
    fth_staged_dir dir = {0};
    FTH_TRY(fth_staged_dir_open(&dir, job->spec->out, may_replace));
    job->folder = dir.temp;
    fth_err err = job->format->write(job);
    if (err == FTH_OK) err = fth_write_card(job, source);
    if (err == FTH_OK && job->spec->check) err = check(job, source, result);
    if (err == FTH_OK) err = fth_staged_dir_commit(&dir);
    fth_staged_dir_fini(&dir);
    return err;
}

static fth_err convert(const fth_format *format, const fth_export_spec *spec,
                       const fth_weighted *source, fth_check_result *result) {
    fth_weighted plain = {0};
    fth_err err = fth_plain_make(format, source, &plain);
    fth_export_job job = {.spec = spec,
                          .format = format,
                          .model = &plain.model,
                          .flat = plain.flat,
                          .storage = spec->storage};
    const char *reason = err == FTH_OK ? lacks(format, &plain.model) : NULL;
    if (reason) err = refuse(format, &source->model, reason);
    if (err == FTH_OK) err = load_tokenizers(&job);
    if (err == FTH_OK && format->adjust) format->adjust(&plain.model, plain.flat, true);
    if (err == FTH_OK) err = write_all(&job, source, result);
    free_tokenizers(&job);
    fth_weighted_fini(&plain);
    return err;
}

fth_err fth_export(const fth_export_spec *spec, fth_check_result *result) {
    const fth_format *format = NULL;
    fth_weighted source = {0};
    *result = (fth_check_result){0};
    FTH_TRY(fth_format_find(spec->to, &format));
    if (spec->storage == FTH_STORE_INT8 && !format->int8)
        return fth_fail(FTH_USAGE, "--storage int8: %s has fp32 and bf16 alone", format->title);
    if (fth_same_file(spec->model, spec->out))
        return fth_fail(FTH_USAGE, "--out %s: is the model itself", spec->out);
    FTH_TRY(fth_weights_read(spec->model, &source.model, &source.flat));
    source.there = true;
    const char *reason = lacks(format, &source.model);
    fth_err err = reason ? refuse(format, &source.model, reason)
                         : fth_weights_finite(&source.model, source.flat,
                                              "a model is exported with finite numbers alone");
    if (err == FTH_OK) err = convert(format, spec, &source, result);
    fth_weighted_fini(&source);
    return err;
}
