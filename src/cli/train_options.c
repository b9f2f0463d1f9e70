/* train_options.c: turns the options of a run into its spec. */
#include "cli/train_options.h"

#include <string.h>

#include "base/option_uses.h"

void fth_run_options_init(fth_run_options *o) {
    o->groups[0] = fth_train_options_group(&o->train);
    o->groups[1] = fth_model_options_group(&o->model);
    o->groups[2] = fth_encoder_options_group(&o->encoder);
    o->groups[3] = fth_optimiser_options_group(&o->optimiser);
    o->groups[4] = fth_rate_options_group(&o->rates);
    o->groups[5] = fth_device_options_group(&o->device);
    /* they say what the model is, and what of it is trained */
    o->groups[1].resume = o->groups[2].resume = o->groups[4].resume = FTH_RESUME_KEPT;
}

static fth_err take_encoder(const fth_encoder_options *o, fth_encoder_data *out) {
    if (o->mask_keep + o->mask_random > 1)
        return fth_fail(FTH_USAGE, "--mask-keep %g and --mask-random %g are more than 1 together",
                        o->mask_keep, o->mask_random);
    *out = (fth_encoder_data){.mask_prob = o->mask_prob,
                              .mask_keep = o->mask_keep,
                              .mask_random = o->mask_random,
                              .mask_unit = o->mask_unit[0] == 'w'   ? FTH_MASK_WORDS
                                           : o->mask_unit[0] == 's' ? FTH_MASK_SPANS
                                                                    : FTH_MASK_PIECES,
                              .mask_patches = o->mask_patches,
                              .crop = (int32_t)o->augment_crop,
                              .flip = o->augment_flip,
                              .erase = o->augment_erase,
                              .mixup = o->mixup};
    return FTH_OK;
}

static fth_err score_options(const fth_run_options *all, fth_run_spec *spec) {
    static const char *const parts[] = {"validate_beam", "validate_sentences", "best_by", NULL};
    const fth_train_options *o = &all->train;
    if (!o->validate_score[0])
        return fth_refuse_options(all->groups, FTH_RUN_GROUPS, parts, "needs --validate-score");
    spec->score = (fth_scorer_spec){.kind = strcmp(o->validate_score, "chrf") == 0 ? FTH_SCORE_CHRF
                                                                                   : FTH_SCORE_BLEU,
                                    .beam = o->validate_beam ? (int32_t)o->validate_beam : 4,
                                    .sentences = o->validate_sentences,
                                    .max_tokens = (int32_t)o->max_tokens};
    spec->best_by_score = strcmp(o->best_by, "score") == 0;
    if (spec->config.arch == FTH_ENCDEC) return FTH_OK;
    return fth_fail(FTH_USAGE, "--validate-score %s: is for --arch encdec", o->validate_score);
}

fth_err fth_run_spec_from_options(const fth_run_options *all, fth_run_spec *spec) {
    const fth_train_options *o = &all->train;
    const fth_model_options *m = &all->model;
    const fth_optimiser_options *a = &all->optimiser;

    *spec = (fth_run_spec){.save_dir = o->save_dir,
                           .options = all->groups,
                           .n_options = FTH_RUN_GROUPS,
                           .restore_file = o->restore_file,
                           .init_from = o->init_from,
                           .rates = {.layer_decay = all->rates.layer_lr_decay,
                                     .freeze = (const char *const *)all->rates.freeze.items,
                                     .n_freeze = all->rates.freeze.count},
                           .max_tokens = o->max_tokens,
                           .update_freq = o->update_freq > 0 ? o->update_freq : 1,
                           .max_update = a->max_update,
                           .max_epoch = o->max_epoch,
                           .patience = o->patience,
                           .save_interval = o->save_interval_updates,
                           .validate_interval = o->validate_interval_updates,
                           .keep_last = o->keep_last,
                           .log_interval = o->log_interval,
                           .tensorboard = strcmp(o->log_format, "tensorboard") == 0,
                           .telemetry = o->telemetry,
                           .pipeline = o->pipeline > 0 ? o->pipeline : 1,
                           .reduce_fast = strcmp(o->reduce, "fast") == 0,
                           .judge_after = o->judge_after,
                           .stop_seconds = o->stop_time_hours * 3600,
                           .memory_budget = (int64_t)o->memory_budget,
                           .sampling_temperature = o->sampling_temperature,
                           .strict = o->strict,
                           .reset_schedule = o->reset_schedule};
    if (!fth_option_was_set(all->groups, FTH_RUN_GROUPS, "judge_after"))
        spec->judge_after = a->warmup_updates > 400 ? a->warmup_updates : 400;
    FTH_TRY(fth_config_from_options(m, &spec->config));
    FTH_TRY(fth_check_schedule(all->groups, FTH_RUN_GROUPS, a));
    FTH_TRY(fth_recipe_from_options(a, &spec->recipe));
    if (o->restore_file[0] && o->init_from[0])
        return fth_fail(FTH_USAGE, "--init-from %s: cannot be given with --restore-file",
                        o->init_from);
    FTH_TRY(take_encoder(&all->encoder, &spec->encoder));
    FTH_TRY(score_options(all, spec));
    spec->head_given = strcmp(m->head, "auto") != 0;
    if (spec->config.arch != FTH_ENCDEC) spec->block = o->tokens_per_sample;
    spec->recipe.dropout = true;
    spec->recipe.seed = (uint64_t)o->seed;
    return FTH_OK;
}
