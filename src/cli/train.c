/* train.c: fathom train DATASET: trains a model, or goes on with a run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/device/device.h"
#include "base/cores.h"
#include "base/launcher.h"
#include "base/log.h"
#include "cli/devices.h"
#include "cli/self_start.h"
#include "cli/train_options.h"
#include "cli/model_path.h"
#include "cli/verb.h"
#include "figure/diverged.h"
#include "run/resume_options.h"

/* The figure of the report that a failed run leaves. What failed stays the error. */
static fth_err draw_failure(const char *run, fth_log *log) {
    char *message = strdup(fth_error_message());
    fth_err err = message ? fth_plot_diverged(run) : FTH_NO_MEMORY;
    if (err != FTH_OK && message) fth_log_warn(log, "%s", fth_error_message());
    err = fth_fail(FTH_DIVERGED, "%s", message ? message : "training failed");
    free(message);
    return err;
}

static fth_err train(fth_run_spec *spec, const char *name, const fth_device_options *d,
                     bool quiet) {
    fth_log log;
    fth_device *device = NULL;
    fth_run_result result;
    const bool first = fth_rank(spec->ranks) == 0;
    fth_log_init(&log, stderr, quiet);
    FTH_TRY(fth_ranks_agree(spec->ranks,
                            fth_device_open(name, d->precision, (int)d->threads, &device)));
    fth_err err = fth_run(spec, device, first ? &log : NULL, &result);
    fth_device_close(device);
    if (!first) return err;
    if (err == FTH_DIVERGED) return draw_failure(spec->save_dir, &log);
    if (err == FTH_OK && !isnan(result.best_nll))
        printf("%lld updates in %.0f s, best valid nll %.4f, ppl %.2f\n", (long long)result.updates,
               result.seconds, result.best_nll, exp(result.best_nll));
    else if (err == FTH_OK && !isnan(result.best_score))
        printf("%lld updates in %.0f s, best valid %s %.2f\n", (long long)result.updates,
               result.seconds, fth_score_name(spec->score.kind), result.best_score);
    else if (err == FTH_OK)
        printf("%lld updates in %.0f s\n", (long long)result.updates, result.seconds);
    return err;
}

/* The batches of an update where nobody says how many: as the run has them, or one of each rank. */
static fth_err settle_update_freq(fth_run_options *o, fth_ranks *ranks) {
    if (fth_option_was_set(o->groups, FTH_RUN_GROUPS, "update_freq")) return FTH_OK;
    int64_t stored = -1;
    fth_err err = fth_rank(ranks) == 0
                      ? fth_run_options_stored(o->train.save_dir, "update-freq", &stored)
                      : FTH_OK;
    FTH_TRY(fth_ranks_agree(ranks, err));
    FTH_TRY(fth_ranks_broadcast(ranks, &stored, sizeof stored));
    const int64_t stages = o->train.pipeline > 0 ? o->train.pipeline : 1;
    const int64_t groups = fth_rank_count(ranks) / stages;
    o->train.update_freq = stored > 0 ? stored : groups > 0 ? groups : 1;
    fth_option_give(o->groups, FTH_RUN_GROUPS, "update_freq");
    return FTH_OK;
}

/* --ranks and --devices where nobody has started them: this process becomes their launcher. Where
 * somebody has, the numbers must be the same. */
static fth_err start_ranks(fth_run_options *o, int argc, char **argv) {
    int devices = 0;
    FTH_TRY(fth_devices_count(o->train.devices, &devices));
    if (o->train.ranks == 0 && devices > 0) o->train.ranks = devices;
    const int64_t ranks = o->train.ranks;
    if (ranks <= 1 || fth_launched()) return FTH_OK;
    const int cores = fth_cores_usable().cores;
    const int64_t threads = o->device.threads > 0 ? 0 : cores > ranks ? cores / ranks : 1;
    return fth_self_start("train", ranks, threads, argc, argv);
}

static fth_err check_ranks(const fth_ranks *ranks, int64_t wanted) {
    if (wanted == 0 || wanted == fth_rank_count(ranks)) return FTH_OK;
    return fth_fail(FTH_USAGE, "--ranks %lld: the launcher has started %d", (long long)wanted,
                    fth_rank_count(ranks));
}

/* A run is not of so many ranks, nor stages: the options that say so are not stored with it, and
 * therefore compared here. */
static fth_err settle_ranks(fth_run_options *o, fth_ranks *ranks) {
    char stages[24];
    FTH_TRY(fth_ranks_agree(ranks, check_ranks(ranks, o->train.ranks)));
    snprintf(stages, sizeof stages, "%lld", (long long)o->train.pipeline);
    FTH_TRY(fth_ranks_same(ranks, "--pipeline", stages));
    FTH_TRY(settle_update_freq(o, ranks));
    fth_option_forget(o->groups, FTH_RUN_GROUPS, "ranks");
    fth_option_forget(o->groups, FTH_RUN_GROUPS, "pipeline");
    return FTH_OK;
}

static fth_err train_from_options(const char *data, fth_run_options *o, fth_arena *arena) {
    fth_run_spec spec;
    fth_ranks *ranks = NULL;
    fth_str yaml = {0};
    FTH_TRY(fth_ranks_open(o->train.rank_timeout, &ranks));
    fth_err err = settle_ranks(o, ranks);
    if (err == FTH_OK) err = fth_ranks_agree(ranks, fth_run_spec_from_options(o, &spec));
    const char *devices = o->train.devices;
    o->train.devices = ""; /* nor is it of these */
    if (err == FTH_OK) err = fth_options_dump(o->groups, FTH_RUN_GROUPS, &yaml);
    if (err == FTH_OK) err = fth_model_path(&spec.restore_file, arena);
    if (err == FTH_OK) err = fth_model_path(&spec.init_from, arena);
    if (err == FTH_OK) {
        spec.data = data;
        spec.ranks = ranks;
        spec.yaml = yaml.text;
        const char *device = o->device.device;
        fth_devices_choose(devices, fth_rank(ranks), &device);
        err = train(&spec, device, &o->device, o->train.quiet);
    }
    fth_str_fini(&yaml);
    fth_ranks_close(ranks, err);
    return err;
}

fth_err fth_verb_train(int argc, char **argv) {
    fth_run_options options;
    fth_run_options_init(&options);
    const fth_usage usage = {"fathom train", "DATASET",
                             "Trains a model on a data set made by fathom prepare. Killed at any "
                             "moment, the same command "
                             "goes on where it was and ends with the same weights.",
                             1, 1};
    fth_parsed parsed;
    bool done;
    fth_err err =
        fth_verb_options(&usage, options.groups, FTH_RUN_GROUPS, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) err = start_ranks(&options, argc, argv);
    if (err == FTH_OK && !done)
        err = train_from_options(parsed.positionals[0], &options, &parsed.arena);
    fth_parsed_fini(&parsed);
    return err;
}
