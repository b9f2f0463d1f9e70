/* train_options.c: turns the options of a run into its spec. */
#include "cli/train_options.h"

void fth_run_options_init(fth_run_options *o) {
    o->groups[0] = fth_train_options_group(&o->train);
    o->groups[1] = fth_model_options_group(&o->model);
    o->groups[2] = fth_optimiser_options_group(&o->optimiser);
    o->groups[3] = fth_device_options_group(&o->device);
}

fth_err fth_run_spec_from_options(const fth_run_options *all, fth_run_spec *spec) {
    const fth_train_options *o = &all->train;
    const fth_model_options *m = &all->model;
    const fth_optimiser_options *a = &all->optimiser;

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
    if (!fth_option_was_set(all->groups, FTH_RUN_GROUPS, "judge_after"))
        spec->judge_after = a->warmup_updates > 400 ? a->warmup_updates : 400;
    FTH_TRY(fth_config_from_options(m, &spec->config));
    FTH_TRY(fth_recipe_from_options(a, &spec->recipe));
    if (spec->config.arch == FTH_DEC) spec->block = o->tokens_per_sample;
    spec->recipe.dropout = true;
    spec->recipe.seed = (uint64_t)o->seed;
    return FTH_OK;
}
