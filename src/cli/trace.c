/* trace.c: fathom trace MODEL: one forward and backward, written out. */
#include <stdlib.h>

#include "backend/device/device.h"
#include "base/file.h"
#include "base/option_uses.h"
#include "base/str.h"
#include "cli/device_options.h"
#include "cli/optimiser_options.h"
#include "cli/model_path.h"
#include "cli/verb.h"
#include "train/trace.h"
#include "train/weights.h"

#define TRACE_OPTIONS(X)                                                                           \
    X(STR, batch, "", FTH_SHOWN_AS("FILE"), "safetensors file with src, tgt_in, tgt_out")          \
    X(STR, out, "", FTH_SHOWN_AS("FILE"), "safetensors file to write")                             \
    X(I64, update, "", FTH_MIN(1), "number of the update; default: the model's step + 1")          \
    X(I64, steps, "0", FTH_MIN(0),                                                                 \
      "training updates on the same batch afterwards, by the options of the optimiser")
FTH_OPTIONS(trace_options, "trace", TRACE_OPTIONS)

/* One forward and backward has no optimiser; --label-smoothing is of the loss. */
static fth_err check_optimiser(const fth_option_group *groups, size_t n) {
    static const char *const of_updates[] = {
        "lr",         "lr_scheduler", "warmup_updates", "warmup_init_lr", "max_update",
        "adam_betas", "adam_eps",     "weight_decay",   "clip_norm",      NULL};
    if (fth_option_typed(groups, n, "steps")) return FTH_OK;
    return fth_refuse_options(groups, n, of_updates, "needs --steps");
}

/* The trace must not take the place of what it is made of. */
static fth_err check_out(const trace_options *o, const char *folder) {
    if (fth_same_file(o->out, o->batch))
        return fth_fail(FTH_USAGE, "--out %s: is the file of --batch", o->out);
    char *weights = fth_strdup_printf("%s/model.safetensors", folder);
    if (!weights) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    const bool same = fth_same_file(o->out, weights);
    free(weights);
    return same ? fth_fail(FTH_USAGE, "--out %s: is the model", o->out) : FTH_OK;
}

static fth_err check(const trace_options *o, bool update_given, const fth_config *c) {
    if (!o->batch[0]) return fth_fail(FTH_USAGE, "--batch FILE is missing");
    if (!o->out[0]) return fth_fail(FTH_USAGE, "--out FILE is missing");
    if (o->steps > 0 && update_given)
        return fth_fail(FTH_USAGE, "--steps %lld: cannot be given with --update",
                        (long long)o->steps);
    if (o->steps > 0 && c->step != 0)
        return fth_fail(FTH_USAGE, "--steps %lld: the model has step %lld, must be 0",
                        (long long)o->steps, (long long)c->step);
    return FTH_OK;
}

static fth_err run(const char *folder, const trace_options *o, bool update_given,
                   const fth_device_options *d, const fth_recipe *recipe) {
    fth_model model;
    float *flat = NULL;
    fth_device *device = NULL;
    FTH_TRY(fth_weights_read(folder, &model, &flat));
    fth_err err = check(o, update_given, &model.config);
    if (err == FTH_OK) err = check_out(o, folder);
    const char *name = d->device;
    if (err == FTH_OK) err = fth_device_open(name, d->precision, (int)d->threads, &device);
    fth_trace_spec spec = {.batch = o->batch,
                           .out = o->out,
                           .update = update_given ? o->update : model.config.step + 1,
                           .steps = o->steps,
                           .recipe = *recipe};
    if (err == FTH_OK) err = fth_trace(&model, flat, device, &spec);
    fth_device_close(device);
    free(flat);
    fth_model_fini(&model);
    return err;
}

fth_err fth_verb_trace(int argc, char **argv) {
    trace_options options;
    fth_device_options device;
    fth_optimiser_options optimiser;
    fth_option_group groups[] = {trace_options_group(&options),
                                 fth_cpu_device_options_group(&device),
                                 fth_optimiser_options_group(&optimiser)};
    const fth_usage usage = {
        "fathom trace", "MODEL --batch FILE --out FILE",
        "Writes loss, logits, hidden states and the gradient of every parameter for one batch, "
        "with every dropout off: the way to compare with another implementation, number by "
        "number.",
        1, 1};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 3, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) {
        fth_recipe recipe;
        err = check_optimiser(groups, 3);
        if (err == FTH_OK) err = fth_check_schedule(groups, 3, &optimiser);
        if (err == FTH_OK) err = fth_recipe_from_options(&optimiser, &recipe);
        if (err == FTH_OK) err = fth_model_paths(&parsed, 0, 0);
        if (err == FTH_OK)
            err = run(parsed.positionals[0], &options, fth_option_was_set(groups, 3, "update"),
                      &device, &recipe);
    }
    fth_parsed_fini(&parsed);
    return err;
}
