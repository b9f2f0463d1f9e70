/* train_options.c: turns the options of a run into its spec. */
#include "cli/train_options.h"

#include <string.h>

#include "base/option_uses.h"

void fth_run_options_init(fth_run_options *o) {
    o->groups[0] = fth_train_options_group(&o->train);
    o->groups[1] = fth_model_options_group(&o->model);
    o->groups[2] = fth_encoder_options_group(&o->encoder);
    o->groups[3] = fth_speech_options_group(&o->speech);
    o->groups[4] = fth_optimiser_options_group(&o->optimiser);
    o->groups[5] = fth_rate_options_group(&o->rates);
    o->groups[6] = fth_device_options_group(&o->device);
    /* they say what the model is, what it sees, and what of it is trained */
    o->groups[1].resume = o->groups[2].resume = FTH_RESUME_KEPT;
    o->groups[3].resume = o->groups[5].resume = FTH_RESUME_KEPT;
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

static bool was_set(const fth_run_options *all, const char *name) {
    return fth_option_was_set(all->groups, FTH_RUN_GROUPS, name);
}

/* A policy, and what is asked for beside it. */
static fth_err take_speech(const fth_run_options *all, fth_run_spec *spec) {
    const fth_speech_options *o = &all->speech;
    fth_spec_augment *a = &spec->spec_augment;
    const bool asked = was_set(all, "freq_mask_n") || was_set(all, "time_mask_n");
    /* one that is asked for by its parts begins with the widths of ld */
    (void)fth_spec_augment_policy(o->specaugment[0] == 'n' && asked ? "ld" : o->specaugment, a);
    if (o->specaugment[0] == 'n' && asked) a->freq_n = a->time_n = 0;
    if (was_set(all, "freq_mask_n")) a->freq_n = (int32_t)o->freq_mask_n;
    if (was_set(all, "time_mask_n")) a->time_n = (int32_t)o->time_mask_n;
    static const char *const of_bands[] = {"freq_mask_f", NULL};
    static const char *const of_time[] = {"time_mask_t", "time_mask_p", NULL};
    if (!a->freq_n)
        FTH_TRY(fth_refuse_options(all->groups, FTH_RUN_GROUPS, of_bands,
                                   "needs --specaugment or --freq-mask-n"));
    if (!a->time_n)
        FTH_TRY(fth_refuse_options(all->groups, FTH_RUN_GROUPS, of_time,
                                   "needs --specaugment or --time-mask-n"));
    if (was_set(all, "freq_mask_f")) a->freq_f = (int32_t)o->freq_mask_f;
    if (was_set(all, "time_mask_t")) a->time_t = (int32_t)o->time_mask_t;
    if (was_set(all, "time_mask_p")) a->time_p = o->time_mask_p;
    spec->conv_channels = (int32_t)o->conv_channels;
    return FTH_OK;
}

static fth_err score_options(const fth_run_options *all, fth_run_spec *spec) {
    static const char *const parts[] = {"validate_beam", "validate_sentences", "best_by", NULL};
    const fth_train_options *o = &all->train;
    if (!o->validate_score[0])
        return fth_refuse_options(all->groups, FTH_RUN_GROUPS, parts, "needs --validate-score");
    fth_score_kind kind = FTH_SCORE_BLEU;
    while (kind < FTH_SCORE_CER && strcmp(o->validate_score, fth_score_name(kind)) != 0) kind++;
    spec->score = (fth_scorer_spec){.kind = kind,
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
                           .init_scale = o->init_scale,
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
    FTH_TRY(take_speech(all, spec));
    FTH_TRY(score_options(all, spec));
    spec->head_given = strcmp(m->head, "auto") != 0;
    if (spec->config.arch != FTH_ENCDEC) spec->block = o->tokens_per_sample;
    spec->recipe.dropout = true;
    spec->recipe.seed = (uint64_t)o->seed;
    return FTH_OK;
}
