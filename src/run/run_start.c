/* run_start.c: begins a run fresh or where its checkpoint ends; of several ranks the first does,
 * and the others get it from there. */
#include "run/running.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "run/init_from.h"
#include "run/memory_check.h"
#include "run/trainer_files.h"
#include "train/profile.h"
#include "train/weights.h"

/* Weights of another model: its shapes must be ours. */
static fth_err load_weights_of(fth_running *r, const char *folder) {
    fth_model other;
    float *flat = NULL;
    FTH_TRY(fth_weights_read(folder, &other, &flat));
    fth_err err = FTH_OK;
    bool same = other.params.n == r->model.params.n && other.params.size == r->model.params.size;
    for (int32_t i = 0; same && i < other.params.n; i++)
        same = strcmp(other.params.param[i].name, r->model.params.param[i].name) == 0 &&
               fth_param_size(&other.params.param[i]) == fth_param_size(&r->model.params.param[i]);
    if (!same)
        err = fth_fail(FTH_BAD_CONFIG,
                       "--restore-file %s: its parameters are not those of this model (it is a %s "
                       "%s of %d and %d layers, width %d)",
                       folder, other.config.method, fth_arch_name(other.config.arch),
                       other.config.encoder_layers, other.config.decoder_layers,
                       other.config.d_model);
    else
        err = fth_arenas_load(r->device, &r->trainer.arenas, flat);
    free(flat);
    fth_model_fini(&other);
    return err;
}

/* RUN/start: initial values that the seed alone does not give again. */
static fth_err keep_start(const fth_running *r) {
    char *path = fth_strdup_printf("%s/start", r->spec->save_dir);
    if (!path) return fth_no_memory("a run");
    fth_err err = fth_save_model(path, &r->trainer, r->spec->data);
    free(path);
    return err;
}

/* The profiling pass reads the first batch; training begins with it all the same. */
static fth_err profile(fth_running *r) {
    fth_packed packed = {0};
    int64_t capacity[FTH_N_EXTENTS];
    fth_trainer_spec size = {.src_tokens = r->spec->max_tokens,
                             .tgt_tokens = r->spec->max_tokens,
                             .max_len = fth_running_longest(r)};
    fth_capacities(&size, capacity);
    fth_err err = fth_packed_init(&packed, (int32_t)r->spec->max_tokens);
    if (err == FTH_OK) err = fth_batcher_next(r->batcher, &packed);
    if (err == FTH_OK) err = fth_store_packed(&r->stores[0], &packed, &r->model.config, 0);
    if (err == FTH_OK) err = fth_profile(&r->trainer, &r->stores[0].batch, capacity);
    fth_packed_fini(&packed);
    return err == FTH_OK ? keep_start(r) : err;
}

/* Weights of a model of another task. */
static fth_err init_from(fth_running *r) {
    const char *folder = r->spec->init_from;
    fth_str said = {0}, doubt = {0};
    float *flat = malloc(sizeof *flat * (size_t)r->model.params.size);
    const bool same_words = fth_folder_check_model(&r->folder, folder) == FTH_OK;
    if (!same_words) fth_running_warn(r, fth_error_message());
    fth_err err = flat ? fth_init_from(folder, &r->model, r->spec->recipe.seed, same_words, flat,
                                       &said, &doubt)
                       : fth_no_memory("a run");
    if (err == FTH_OK) err = fth_arenas_load(r->device, &r->trainer.arenas, flat);
    if (err == FTH_OK && doubt.length) fth_running_warn(r, doubt.text);
    if (err == FTH_OK) fth_log_info(r->log, "%s", said.text);
    free(flat);
    fth_str_fini(&said);
    fth_str_fini(&doubt);
    return err;
}

static fth_err start_fresh(fth_running *r) {
    const char *weights = r->spec->restore_file;
    if (r->spec->init_from[0]) return init_from(r);
    if (weights[0]) {
        if (fth_folder_check_model(&r->folder, weights) != FTH_OK)
            fth_running_warn(r, fth_error_message());
        return load_weights_of(r, weights);
    }
    fth_err err = fth_trainer_draw(&r->trainer, r->spec->recipe.seed);
    if (err != FTH_OK) return err;
    if (fth_profile_wanted(&r->model)) return profile(r);
    return r->spec->init_scale == 1 ? FTH_OK : keep_start(r);
}

static fth_err resume(fth_running *r, const fth_checkpoint *c) {
    r->state = c->state;
    r->position = (fth_position){.epoch = c->state.epoch,
                                 .window = c->state.window,
                                 .batch = c->state.batch,
                                 .index = c->state.position};
    r->resumed = true;
    fth_log_info(r->log, "resuming %s at update %lld", r->spec->save_dir,
                 (long long)r->state.update);
    return FTH_OK;
}

/* Sentences that are left out are said once, not every epoch. */
static fth_err warn_of_long(fth_running *r) {
    int64_t n;
    FTH_TRY(fth_batcher_too_long(r->batcher, &n));
    if (n == 0) return FTH_OK;
    char text[256];
    snprintf(text, sizeof text,
             "%s: %lld of %lld training sentences are longer than --max-positions %d or "
             "--max-tokens %lld and are left out",
             r->spec->data, (long long)n, (long long)r->train->sentences,
             r->spec->config.max_positions, (long long)r->spec->max_tokens);
    fth_running_warn(r, text);
    return FTH_OK;
}

/* A limit may be lowered, but what has been trained stays trained. */
static void warn_of_limit(fth_running *r) {
    char text[256];
    if (r->state.update <= r->spec->max_update) return;
    snprintf(text, sizeof text,
             "%s is already at update %lld, beyond --max-update %lld; nothing is left to train",
             r->spec->save_dir, (long long)r->state.update, (long long)r->spec->max_update);
    fth_running_warn(r, text);
}

/* What one process does to begin or to go on; of several ranks, rank 0. */
static fth_err find_start(fth_running *r) {
    return r->from ? resume(r, r->from) : start_fresh(r);
}

/* The others get it from there. */
static fth_err share_start(fth_running *r) {
    fth_ranks *ranks = r->spec->ranks;
    FTH_TRY(fth_ranks_broadcast(ranks, &r->resumed, sizeof r->resumed));
    FTH_TRY(fth_ranks_broadcast(ranks, &r->state, sizeof r->state));
    FTH_TRY(fth_ranks_broadcast(ranks, &r->position, sizeof r->position));
    return r->resumed ? fth_save_load(r->from, &r->trainer) : fth_save_spread(&r->trainer);
}

static fth_err fill_store(void *running, int k, const fth_packed *packed) {
    fth_running *r = running;
    return fth_store_packed(&r->stores[k], packed, &r->model.config, 0);
}

static int64_t count_targets(const void *running, const fth_packed *packed) {
    const fth_running *r = running;
    return fth_packed_targets(packed, &r->model.config, r->trainer.outputs.rows);
}

static fth_err make_ahead(fth_running *r) {
    const fth_prefetch_spec spec = {.max_tokens = (int32_t)r->spec->max_tokens,
                                    .ahead = FTH_BATCHES_AHEAD,
                                    .held = (int)fth_batches_held(r->spec),
                                    .group = r->spec->update_freq,
                                    .fill = fill_store,
                                    .count = count_targets,
                                    .context = r};
    return fth_prefetch_new(r->batcher, &spec, &r->prefetch);
}

fth_err fth_running_start(fth_running *r) {
    r->state = fth_train_state_default();
    r->state.seed = (int64_t)r->spec->recipe.seed;
    r->state.data_hash = fth_folder_hash(&r->folder);
    r->position = FTH_FIRST_POSITION;
    fth_err err = fth_running_writes(r) ? find_start(r) : FTH_OK;
    FTH_TRY(fth_ranks_agree(r->spec->ranks, err));
    FTH_TRY(share_start(r));
    fth_checkpoint_close(r->from);
    r->from = NULL;
    r->wall_before = r->state.wall;
    if (!r->spec->best_by_score) r->best_nll = r->state.best_score;
    r->started = fth_now();
    r->began = r->state.update;
    if (r->resumed && fth_running_writes(r)) FTH_TRY(fth_running_catch_up(r));
    warn_of_limit(r);
    FTH_TRY(warn_of_long(r));
    FTH_TRY(fth_batcher_seek(r->batcher, r->position));
    FTH_TRY(fth_verify_start((const fth_dataset *[]){r->train, r->valid}, 2, &r->verify));
    return make_ahead(r);
}
