/* trainer_files.c: fetches the arenas from the device and hands them to store/checkpoint.h, and
 * back. */
#include "run/trainer_files.h"

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

static fth_ranks *ranks_of(const fth_trainer *t) {
    return t->exchange ? t->exchange->ranks : NULL;
}

/* A moment, of which every rank has its slice, all of it to rank 0. */
static fth_err fetch_moment(fth_trainer *t, void *arena, fth_mirror *out) {
    const int64_t n = t->model->params.size;
    if (!t->exchange) return fth_mirror_fetch(t->device, arena, n, out);
    *out = (fth_mirror){.flat = malloc(sizeof *out->flat * (size_t)n), .copied = true};
    if (!out->flat) return fth_fail(FTH_NO_MEMORY, "no memory for a checkpoint");
    FTH_TRY(fth_arena_get(t->device, arena, t->own.end - t->own.begin, out->flat + t->own.begin));
    return fth_ranks_collect(ranks_of(t), out->flat, n);
}

static fth_err fetch(fth_trainer *t, fetched *f) {
    const fth_params *params = &t->model->params;
    FTH_TRY(fth_mirror_fetch(t->device, t->arenas.master, params->size, &f->arena[0]));
    FTH_TRY(fetch_moment(t, t->arenas.m, &f->arena[1]));
    FTH_TRY(fetch_moment(t, t->arenas.v, &f->arena[2]));
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
    if (err == FTH_OK && fth_rank(ranks_of(t)) == 0) {
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

/* Tensors of a file (NULL: none, rank 0 has them) to the slice of an arena that this rank has. */
static fth_err load_arena(fth_trainer *t, const fth_st_file *file, const char *prefix, void *arena,
                          fth_slice slice) {
    const fth_params *params = &t->model->params;
    fth_mirror mirror;
    fth_err err = FTH_OK;
    if (t->exchange) {
        mirror = (fth_mirror){.flat = calloc((size_t)params->size, sizeof(float)), .copied = true};
        if (!mirror.flat) return fth_fail(FTH_NO_MEMORY, "no memory for a checkpoint");
    } else {
        FTH_TRY(fth_mirror_blank(t->device, arena, params->size, &mirror));
    }
    if (file) err = fth_weights_from(file, params, prefix, mirror.flat);
    err = fth_ranks_agree(ranks_of(t), err);
    if (err == FTH_OK)
        err = fth_ranks_broadcast(ranks_of(t), mirror.flat,
                                  t->exchange ? sizeof(float) * (size_t)params->size : 0);
    if (err == FTH_OK && mirror.copied)
        err = fth_arena_put(t->device, arena, slice.end - slice.begin, mirror.flat + slice.begin);
    fth_mirror_fini(&mirror);
    return err;
}

fth_err fth_save_load(const fth_checkpoint *c, fth_trainer *t) {
    const fth_slice all = {0, t->model->params.size};
    FTH_TRY(load_arena(t, c ? c->model->weights : NULL, "", t->arenas.master, all));
    FTH_TRY(load_arena(t, c ? c->optimizer : NULL, "exp_avg.", t->arenas.m, t->own));
    FTH_TRY(load_arena(t, c ? c->optimizer : NULL, "exp_avg_sq.", t->arenas.v, t->own));
    return t->device->backend->refresh_weights(t->device, &t->arenas);
}

fth_err fth_save_spread(fth_trainer *t) {
    const int64_t n = t->model->params.size;
    fth_mirror mirror;
    if (!t->exchange) return FTH_OK;
    FTH_TRY(fth_mirror_fetch(t->device, t->arenas.master, n, &mirror));
    fth_err err = fth_ranks_broadcast(ranks_of(t), mirror.flat, sizeof(float) * (size_t)n);
    if (err == FTH_OK) err = fth_mirror_store(t->device, t->arenas.master, n, &mirror);
    fth_mirror_fini(&mirror);
    return err == FTH_OK ? t->device->backend->refresh_weights(t->device, &t->arenas) : err;
}
