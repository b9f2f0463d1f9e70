/* train.c: fathom train DATASET: trains a model, or goes on with a run. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/device/device.h"
#include "base/log.h"
#include "cli/groups.h"
#include "cli/verb.h"
#include "train/run.h"

#define TRAIN_OPTIONS(X)                                                                           \
    X(STR, save_dir, "run", FTH_SHOWN_AS("FOLDER"),                                                \
      "run folder: checkpoints, log.jsonl, config.yaml; an unfinished run there goes on")          \
    X(STR, restore_file, "", FTH_SHOWN_AS("MODEL"), "start from the weights of this model")        \
    X(BOOL, reset_schedule, "false", FTH_ANY,                                                      \
      "with --restore-file: begin the method's schedule anew, instead of at its end")              \
    X(I64, seed, "1", FTH_MIN(0), "of initial values, dropout and the order of the data")          \
    X(I64, max_tokens, "4096", FTH_RANGE(1, 16777216),                                             \
      "source tokens, and target tokens, of a batch at most")                                      \
    X(I64, update_freq, "1", FTH_RANGE(1, 65536), "batches whose gradients make one update")       \
    X(I64, max_epoch, "0", FTH_MIN(0), "passes over the data; 0: no limit")                        \
    X(I64, patience, "0", FTH_MIN(0), "validations without a better score before it ends; 0: off") \
    X(I64, save_interval_updates, "1000", FTH_MIN(0), "updates between checkpoints")               \
    X(I64, validate_interval_updates, "1000", FTH_MIN(0), "updates between validations")           \
    X(I64, keep_last, "5", FTH_MIN(0), "checkpoints to keep, beside the best; 0: all")             \
    X(I64, log_interval, "100", FTH_MIN(1), "updates between lines of log.jsonl")                  \
    X(I64, telemetry, "0", FTH_MIN(0),                                                             \
      "updates between measurements of every sub-layer in log.jsonl (doc/telemetry.md); 0: none")  \
    X(F64, stop_time_hours, "0", FTH_MIN(0), "end, with a checkpoint, after so long; 0: off")      \
    X(I64, judge_after, "", FTH_MIN(0),                                                            \
      "updates before a run that learns nothing counts as failed; default: the larger of 400 "     \
      "and the warm-up")                                                                           \
    X(SIZE, memory_budget, "", FTH_ANY,                                                            \
      "memory to stay within, by recomputing layers; default: no limit")                           \
    X(I64, tokens_per_sample, "512", FTH_RANGE(2, 65535),                                          \
      "block length of a language model (--arch dec)")                                             \
    X(BOOL, strict, "false", FTH_ANY, "a sentence that does not fit a batch is an error")          \
    X(BOOL, quiet, "false", FTH_ANY, "no progress, only warnings")
FTH_OPTIONS(train_options, "run", TRAIN_OPTIONS)

enum { N_GROUPS = 4 };

static fth_err make_spec(const train_options *o, const fth_model_options *m,
                         const fth_optimiser_options *a, const fth_option_group *groups,
                         fth_run_spec *spec) {
    *spec = (fth_run_spec){.save_dir = o->save_dir,
                           .restore_file = o->restore_file,
                           .max_tokens = o->max_tokens,
                           .update_freq = o->update_freq,
                           .max_update = a->max_update,
                           .max_epoch = o->max_epoch,
                           .patience = o->patience,
                           .save_interval = o->save_interval_updates,
                           .validate_interval = o->validate_interval_updates,
                           .keep_last = o->keep_last,
                           .log_interval = o->log_interval,
                           .telemetry = o->telemetry,
                           .judge_after = o->judge_after,
                           .stop_seconds = o->stop_time_hours * 3600,
                           .memory_budget = (int64_t)o->memory_budget,
                           .strict = o->strict,
                           .reset_schedule = o->reset_schedule};
    if (!fth_option_was_set(groups, N_GROUPS, "judge_after"))
        spec->judge_after = a->warmup_updates > 400 ? a->warmup_updates : 400;
    FTH_TRY(fth_config_from_options(m, &spec->config));
    FTH_TRY(fth_recipe_from_options(a, &spec->recipe));
    if (spec->config.arch == FTH_DEC) spec->block = o->tokens_per_sample;
    spec->recipe.dropout = true;
    spec->recipe.seed = (uint64_t)o->seed;
    return FTH_OK;
}

static fth_err train(const char *data, fth_run_spec *spec, const fth_device_options *d,
                     bool quiet) {
    fth_log log;
    fth_device *device = NULL;
    fth_run_result result;
    spec->data = data;
    fth_log_init(&log, stderr, quiet);
    FTH_TRY(fth_device_open(d->device, d->precision, (int)d->threads, &device));
    fth_err err = fth_run(spec, device, &log, &result);
    fth_device_close(device);
    if (err == FTH_OK && !isnan(result.best_nll))
        printf("%lld updates in %.0f s, best valid nll %.4f, ppl %.2f\n", (long long)result.updates,
               result.seconds, result.best_nll, exp(result.best_nll));
    else if (err == FTH_OK)
        printf("%lld updates in %.0f s\n", (long long)result.updates, result.seconds);
    return err;
}

fth_err fth_verb_train(int argc, char **argv) {
    train_options options;
    fth_model_options model;
    fth_optimiser_options optimiser;
    fth_device_options device;
    fth_option_group groups[N_GROUPS] = {
        train_options_group(&options), fth_model_options_group(&model),
        fth_optimiser_options_group(&optimiser), fth_device_options_group(&device)};
    const fth_usage usage = {"fathom train", "DATASET",
                             "Trains a model on a data set made by fathom prepare. Killed at any "
                             "moment, the same command "
                             "goes on where it was and ends with the same weights.",
                             1, 1};
    fth_parsed parsed;
    bool done;
    fth_str yaml = {0};
    fth_run_spec spec;
    fth_err err = fth_verb_options(&usage, groups, N_GROUPS, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) {
        err = make_spec(&options, &model, &optimiser, groups, &spec);
        if (err == FTH_OK) err = fth_options_dump(groups, N_GROUPS, &yaml);
        if (err == FTH_OK) {
            spec.yaml = yaml.text;
            err = train(parsed.positionals[0], &spec, &device, options.quiet);
        }
    }
    fth_str_fini(&yaml);
    fth_parsed_fini(&parsed);
    return err;
}
