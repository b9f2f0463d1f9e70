/* run.c: the loop: updates, validation, checkpoints, log and signals, from a fresh model or from
 * the newest checkpoint. */
#include "model/least_size.h"
#include "run/run.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/machine_memory.h"
#include "base/number.h"
#include "base/progress.h"
#include "base/signals.h"
#include "base/str.h"
#include "base/unfinished.h"
#include "data/prefetch.h"
#include "data/verify.h"
#include "run/batch_memory.h"
#include "run/failure_report.h"
#include "train/evaluate.h"
#include "run/health.h"
#include "run/init_from.h"
#include "run/run_encoder.h"
#include "run/save.h"
#include "train/profile.h"
#include "run/run_log.h"
#include "run/resume_options.h"
#include "run/run_ranks.h"
#include "store/config_json.h"
#include "train/weights.h"

/* A run while it goes on. A zeroed one can be freed. */
typedef struct run {
    const fth_run_spec *spec;
    fth_device *device;
    fth_log *log;
    char *checkpoints;    /* RUN/checkpoints */
    fth_checkpoint *from; /* what it goes on from, until it is loaded; NULL: nothing */
    fth_folder folder;
    fth_dataset *train, *valid;
    fth_run_items items; /* of an encoder */
    fth_batcher *batcher;
    fth_prefetch *prefetch;
    fth_verify *verify; /* reads the data to its end beside the first updates */
    fth_model model;
    fth_trainer trainer;
    fth_telemetry *telemetry; /* NULL: none */
    fth_evaluator evaluator;
    fth_batch_store *stores;   /* [update_freq] */
    const fth_batch **batches; /* [update_freq] */
    fth_run_log lines;
    fth_train_state state;
    fth_position position; /* of the next batch */
    double started;        /* clock when this process began to train */
    double wall_before;    /* seconds of earlier processes */
    int64_t began;         /* update that this process went on from */
    double best_nll;       /* of this process's validations, or of all where the nll decides */
    fth_scorer *scorer;    /* NULL: none */
    bool resumed;          /* from a checkpoint */
    bool evaluates;
    double
        since; /* clock at the last line of the log, and tokens and updates of this process since */
    int64_t tokens, updates;
} run;

static fth_err no_memory(void) {
    return fth_fail(FTH_NO_MEMORY, "no memory for a run");
}

/* Of several ranks one writes, and says what is to be said. */
static bool writes(const run *r) {
    return fth_rank(r->spec->ranks) == 0;
}

/* ---- opening ---- */

fth_err fth_run_config(const fth_run_spec *spec, const fth_folder *folder, const fth_dataset *data,
                       fth_config *c) {
    const fth_data_side *tgt = &data->side[data->n_sides - 1], *src = &data->side[0];
    *c = spec->config;
    if (c->arch != FTH_ENC && data->images)
        return fth_fail(FTH_USAGE, "%s: has pictures; use --arch enc", spec->data);
    if (c->arch == FTH_ENCDEC && data->n_sides != 2)
        return fth_fail(FTH_BAD_INPUT,
                        "%s: has one side, --arch encdec needs source and target; use --arch dec",
                        spec->data);
    c->src_vocab = c->arch == FTH_ENCDEC ? src->vocab : 0;
    c->tgt_vocab = tgt->vocab;
    if (c->arch == FTH_ENCDEC && folder->separate && c->share == FTH_SHARE_ALL)
        return fth_fail(FTH_USAGE,
                        "--share all: needs a joint vocabulary, %s has one for each "
                        "side; use --share dec or none",
                        spec->data);
    c->bos = tgt->special.bos;
    c->pad = tgt->special.pad;
    c->eos = tgt->special.eos;
    c->unk = tgt->special.unk;
    if (c->arch == FTH_ENC) FTH_TRY(fth_run_encoder_config(spec, data, c));
    const bool blocks = c->arch == FTH_DEC ||
                        (c->arch == FTH_ENC && !data->images && c->head == FTH_HEAD_MASKED_TOKEN);
    if (blocks && spec->block > c->max_positions)
        return fth_fail(FTH_USAGE, "blocks of %lld tokens are longer than --max-positions %d",
                        (long long)spec->block, c->max_positions);
    return FTH_OK;
}

/* Labelled sentences and pictures are no blocks. */
static int32_t block_of(const fth_run_spec *s, const fth_item_spec *item) {
    return item->encoder && !item->masking ? 0 : (int32_t)s->block;
}

fth_err fth_run_batcher(const fth_run_spec *s, const fth_dataset *data, const fth_item_spec *item,
                        fth_batcher **out) {
    fth_batch_options options = {.item = *item,
                                 .max_tokens = (int32_t)s->max_tokens,
                                 .max_length = s->config.max_positions,
                                 .strict = s->strict,
                                 .seed = s->recipe.seed,
                                 .block = block_of(s, item)};
    return fth_batcher_new(data, &options, out);
}

static fth_err open_data(run *r) {
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

int64_t fth_run_longest(const fth_run_spec *spec, const fth_dataset *train,
                        const fth_dataset *valid) {
    const bool labelled = spec->config.arch == FTH_ENC && train->labels && !train->images;
    if (spec->block > 0 && !labelled && !train->images) return spec->block;
    int64_t most = 0;
    const fth_dataset *sets[2] = {train, valid};
    for (int i = 0; i < 2; i++)
        for (int s = 0; sets[i] && s < sets[i]->n_sides; s++) {
            const int64_t rows = (int64_t)sets[i]->side[s].longest + 1 + labelled;
            if (rows > most) most = rows;
        }
    if (most > spec->config.max_positions) most = spec->config.max_positions;
    return most < spec->max_tokens ? most : spec->max_tokens;
}

static int64_t longest(const run *r) {
    return fth_run_longest(r->spec, r->train, r->valid);
}

fth_err fth_run_size_check(const fth_run_spec *spec, fth_device *device, const fth_config *config) {
    const int64_t each = 3 * (int64_t)fth_dtype_size(device->full); /* a parameter, two moments */
    const double described = (double)fth_least_description(config);
    char where[64];
    int64_t available, total;
    double kept = 0;
    FTH_TRY(fth_config_validate(config));
    FTH_TRY(device->backend->memory(device, &available, &total));
    if (spec->memory_budget == 0)
        kept = (double)fth_least_kept(config) * (double)spec->max_tokens *
               (double)fth_dtype_size(device->real);
    snprintf(where, sizeof where, "on %s", device->backend->name);
    if (device->backend->on_host)
        return fth_least_size_check(config, each, kept + described, available, where);
    FTH_TRY(fth_least_size_check(config, each, kept, available, where));
    FTH_TRY(fth_machine_memory_under("", &available, &total));
    return fth_least_size_check(config, (int64_t)sizeof(float), described, available,
                                "in this machine");
}

static fth_err open_model(run *r) {
    fth_config config;
    FTH_TRY(fth_run_config(r->spec, &r->folder, r->train, &config));
    const fth_method *method = fth_method_find(config.method);
    const bool trained = r->spec->restore_file[0] || r->spec->init_from[0];
    if (trained && !r->spec->reset_schedule && method && method->settle) method->settle(&config);
    FTH_TRY(fth_run_size_check(r->spec, r->device, &config));
    FTH_TRY(fth_model_init(&r->model, &config));
    FTH_TRY(fth_run_items_init(&r->items, r->spec, &r->folder, r->train, &r->model.config));
    return fth_run_batcher(r->spec, r->train, &r->items.train, &r->batcher);
}

static fth_err open_programs(run *r, int64_t budget) {
    const fth_run_spec *s = r->spec;
    fth_trainer_spec size = {.src_tokens = r->model.config.arch != FTH_DEC ? s->max_tokens : 0,
                             .tgt_tokens = r->model.config.arch != FTH_ENC ? s->max_tokens : 0,
                             .max_len = longest(r),
                             .memory_budget = budget,
                             .batches = s->update_freq,
                             .ranks = s->ranks,
                             .inline_updates = fth_can_update_inline(&s->recipe, s->update_freq,
                                                                     fth_rank_count(s->ranks))};
    fth_run_encoder_room(&r->items, &r->model.config, block_of(s, &r->items.train), &size);
    FTH_TRY(fth_trainer_init(&r->trainer, &r->model, r->device, &s->recipe, &size));
    if (s->telemetry > 0) FTH_TRY(fth_telemetry_new(&r->trainer, &size, &r->telemetry));
    if (!r->valid) return FTH_OK;
    r->evaluates = true;
    return fth_evaluator_init(&r->evaluator, &r->model, r->device, &r->trainer.arenas,
                              r->trainer.program, (int32_t)s->max_tokens, longest(r));
}

static void close_programs(run *r) {
    fth_evaluator_fini(&r->evaluator);
    fth_telemetry_free(r->telemetry);
    r->telemetry = NULL;
    fth_trainer_fini(&r->trainer);
}

static int64_t planned_bytes(const run *r) {
    int64_t bytes = fth_trainer_bytes(&r->trainer) + fth_telemetry_bytes(r->telemetry);
    if (r->evaluates) bytes += fth_program_bytes(r->evaluator.program);
    return bytes;
}

/* The budget is of training, telemetry and validation together: what these take beside is known
 * when they are there, and taken off what training is planned with. */
static fth_err open_within_budget(run *r) {
    const int64_t whole = r->spec->memory_budget;
    for (int64_t budget = whole;;) {
        fth_err err = open_programs(r, budget);
        if (err != FTH_OK && budget < whole)
            return fth_fail_in(err, "with %.1f MiB for validation and telemetry",
                               (double)(whole - budget) / 1048576.0);
        FTH_TRY(err);
        const int64_t over = planned_bytes(r) - whole;
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

static fth_err open_device_side(run *r) {
    const fth_run_spec *s = r->spec;
    const bool has_src = r->model.config.arch != FTH_DEC;
    size_t n = (size_t)s->update_freq;
    FTH_TRY(fth_batch_memory_check(s, s->update_freq));
    FTH_TRY(open_within_budget(r));
    r->stores = calloc(n, sizeof *r->stores);
    r->batches = calloc(n, sizeof *r->batches);
    if (!r->stores || !r->batches) return no_memory();
    int32_t rows = (int32_t)s->max_tokens;
    for (size_t i = 0; i < n; i++) {
        FTH_TRY(fth_batch_store_init(&r->stores[i], has_src ? rows : 0, rows, rows));
        r->batches[i] = &r->stores[i].batch;
    }
    return FTH_OK;
}

/* ---- starting fresh or where an earlier process stopped ---- */

/* Weights of another model: its shapes must be ours. */
static fth_err load_weights_of(run *r, const char *folder) {
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

/* RUN/start: what the pass has made of the initial values, which the seed alone does not give
 * again. */
static fth_err keep_start(const run *r) {
    char *path = fth_strdup_printf("%s/start", r->spec->save_dir);
    if (!path) return no_memory();
    fth_err err = fth_save_model(path, &r->trainer, r->spec->data);
    free(path);
    return err;
}

/* The profiling pass reads the first batch; training begins with it all the same. */
static fth_err profile(run *r) {
    fth_packed packed = {0};
    int64_t capacity[FTH_N_EXTENTS];
    fth_trainer_spec size = {.src_tokens = r->spec->max_tokens,
                             .tgt_tokens = r->spec->max_tokens,
                             .max_len = longest(r)};
    fth_capacities(&size, capacity);
    fth_err err = fth_packed_init(&packed, (int32_t)r->spec->max_tokens);
    if (err == FTH_OK) err = fth_batcher_next(r->batcher, &packed);
    if (err == FTH_OK) err = fth_store_packed(&r->stores[0], &packed, &r->model.config, 0);
    if (err == FTH_OK) err = fth_profile(&r->trainer, r->batches[0], capacity);
    fth_packed_fini(&packed);
    return err == FTH_OK ? keep_start(r) : err;
}

static void warn(void *context, const char *text) {
    run *r = context;
    fth_log_warn(r->log, "%s", text);
    json_t *line = fth_run_log_line("warn", r->state.update);
    fth_run_log_text(line, "text", text);
    fth_run_log_write(&r->lines, line);
}

/* Weights of a model of another task. */
static fth_err init_from(run *r) {
    const char *folder = r->spec->init_from;
    fth_str said = {0};
    float *flat = malloc(sizeof *flat * (size_t)r->model.params.size);
    if (fth_folder_check_model(&r->folder, folder) != FTH_OK) warn(r, fth_error_message());
    fth_err err =
        flat ? fth_init_from(folder, &r->model, r->spec->recipe.seed, flat, &said) : no_memory();
    if (err == FTH_OK) err = fth_arenas_load(r->device, &r->trainer.arenas, flat);
    if (err == FTH_OK) fth_log_info(r->log, "%s", said.text);
    free(flat);
    fth_str_fini(&said);
    return err;
}

static fth_err start_fresh(run *r) {
    const char *weights = r->spec->restore_file;
    if (r->spec->init_from[0]) return init_from(r);
    if (weights[0]) {
        if (fth_folder_check_model(&r->folder, weights) != FTH_OK) warn(r, fth_error_message());
        return load_weights_of(r, weights);
    }
    fth_err err = fth_trainer_draw(&r->trainer, r->spec->recipe.seed);
    if (err == FTH_OK && fth_profile_wanted(&r->model)) err = profile(r);
    return err;
}

/* Whether the run of a checkpoint is this one: what must be equal is, and what has changed is
 * said. */
static fth_err compare(run *r, const fth_checkpoint *c) {
    const fth_run_spec *s = r->spec;
    fth_str changed = {0};
    if (c->state.data_hash != fth_folder_hash(&r->folder))
        return fth_fail(
            FTH_BAD_CONFIG,
            "%s: is not the data set that %s was begun with, or was made anew from other "
            "text; use another --save-dir",
            s->data, s->save_dir);
    fth_err err = FTH_OK;
    if (c->options) err = fth_run_options_compare(s->save_dir, c->options, s->yaml, &changed);
    if (err == FTH_OK) err = fth_config_expect(&c->model->config, c->model->path, &r->model.config);
    if (err == FTH_OK && c->state.seed != (int64_t)s->recipe.seed)
        err = fth_fail(FTH_BAD_CONFIG, "seed is %lld in %s, now it is %lld",
                       (long long)c->state.seed, c->model->path, (long long)s->recipe.seed);
    if (err == FTH_OK && changed.length)
        fth_log_info(r->log, "%s goes on with %s", s->save_dir, changed.text);
    fth_str_fini(&changed);
    return err;
}

static fth_err resume(run *r, const fth_checkpoint *c) {
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
static fth_err warn_of_long(run *r) {
    int64_t n;
    FTH_TRY(fth_batcher_too_long(r->batcher, &n));
    if (n == 0) return FTH_OK;
    char text[256];
    snprintf(text, sizeof text,
             "%s: %lld of %lld training sentences are longer than --max-positions %d or "
             "--max-tokens %lld and are left out",
             r->spec->data, (long long)n, (long long)r->train->sentences,
             r->spec->config.max_positions, (long long)r->spec->max_tokens);
    warn(r, text);
    return FTH_OK;
}

/* ---- checkpoints ---- */

static double wall(const run *r) {
    return r->wall_before + fth_now() - r->started;
}

static fth_err check_folder(const run *r) {
    if (fth_run_log_is_ours(&r->lines)) return FTH_OK;
    return fth_fail(
        FTH_FAILED,
        "%s: was removed or moved while training wrote there; what was not saved before "
        "is lost",
        r->spec->save_dir);
}

static fth_err log_checkpoint(run *r) {
    json_t *line = fth_run_log_line("checkpoint", r->state.update);
    char path[64];
    snprintf(path, sizeof path, "checkpoints/step-%08lld", (long long)r->state.update);
    fth_run_log_text(line, "path", path);
    return fth_run_log_write(&r->lines, line);
}

/* Without a validation set the newest counts as the best. */
static fth_err settle(const run *r) {
    const bool known = r->state.validated > 0 || !isnan(r->state.best_score);
    const fth_settled s = {.last = r->state.update,
                           .best = !r->evaluates ? r->state.update
                                   : known       ? r->state.best_update
                                                 : -1,
                           .keep = r->spec->keep_last};
    return fth_checkpoint_settle(r->checkpoints, &s);
}

/* The state that is saved knows all that a process needs to go on as this one would: a checkpoint
 * is one step, what follows from it is made again at the next start. */
static fth_err save(run *r) {
    r->state.epoch = r->position.epoch;
    r->state.window = r->position.window;
    r->state.batch = r->position.batch;
    r->state.position = r->position.index;
    r->state.wall = wall(r);
    FTH_TRY(fth_verify_wait(r->verify)); /* nothing is kept of what damaged data has trained */
    FTH_TRY(check_folder(r));
    FTH_TRY(fth_run_log_sync(&r->lines));
    fth_ranks_doing(r->spec->ranks, r->state.update, "saving a checkpoint");
    FTH_TRY(
        fth_save_checkpoint(r->checkpoints, &r->trainer, &r->state, r->spec->yaml, r->spec->data));
    if (!writes(r)) return FTH_OK;
    FTH_TRY(log_checkpoint(r));
    return settle(r);
}

/* What a killed process has not come to after its checkpoint. */
static fth_err catch_up(run *r) {
    bool logged;
    FTH_TRY(fth_run_log_has(&r->lines, "checkpoint", r->state.update, &logged));
    if (!logged) FTH_TRY(log_checkpoint(r));
    return settle(r);
}

/* A limit may be lowered, but what has been trained stays trained. */
static void warn_of_limit(run *r) {
    char text[256];
    if (r->state.update <= r->spec->max_update) return;
    snprintf(text, sizeof text,
             "%s is already at update %lld, beyond --max-update %lld; nothing is left to train",
             r->spec->save_dir, (long long)r->state.update, (long long)r->spec->max_update);
    warn(r, text);
}

/* What one process does to begin or to go on; of several ranks, rank 0. */
static fth_err find_start(run *r) {
    return r->from ? resume(r, r->from) : start_fresh(r);
}

/* The others get it from there. */
static fth_err share_start(run *r) {
    fth_ranks *ranks = r->spec->ranks;
    FTH_TRY(fth_ranks_broadcast(ranks, &r->resumed, sizeof r->resumed));
    FTH_TRY(fth_ranks_broadcast(ranks, &r->state, sizeof r->state));
    FTH_TRY(fth_ranks_broadcast(ranks, &r->position, sizeof r->position));
    return r->resumed ? fth_save_load(r->from, &r->trainer) : fth_save_spread(&r->trainer);
}

static fth_err start(run *r) {
    r->state = fth_train_state_default();
    r->state.seed = (int64_t)r->spec->recipe.seed;
    r->state.data_hash = fth_folder_hash(&r->folder);
    r->position = FTH_FIRST_POSITION;
    fth_err err = writes(r) ? find_start(r) : FTH_OK;
    FTH_TRY(fth_ranks_agree(r->spec->ranks, err));
    FTH_TRY(share_start(r));
    fth_checkpoint_close(r->from);
    r->from = NULL;
    r->wall_before = r->state.wall;
    if (!r->spec->best_by_score) r->best_nll = r->state.best_score;
    r->started = fth_now();
    r->began = r->state.update;
    if (r->resumed && writes(r)) FTH_TRY(catch_up(r));
    warn_of_limit(r);
    FTH_TRY(warn_of_long(r));
    FTH_TRY(fth_batcher_seek(r->batcher, r->position));
    FTH_TRY(fth_verify_start((const fth_dataset *[]){r->train, r->valid}, 2, &r->verify));
    return fth_prefetch_new(r->batcher, (int32_t)r->spec->max_tokens, 4, &r->prefetch);
}

/* ---- the folder ---- */

/* What the run goes on from, if there is anything: it must be the same run. */
static fth_err find_checkpoint(run *r) {
    FTH_TRY(fth_checkpoint_clean(r->checkpoints));
    fth_err err = fth_checkpoint_find(r->checkpoints, warn, r, &r->from);
    if (err == FTH_NOT_FOUND) return FTH_OK;
    return err == FTH_OK ? compare(r, r->from) : err;
}

static fth_err open_folder(run *r) {
    if (!r->spec->save_dir[0]) return fth_fail(FTH_USAGE, "--save-dir: must name a folder");
    r->checkpoints = fth_strdup_printf("%s/checkpoints", r->spec->save_dir);
    if (!writes(r)) return r->checkpoints ? FTH_OK : no_memory();
    char *log = fth_strdup_printf("%s/log.jsonl", r->spec->save_dir);
    fth_err err = r->checkpoints && log ? fth_make_dirs(r->checkpoints) : no_memory();
    if (err == FTH_OK) err = fth_run_log_open(&r->lines, log); /* first: nobody else is here then */
    if (err == FTH_OK) err = fth_unfinished_sweep(r->spec->save_dir, NULL);
    if (err == FTH_OK) err = find_checkpoint(r);
    if (err == FTH_OK) err = fth_run_options_keep(r->spec->save_dir, r->spec->yaml);
    free(log);
    return err;
}

static fth_err log_start(run *r) {
    const int64_t planned = planned_bytes(r);
    json_t *line = fth_run_log_line("start", r->state.update);
    fth_run_log_number(line, "parameters", (double)fth_params_count(&r->model.params));
    const int64_t batches = fth_batch_memory(r->spec, r->spec->update_freq);
    fth_run_log_number(line, "planned_bytes", (double)planned);
    fth_run_log_number(line, "batch_bytes", (double)batches);
    fth_run_log_text(line, "device", r->device->backend->name);
    fth_run_log_number(line, "threads", r->device->threads);
    fth_ranks_log_start(line, r->spec->ranks);
    if (r->trainer.exchange) fth_run_log_text(line, "exchange", r->trainer.exchange->name);
    fth_run_log_text(line, "config", r->spec->yaml);
    const fth_config *c = &r->model.config;
    fth_log_info(r->log, "%s, %d encoder and %d decoder layers, width %d: %.2f M parameters",
                 r->model.method.method->title, c->encoder_layers, c->decoder_layers, c->d_model,
                 (double)fth_params_count(&r->model.params) / 1e6);
    int64_t available = 0, total = 0;
    FTH_TRY(r->device->backend->memory(r->device, &available, &total));
    fth_log_info(r->log, "needs %.1f MiB on %s (%.1f MiB more are free), %.1f MiB for batches%s",
                 (double)planned / 1048576.0, r->device->backend->name,
                 (double)available / 1048576.0, (double)batches / 1048576.0,
                 fth_program_recomputed(r->trainer.program) ? ", recomputing layers" : "");
    const char *advice = fth_method_warning(&r->model.method);
    if (advice) warn(r, advice);
    return fth_run_log_write(&r->lines, line);
}

/* ---- the loop ---- */

static fth_err log_train(run *r) {
    fth_train_state *s = &r->state;
    double seconds = fth_now() - r->since, n = (double)s->log_updates;
    json_t *line = fth_run_log_line("train", r->state.update);
    fth_run_log_number(line, "epoch", (double)r->position.epoch);
    fth_run_log_number(line, "loss", s->log_loss / (double)s->log_tokens);
    fth_run_log_number(line, "nll_loss", s->log_nll / (double)s->log_tokens);
    fth_run_log_number(line, "ppl", exp(s->log_nll / (double)s->log_tokens));
    fth_run_log_number(line, "gnorm", s->log_gnorm / n);
    fth_run_log_number(line, "lr", fth_schedule_lr(&r->trainer.recipe.schedule, s->update));
    fth_run_log_number(line, "alpha", s->alpha);
    fth_run_log_number(line, "wps", (double)r->tokens / seconds);
    fth_run_log_number(line, "ups", (double)r->updates / seconds);
    fth_run_log_number(line, "tokens", (double)r->state.tokens);
    fth_run_log_number(line, "wall", wall(r));
    fth_run_log_number(line, "data_wait", fth_prefetch_waited(r->prefetch));
    s->log_loss = s->log_nll = s->log_gnorm = 0;
    s->log_tokens = s->log_updates = 0;
    r->tokens = r->updates = 0;
    r->since = fth_now();
    return fth_run_log_write(&r->lines, line);
}

/* The best score as people know it. */
static double best_shown(const run *r) {
    return r->spec->best_by_score ? -r->state.best_score : r->state.best_score;
}

static fth_err validate(run *r) {
    fth_eval eval;
    fth_eval_spec spec = {.update = r->state.update,
                          .block = block_of(r->spec, &r->items.valid),
                          .item = &r->items.valid};
    fth_ranks_doing(r->spec->ranks, r->state.update, "validating");
    if (writes(r)) FTH_TRY(fth_evaluate(&r->evaluator, r->valid, &spec, &eval));
    FTH_TRY(fth_ranks_broadcast(r->spec->ranks, &eval, sizeof eval));
    double score = NAN;
    if (r->scorer && writes(r))
        FTH_TRY(fth_scorer_run(r->scorer, &r->model, r->device, &r->trainer.arenas, &score));
    FTH_TRY(fth_ranks_broadcast(r->spec->ranks, &score, sizeof score));
    const double measure = r->spec->best_by_score ? -score : eval.nll; /* less is better */
    r->state.valid_nll = eval.nll;
    r->best_nll = fmin(r->best_nll, eval.nll);
    const bool improved = !(measure >= r->state.best_score);
    r->state.validated = r->state.update;
    if (improved) {
        r->state.best_score = measure;
        r->state.best_update = r->state.update;
        r->state.patience = 0;
    } else {
        r->state.patience++;
    }
    char scored[40] = "";
    const char *name = fth_score_name(r->spec->score.kind);
    if (r->scorer) snprintf(scored, sizeof scored, ", %s %.2f", name, score);
    fth_log_info(r->log, "update %lld: valid nll %.4f, ppl %.2f%s%s", (long long)r->state.update,
                 eval.nll, exp(eval.nll), scored, improved ? ", best" : "");
    json_t *line = fth_run_log_line("valid", r->state.update);
    fth_run_log_text(line, "split", "valid");
    fth_run_log_number(line, "nll_loss", eval.nll);
    fth_run_log_number(line, "ppl", exp(eval.nll));
    if (r->scorer) fth_run_log_number(line, name, score);
    fth_run_log_number(line, "best", best_shown(r));
    if (!isnan(eval.encoder_cosine))
        fth_run_log_number(line, "encoder_cosine", eval.encoder_cosine);
    return fth_run_log_write(&r->lines, line);
}

/* Validation and checkpoint belong together: the state that is saved knows the score. One that a
 * signal ends is made when the run goes on. */
static fth_err validate_and_save(run *r, bool with_validation) {
    fth_err err = with_validation && r->evaluates ? validate(r) : FTH_OK;
    return err == FTH_OK || err == FTH_STOPPED ? save(r) : err;
}

/* Fetches the batches of one update. */
static fth_err next_batches(run *r) {
    for (int64_t i = 0; i < r->spec->update_freq; i++) {
        const fth_packed *packed = NULL;
        FTH_TRY(fth_prefetch_next(r->prefetch, &packed));
        FTH_TRY(fth_store_packed(&r->stores[i], packed, &r->model.config, 0));
        r->position = packed->next;
    }
    return FTH_OK;
}

/* RUN/diverged.json; the caller's error is about the run, so one of the report's is only warned of.
 * A process that has made no update has nothing to add to what an earlier one wrote. */
static void report_failure(run *r, const fth_failure *f) {
    if (!writes(r)) return;
    char *path = fth_strdup_printf("%s/diverged.json", r->spec->save_dir);
    if (path && f->update == r->began && fth_file_exists(path)) {
        free(path);
        return;
    }
    if (!path || fth_diverge_write(path, &r->trainer, r->telemetry, f, r->log) != FTH_OK)
        fth_log_warn(r->log, "no report of the failure: %s", fth_error_message());
    free(path);
}

static fth_err diverged(run *r, const fth_update *u) {
    char where[160], reason[320];
    int64_t update = r->state.update + 1;
    fth_nonfinite first;
    FTH_TRY(fth_health_first_nonfinite(&r->trainer, update, r->batches[0], &first));
    fth_nonfinite_text(&first, where, sizeof where);
    json_t *line = fth_run_log_line("diverged", update);
    fth_run_log_number(line, "loss", u->loss);
    fth_run_log_number(line, "gnorm", u->gnorm);
    fth_run_log_text(line, "where", where);
    FTH_TRY(fth_run_log_write(&r->lines, line));
    snprintf(reason, sizeof reason, "loss %s, gradient norm %s; first value that is not finite: %s",
             fth_shown_number(u->loss).text, fth_shown_number(u->gnorm).text, where);
    report_failure(r, &(fth_failure){.kind = FTH_FAULT_NONFINITE,
                                     .reason = reason,
                                     .update = update,
                                     .max_update = r->spec->max_update,
                                     .loss = u->loss,
                                     .gnorm = u->gnorm,
                                     .encoder_cosine = NAN,
                                     .nonfinite = &first});
    return fth_fail(FTH_DIVERGED,
                    "training diverged at update %lld: %s. %s; %s/diverged.json has what was "
                    "measured and what usually helps",
                    (long long)update, reason,
                    fth_folder_has(r->checkpoints, "last") ? "The last good checkpoint is kept"
                                                           : "There is no checkpoint yet",
                    r->spec->save_dir);
}

/* Is an update watched? The first one is, for it shows how the model begins. */
static bool is_watched(const run *r, int64_t update) {
    return r->telemetry && (update == 1 || update % r->spec->telemetry == 0);
}

static fth_err one_update(run *r, fth_update *u) {
    int64_t update = r->state.update + 1;
    int n = (int)r->spec->update_freq;
    FTH_TRY(check_folder(r));
    FTH_TRY(fth_verify_found(r->verify));
    const fth_position before = r->position;
    FTH_TRY(next_batches(r));
    fth_err err = is_watched(r, update)
                      ? fth_telemetry_update(r->telemetry, update, r->batches, n, u)
                      : fth_trainer_update(&r->trainer, update, r->batches, n, u);
    if (err == FTH_STOPPED) r->position = before; /* as if it had not begun */
    FTH_TRY(err);
    if (is_watched(r, update)) FTH_TRY(fth_telemetry_log(r->telemetry, &r->lines));
    if (!u->finite) return diverged(r, u);
    r->state.update++;
    if (r->state.update == 1) r->state.first_nll = u->nll;
    r->state.last_nll = u->nll;
    r->state.alpha = u->alpha;
    r->state.tokens += u->tokens;
    r->model.config.step = r->state.update;
    r->state.log_loss += u->loss * (double)u->tokens;
    r->state.log_nll += u->nll * (double)u->tokens;
    r->state.log_gnorm += u->gnorm;
    r->state.log_tokens += u->tokens;
    r->state.log_updates++;
    r->tokens += u->tokens;
    r->updates++;
    return FTH_OK;
}

/* Has a limit of the run been met? */
static bool finished(const run *r) {
    const fth_run_spec *s = r->spec;
    if (r->state.update >= s->max_update) return true;
    if (s->max_epoch > 0 && r->position.epoch > s->max_epoch) return true;
    return s->patience > 0 && r->state.patience >= s->patience;
}

/* Whether another update is to be made. The clock and signals are not the same on all ranks: they
 * agree. */
static fth_err goes_on(run *r, int *signal, bool *result) {
    const fth_run_spec *s = r->spec;
    *result = false;
    if (finished(r)) return FTH_OK;
    *signal = fth_signals_pending();
    bool late = s->stop_seconds > 0 && fth_now() - r->started >= s->stop_seconds;
    FTH_TRY(fth_ranks_stop(s->ranks, signal, &late));
    *result = !*signal && !late;
    return FTH_OK;
}

static bool is_due(int64_t update, int64_t interval) {
    return interval > 0 && update % interval == 0;
}

/* Whether the checkpoint that this process goes on from still lacks the validation that its update
 * was due. */
static bool is_unvalidated(const run *r) {
    return r->resumed && r->evaluates && r->state.update > 0 &&
           r->state.validated != r->state.update &&
           is_due(r->state.update, r->spec->validate_interval);
}

static fth_err loop(run *r, int *signal) {
    fth_progress bar;
    char extra[80];
    const int64_t update = r->state.update, most = r->spec->max_update;
    fth_progress_init(&bar, r->log, fth_real_clock(), "train", "updates", update,
                      update > most ? update : most);
    r->since = fth_now();
    int64_t saved = r->resumed ? r->state.update : -1;
    fth_update u = {0};
    fth_err err = FTH_OK;
    if (is_unvalidated(r)) FTH_TRY_OR(err, validate_and_save(r, true), done);
    for (bool on;;) {
        FTH_TRY_OR(err, goes_on(r, signal, &on), done);
        if (!on) break;
        err = one_update(r, &u);
        if (err == FTH_STOPPED) continue; /* the signal is still there */
        if (err != FTH_OK) goto done;
        int64_t t = r->state.update;
        snprintf(extra, sizeof extra, "loss %.3f, %.0f tokens/s", u.nll,
                 (double)r->tokens / (fth_now() - r->since + 1e-9));
        fth_progress_update(&bar, t, extra);
        if (is_due(t, r->spec->log_interval)) FTH_TRY_OR(err, log_train(r), done);
        bool validation = is_due(t, r->spec->validate_interval);
        if (validation || is_due(t, r->spec->save_interval)) {
            const double begun = fth_now();
            FTH_TRY_OR(err, validate_and_save(r, validation), done);
            r->since += fth_now() - begun; /* the speed is that of training */
            saved = t;
        }
    }
    err = FTH_OK;
    if (r->state.log_updates > 0) FTH_TRY_OR(err, log_train(r), done);
    const bool unjudged = r->evaluates && *signal == 0 && r->state.validated != r->state.update;
    if (saved != r->state.update || unjudged) err = validate_and_save(r, *signal == 0);
    if (r->evaluates && r->state.validated != r->state.update) *signal = fth_signals_pending();
done:
    fth_progress_end(&bar);
    return err;
}

static fth_err judge(run *r, fth_judgement *out) {
    *out = (fth_judgement){.kind = FTH_NO_FAULT};
    if (r->evaluates && r->state.update >= r->spec->judge_after)
        return fth_health_judge(&r->evaluator, r->valid, r->state.update, (int32_t)r->spec->block,
                                r->best_nll, r->state.valid_nll, r->folder.target_unigram_nll, out);
    if (r->state.update > r->began || !isnan(r->state.first_nll))
        fth_health_judge_short(r->state.first_nll,
                               r->evaluates ? r->state.valid_nll : r->state.last_nll, out);
    return FTH_OK;
}

static fth_err end(run *r, fth_run_result *result) {
    fth_judgement j;
    if (writes(r)) FTH_TRY(judge(r, &j));
    FTH_TRY(fth_ranks_broadcast(r->spec->ranks, &j, sizeof j));
    bool failed = j.kind != FTH_NO_FAULT;
    json_t *line = fth_run_log_line(failed ? "diverged" : "end", r->state.update);
    fth_run_log_number(line, "best", best_shown(r));
    fth_run_log_number(line, "wall", result->seconds);
    if (failed) fth_run_log_text(line, "reason", j.reason);
    FTH_TRY(fth_run_log_write(&r->lines, line));
    if (!failed) return FTH_OK;
    report_failure(r, &(fth_failure){.kind = j.kind,
                                     .reason = j.reason,
                                     .update = r->state.update,
                                     .max_update = r->spec->max_update,
                                     .loss = r->evaluates ? r->state.valid_nll : r->state.last_nll,
                                     .gnorm = NAN,
                                     .encoder_cosine = j.encoder_cosine});
    return fth_fail(FTH_DIVERGED,
                    "training failed: %s. %s/diverged.json has what was measured and what usually "
                    "helps",
                    j.reason, r->spec->save_dir);
}

static void run_fini(run *r) {
    fth_scorer_free(r->scorer);
    fth_verify_free(r->verify);
    fth_prefetch_free(r->prefetch);
    fth_batcher_free(r->batcher);
    fth_run_items_fini(&r->items);
    close_programs(r);
    for (int64_t i = 0; r->stores && i < r->spec->update_freq; i++)
        fth_batch_store_fini(&r->stores[i]);
    free(r->stores);
    free(r->batches);
    fth_model_fini(&r->model);
    fth_dataset_free(r->valid);
    fth_dataset_free(r->train);
    fth_folder_fini(&r->folder);
    fth_checkpoint_close(r->from);
    fth_run_log_close(&r->lines);
    free(r->checkpoints);
}

/* What ranks do each by itself. */
static fth_err prepare(run *r) {
    fth_ranks_doing(r->spec->ranks, 0, "opening the data set and the device");
    FTH_TRY(open_data(r));
    FTH_TRY(open_model(r));
    FTH_TRY(open_folder(r));
    return open_device_side(r);
}

fth_err fth_run(const fth_run_spec *spec, fth_device *device, fth_log *log,
                fth_run_result *result) {
    int signal = 0;
    fth_signals before;
    run r = {.spec = spec, .device = device, .log = log, .best_nll = NAN, .lines = {.fd = -1}};
    *result = (fth_run_result){.best_nll = NAN, .final_nll = NAN, .best_score = NAN};
    fth_err err = fth_ranks_agree(spec->ranks, prepare(&r));
    if (err != FTH_OK) goto done;
    FTH_TRY_OR(err, fth_ranks_same_run(spec->ranks, spec->yaml, fth_folder_hash(&r.folder)), done);
    FTH_TRY_OR(err, start(&r), done);
    FTH_TRY_OR(err, log_start(&r), done);
    fth_signals_catch(&before);
    /* alone: where others wait for a part of the update, it is made to its end */
    device->stop = fth_rank_count(spec->ranks) == 1 ? fth_signals_flag() : NULL;
    err = loop(&r, &signal);
    device->stop = NULL;
    fth_signals_release(&before);
    if (err != FTH_OK) goto done;
    *result =
        (fth_run_result){.updates = r.state.update,
                         .best_nll = r.spec->best_by_score ? (double)NAN : r.state.best_score,
                         .best_score = r.spec->best_by_score ? -r.state.best_score : (double)NAN,
                         .final_nll = r.state.valid_nll,
                         .seconds = wall(&r)};
    if (signal)
        err = fth_fail(signal == SIGINT ? FTH_STOPPED : FTH_TERMINATED,
                       "stopped by a signal at update %lld; the same command goes on from here",
                       (long long)r.state.update);
    else
        err = end(&r, result);
done:
    run_fini(&r);
    return err;
}
