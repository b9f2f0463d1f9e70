/* run_open.c: opens what a run is made of: data, model, folder with the newest checkpoint, and the
 * programs on the device, within the memory budget. */
#include "run/running.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/str.h"
#include "base/unfinished.h"
#include "run/memory_check.h"
#include "run/resume_options.h"
#include "run/run_encoder.h"
#include "store/config_json.h"
#include "train/pipeline.h"

static fth_err open_data(fth_running *r) {
    const fth_run_spec *s = r->spec;
    FTH_TRY(fth_folder_open(&r->folder, s->data));
    FTH_TRY(fth_folder_check_tokenizers(&r->folder));
    FTH_TRY(fth_folder_split(&r->folder, FTH_TRAIN, &r->train));
    if (s->patience > 0 && !r->folder.has_split[FTH_VALID])
        return fth_fail(FTH_USAGE,
                        "--patience %lld: needs validations, and %s has no split 'valid'",
                        (long long)s->patience, s->data);
    if (r->folder.has_split[FTH_VALID]) FTH_TRY(fth_folder_split(&r->folder, FTH_VALID, &r->valid));
    if (s->score.kind != FTH_SCORE_NONE) FTH_TRY(fth_scorer_new(&s->score, &r->folder, &r->scorer));
    return FTH_OK;
}

static fth_err open_model(fth_running *r) {
    fth_config config;
    FTH_TRY(fth_run_config(r->spec, &r->folder, r->train, &config));
    const fth_method *method = fth_method_find(config.method);
    const bool trained = r->spec->restore_file[0] || r->spec->init_from[0];
    if (trained && !r->spec->reset_schedule && method && method->settle) method->settle(&config);
    FTH_TRY(fth_run_size_check(r->spec, r->device, &config));
    FTH_TRY(fth_model_init(&r->model, &config));
    fth_str said = {0};
    fth_err err = fth_rates_set(&r->spec->rates, &r->model, &said);
    if (err == FTH_OK && said.length) fth_log_info(r->log, "%s", said.text);
    fth_str_fini(&said);
    FTH_TRY(err);
    fth_model_scale_init(&r->model, r->spec->init_scale);
    FTH_TRY(fth_run_items_init(&r->items, r->spec, &r->folder, r->train, &r->model.config));
    return fth_run_batcher(r->spec, r->train, &r->items.train, &r->batcher);
}

int64_t fth_running_longest(const fth_running *r) {
    return fth_run_longest(r->spec, r->train, r->valid);
}

static fth_err open_programs(fth_running *r, int64_t budget) {
    const fth_run_spec *s = r->spec;
    FTH_TRY(fth_pipeline_check(s->ranks, r->device, (int)s->pipeline));
    if (s->pipeline > 1 && s->telemetry > 0)
        return fth_fail(FTH_USAGE, "--telemetry %lld: stages of a --pipeline are not measured; 0",
                        (long long)s->telemetry);
    if (s->pipeline > 1 && s->reduce_fast)
        return fth_fail(FTH_USAGE, "--reduce fast: a --pipeline adds up in the exact order");
    fth_trainer_spec size = {.src_tokens = r->model.config.arch != FTH_DEC ? s->max_tokens : 0,
                             .tgt_tokens = r->model.config.arch != FTH_ENC ? s->max_tokens : 0,
                             .max_len = fth_running_longest(r),
                             .memory_budget = budget,
                             .batches = s->update_freq,
                             .ranks = s->ranks,
                             .stages = (int)s->pipeline,
                             .own_first = s->reduce_fast,
                             .inline_updates = fth_can_update_inline(&s->recipe, s->update_freq,
                                                                     fth_rank_count(s->ranks))};
    fth_run_encoder_room(&r->items, &r->model.config, fth_run_block(s, &r->items.train), &size);
    FTH_TRY(fth_trainer_init(&r->trainer, &r->model, r->device, &s->recipe, &size));
    if (s->telemetry > 0) FTH_TRY(fth_telemetry_new(&r->trainer, &size, &r->telemetry));
    if (!r->valid) return FTH_OK;
    r->evaluates = true;
    return fth_evaluator_init(&r->evaluator, &r->model, r->device, &r->trainer.arenas,
                              r->trainer.program, (int32_t)s->max_tokens, fth_running_longest(r));
}

static void close_programs(fth_running *r) {
    fth_evaluator_fini(&r->evaluator);
    fth_telemetry_free(r->telemetry);
    r->telemetry = NULL;
    fth_trainer_fini(&r->trainer);
}

int64_t fth_running_bytes(const fth_running *r) {
    int64_t bytes = fth_trainer_bytes(&r->trainer) + fth_telemetry_bytes(r->telemetry);
    if (r->evaluates) bytes += fth_program_bytes(r->evaluator.program);
    return bytes;
}

/* The budget is of training, telemetry and validation together: what these take beside is known
 * when they are there, and taken off what training is planned with. */
static fth_err open_within_budget(fth_running *r) {
    const int64_t whole = r->spec->memory_budget;
    for (int64_t budget = whole;;) {
        fth_err err = open_programs(r, budget);
        if (err != FTH_OK && budget < whole)
            return fth_fail_in(err, "with %.1f MiB for validation and telemetry",
                               (double)(whole - budget) / 1048576.0);
        FTH_TRY(err);
        const int64_t over = fth_running_bytes(r) - whole;
        if (whole == 0 || over <= 0) return FTH_OK;
        close_programs(r);
        budget -= over;
        if (budget <= 0)
            return fth_fail(FTH_NO_MEMORY,
                            "validation and telemetry alone need more than the --memory-budget of "
                            "%.1f MiB",
                            (double)whole / 1048576.0);
    }
}

static fth_err open_device_side(fth_running *r) {
    const fth_run_spec *s = r->spec;
    const bool has_src = r->model.config.arch != FTH_DEC;
    const int32_t rows = (int32_t)s->max_tokens;
    FTH_TRY(fth_batch_memory_check(s));
    FTH_TRY(open_within_budget(r));
    r->n_stores = fth_batches_held(s) + FTH_BATCHES_AHEAD;
    r->stores = calloc((size_t)r->n_stores, sizeof *r->stores);
    if (!r->stores) return fth_no_memory("a run");
    for (int64_t i = 0; i < r->n_stores; i++)
        FTH_TRY(fth_batch_store_init(&r->stores[i], has_src ? rows : 0, rows, rows));
    return FTH_OK;
}

/* Whether the run of a checkpoint is this one: what must be equal is, and what has changed is
 * said. */
static fth_err compare(fth_running *r, const fth_checkpoint *c) {
    const fth_run_spec *s = r->spec;
    fth_str changed = {0};
    if (c->state.data_hash != fth_folder_hash(&r->folder))
        return fth_fail(
            FTH_BAD_CONFIG,
            "%s: is not the data set that %s was begun with, or was made anew from other "
            "text; use another --save-dir",
            s->data, s->save_dir);
    fth_err err = FTH_OK;
    if (c->options) err = fth_run_options_compare(s, c->options, &changed);
    if (err == FTH_OK) err = fth_config_expect(&c->model->config, c->model->path, &r->model.config);
    if (err == FTH_OK && c->state.seed != (int64_t)s->recipe.seed)
        err = fth_fail(FTH_BAD_CONFIG, "seed is %lld in %s, now it is %lld",
                       (long long)c->state.seed, c->model->path, (long long)s->recipe.seed);
    if (err == FTH_OK && changed.length)
        fth_log_info(r->log, "%s goes on with %s", s->save_dir, changed.text);
    fth_str_fini(&changed);
    return err;
}

/* What the run goes on from, if there is anything: it must be the same run. */
static fth_err find_checkpoint(fth_running *r) {
    FTH_TRY(fth_checkpoint_clean(r->checkpoints));
    fth_err err = fth_checkpoint_find(r->checkpoints, fth_running_warn, r, &r->from);
    if (err == FTH_NOT_FOUND) return FTH_OK;
    return err == FTH_OK ? compare(r, r->from) : err;
}

static fth_err open_folder(fth_running *r) {
    if (!r->spec->save_dir[0]) return fth_fail(FTH_USAGE, "--save-dir: must name a folder");
    r->checkpoints = fth_strdup_printf("%s/checkpoints", r->spec->save_dir);
    if (!fth_running_writes(r)) return r->checkpoints ? FTH_OK : fth_no_memory("a run");
    char *log = fth_strdup_printf("%s/log.jsonl", r->spec->save_dir);
    fth_err err = r->checkpoints && log ? fth_make_dirs(r->checkpoints) : fth_no_memory("a run");
    if (err == FTH_OK) err = fth_run_log_open(&r->lines, log); /* first: nobody else is here then */
    if (err == FTH_OK && r->spec->tensorboard)
        err = fth_events_open(&r->lines.events, r->spec->save_dir);
    if (err == FTH_OK) err = fth_unfinished_sweep(r->spec->save_dir, NULL);
    if (err == FTH_OK) err = find_checkpoint(r);
    if (err == FTH_OK) err = fth_run_options_keep(r->spec);
    free(log);
    return err;
}

/* What ranks do each by itself. */
fth_err fth_running_open(fth_running *r) {
    fth_ranks_doing(r->spec->ranks, 0, "opening the data set and the device");
    FTH_TRY(open_data(r));
    FTH_TRY(open_model(r));
    FTH_TRY(open_folder(r));
    return open_device_side(r);
}

void fth_running_close(fth_running *r) {
    fth_scorer_free(r->scorer);
    fth_verify_free(r->verify);
    fth_prefetch_free(r->prefetch);
    fth_batcher_free(r->batcher);
    fth_run_items_fini(&r->items);
    close_programs(r);
    for (int64_t i = 0; r->stores && i < r->n_stores; i++) fth_batch_store_fini(&r->stores[i]);
    free(r->stores);
    fth_model_fini(&r->model);
    fth_dataset_free(r->valid);
    fth_dataset_free(r->train);
    fth_folder_fini(&r->folder);
    fth_checkpoint_close(r->from);
    fth_run_log_close(&r->lines);
    free(r->checkpoints);
}
