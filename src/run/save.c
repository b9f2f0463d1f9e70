#include "run/save.h"

#include <stdlib.h>

#include "train/weights.h"

/* Parameters, first and second moments, fetched from the device. */
typedef struct fetched {
    fth_mirror arena[3]; /* [params.size] each */
    fth_st_tensor *tensors;
    const void **moments; /* [2, params.n] */
} fetched;

static void release(fetched *f) {
    for (int i = 0; i < 3; i++) fth_mirror_fini(&f->arena[i]);
    free(f->tensors);
    free(f->moments);
}

static fth_err fetch(fth_trainer *t, fetched *f) {
    const fth_params *params = &t->model->params;
    void *arenas[3] = {t->arenas.master, t->arenas.m, t->arenas.v};
    for (int i = 0; i < 3; i++)
        FTH_TRY(fth_mirror_fetch(t->device, arenas[i], params->size, &f->arena[i]));
    FTH_TRY(fth_weights_tensors(params, "", f->arena[0].flat, &f->tensors));
    f->moments = malloc(sizeof *f->moments * 2 * (size_t)params->n);
    if (!f->moments) return fth_fail(FTH_NO_MEMORY, "no memory for a checkpoint");
    for (int32_t i = 0; i < params->n; i++) {
        f->moments[i] = f->arena[1].flat + params->param[i].offset;
        f->moments[params->n + i] = f->arena[2].flat + params->param[i].offset;
    }
    return FTH_OK;
}

fth_err fth_save_checkpoint(const char *folder, fth_trainer *t, const fth_train_state *state,
                            const char *options, const char *tokenizer_from) {
    fetched f = {0};
    fth_err err = fetch(t, &f);
    if (err == FTH_OK) {
        fth_checkpoint_content content = {.model = {.config = &t->model->config,
                                                    .tensors = f.tensors,
                                                    .n_tensors = (size_t)t->model->params.n,
                                                    .tokenizer_from = tokenizer_from},
                                          .exp_avg = f.moments,
                                          .exp_avg_sq = f.moments + t->model->params.n,
                                          .state = *state,
                                          .options = options};
        err = fth_checkpoint_save(folder, &content);
    }
    release(&f);
    return err;
}

fth_err fth_save_model(const char *path, const fth_trainer *t, const char *tokenizer_from) {
    const int64_t n = t->model->params.size;
    fth_mirror mirror;
    fth_err err = fth_mirror_fetch(t->device, t->arenas.master, n, &mirror);
    if (err == FTH_OK) err = fth_weights_write(path, t->model, mirror.flat, tokenizer_from);
    fth_mirror_fini(&mirror);
    return err;
}

static fth_err load_arena(fth_trainer *t, const fth_st_file *file, const char *prefix,
                          void *arena) {
    const fth_params *params = &t->model->params;
    fth_mirror mirror;
    fth_err err = fth_mirror_blank(t->device, arena, params->size, &mirror);
    if (err == FTH_OK) err = fth_weights_from(file, params, prefix, mirror.flat);
    if (err == FTH_OK) err = fth_mirror_store(t->device, arena, params->size, &mirror);
    fth_mirror_fini(&mirror);
    return err;
}

fth_err fth_save_load(const fth_checkpoint *c, fth_trainer *t) {
    FTH_TRY(load_arena(t, c->model->weights, "", t->arenas.master));
    FTH_TRY(load_arena(t, c->optimizer, "exp_avg.", t->arenas.m));
    FTH_TRY(load_arena(t, c->optimizer, "exp_avg_sq.", t->arenas.v));
    return t->device->backend->refresh_weights(t->device, &t->arenas);
}
