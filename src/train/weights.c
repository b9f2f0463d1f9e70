/* weights.c: tensors by the names of the parameters; a missing, foreign or misshapen one is an
 * error with its name. */
#include "train/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "store/model_dir.h"

fth_err fth_weights_tensors(const fth_params *params, const char *prefix, const float *flat,
                            fth_st_tensor **out) {
    size_t n = (size_t)params->n, names = 0, prefix_length = strlen(prefix);
    for (size_t i = 0; i < n; i++) names += prefix_length + strlen(params->param[i].name) + 1;
    fth_st_tensor *tensors = calloc(1, sizeof *tensors * n + names);
    if (!tensors) return fth_fail(FTH_NO_MEMORY, "no memory for the names of %zu parameters", n);
    char *name = (char *)(tensors + n);
    for (size_t i = 0; i < n; i++) {
        const fth_param *p = &params->param[i];
        tensors[i] = (fth_st_tensor){
            .name = name, .dtype = FTH_ST_F32, .data = flat ? flat + p->offset : NULL};
        tensors[i].rank = fth_param_file_shape(p, tensors[i].shape);
        name += sprintf(name, "%s%s", prefix, p->name) + 1;
    }
    *out = tensors;
    return FTH_OK;
}

fth_err fth_weights_from(const fth_st_file *file, const fth_params *params, const char *prefix,
                         float *flat) {
    fth_st_tensor *wanted = NULL;
    FTH_TRY(fth_weights_tensors(params, prefix, flat, &wanted));
    fth_err err = FTH_OK;
    memset(flat, 0, sizeof *flat * (size_t)params->size);
    for (int32_t i = 0; i < params->n && err == FTH_OK; i++) {
        const fth_st_tensor *t = NULL;
        err = fth_st_get(file, wanted[i].name, &t);
        if (err == FTH_OK && fth_st_count(t) != fth_st_count(&wanted[i]))
            err = fth_fail(FTH_BAD_INPUT, "%s: tensor %s has %zu elements, the model needs %zu",
                           file->path, t->name, fth_st_count(t), fth_st_count(&wanted[i]));
        if (err == FTH_OK) err = fth_st_to_f32(file, t, flat + params->param[i].offset);
    }
    free(wanted);
    return err;
}

fth_err fth_weights_read(const char *folder, fth_model *model, float **flat) {
    fth_model_dir *dir = NULL;
    fth_st_tensor *expected = NULL;
    *flat = NULL;
    memset(model, 0, sizeof *model);
    FTH_TRY(fth_model_dir_open(folder, &dir));
    fth_err err = fth_model_init(model, &dir->config);
    if (err != FTH_OK) {
        err = fth_fail_in(err, "%s/config.json", folder);
        goto done;
    }
    FTH_TRY_OR(err, fth_weights_tensors(&model->params, "", NULL, &expected), done);
    FTH_TRY_OR(err, fth_st_expect(dir->weights, expected, (size_t)model->params.n), done);
    *flat = malloc(sizeof **flat * (size_t)model->params.size);
    if (!*flat) {
        err =
            fth_fail(FTH_NO_MEMORY, "no memory for %lld parameters", (long long)model->params.size);
        goto done;
    }
    err = fth_weights_from(dir->weights, &model->params, "", *flat);
done:
    free(expected);
    fth_model_dir_close(dir);
    if (err != FTH_OK) {
        free(*flat);
        *flat = NULL;
        fth_model_fini(model);
    }
    return err;
}

static fth_err not_finite(const fth_param *p, int64_t at, double x, const char *rule) {
    const fth_number number = fth_shown_number(x);
    if (p->rank < 2)
        return fth_fail(FTH_FAILED, "%s[%lld] is %s: %s", p->name, (long long)at, number.text,
                        rule);
    return fth_fail(FTH_FAILED, "%s[%lld, %lld] is %s: %s", p->name, (long long)(at / p->shape[1]),
                    (long long)(at % p->shape[1]), number.text, rule);
}

fth_err fth_weights_finite(const fth_model *model, const float *flat, const char *rule) {
    for (int32_t i = 0; i < model->params.n; i++) {
        const fth_param *p = &model->params.param[i];
        for (int64_t k = 0; k < fth_param_size(p); k++)
            if (!isfinite(flat[p->offset + k]))
                return not_finite(p, k, (double)flat[p->offset + k], rule);
    }
    return FTH_OK;
}

fth_err fth_weights_write(const char *folder, const fth_model *model, const float *flat,
                          const char *tokenizer_from) {
    fth_st_tensor *tensors = NULL;
    FTH_TRY(fth_weights_tensors(&model->params, "", flat, &tensors));
    fth_model_content content = {.config = &model->config,
                                 .tensors = tensors,
                                 .n_tensors = (size_t)model->params.n,
                                 .tokenizer_from = tokenizer_from};
    fth_err err = fth_model_dir_write(folder, &content);
    free(tensors);
    return err;
}
