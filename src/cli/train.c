/* train.c: fathom train DATASET: trains a model, or goes on with a run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/device/device.h"
#include "base/log.h"
#include "figure/diverged.h"
#include "cli/train_options.h"
#include "cli/model_path.h"
#include "cli/verb.h"

/* The figure of the report that a failed run leaves. What failed stays the error. */
static fth_err draw_failure(const char *run, fth_log *log) {
    char *message = strdup(fth_error_message());
    fth_err err = message ? fth_plot_diverged(run) : FTH_NO_MEMORY;
    if (err != FTH_OK && message) fth_log_warn(log, "%s", fth_error_message());
    err = fth_fail(FTH_DIVERGED, "%s", message ? message : "training failed");
    free(message);
    return err;
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
    fth_str yaml = {0};
    fth_run_spec spec;
    fth_err err =
        fth_verb_options(&usage, options.groups, FTH_RUN_GROUPS, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) {
        err = fth_run_spec_from_options(&options, &spec);
        if (err == FTH_OK) err = fth_options_dump(options.groups, FTH_RUN_GROUPS, &yaml);
        spec.yaml = yaml.text;
        if (err == FTH_OK) err = fth_model_path(&spec.restore_file, &parsed.arena);
        if (err == FTH_OK)
            err = train(parsed.positionals[0], &spec, &options.device, options.train.quiet);
    }
    fth_str_fini(&yaml);
    fth_parsed_fini(&parsed);
    return err;
}
