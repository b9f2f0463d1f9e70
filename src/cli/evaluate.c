/* evaluate.c: fathom evaluate MODEL DATASET: loss and perplexity. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/device/device.h"
#include "base/number.h"
#include "base/option_uses.h"
#include "cli/device_options.h"
#include "cli/evaluate_choices.h"
#include "cli/model_path.h"
#include "cli/verb.h"
#include "data/folder.h"
#include "run/run.h"
#include "train/evaluate.h"
#include "train/evaluate_directions.h"
#include "train/fits.h"
#include "train/weights.h"

#define EVALUATE_OPTIONS(X)                                                                        \
    X(CHOICE, split, "valid", FTH_CHOICES("train|valid|test"), "part of the data set")             \
    X(I64, max_tokens, "4096", FTH_RANGE(1, 16777216), "tokens of a batch at most, of each side")  \
    X(I64, tokens_per_sample, "512", FTH_RANGE(2, 65535),                                          \
      "block length (dec models, masked ones)")                                                    \
    X(I64, context_window, "0", FTH_MIN(0),                                                        \
      "tokens of a block that are only read, so that each prediction has at least so much "        \
      "context (dec models)")                                                                      \
    X(CHOICE, by, "", FTH_CHOICES("direction"),                                                    \
      "data of many languages: each direction, and their mean")                                    \
    X(BOOL, per_word, "false", FTH_ANY, "perplexity per word of the text instead of per token")    \
    X(BOOL, strict, "false", FTH_ANY, "a sentence that is too long is an error")                   \
    X(BOOL, json, "false", FTH_ANY, "print one JSON object")                                       \
    QUANTIZE_OPTIONS(X)
FTH_OPTIONS(evaluate_options, "evaluate", EVALUATE_OPTIONS)

typedef struct work {
    fth_model model;
    float *flat;
    fth_device *device;
    fth_arenas arenas;
    fth_folder folder;
    fth_dataset *data;
    fth_run_items items; /* of an encoder */
    fth_evaluator evaluator;
} work;

static int split_of(const char *name) {
    return strcmp(name, "train") == 0   ? FTH_TRAIN
           : strcmp(name, "valid") == 0 ? FTH_VALID
                                        : FTH_TEST;
}

/* Blocks are of language models. */
static fth_err check_blocks(const fth_config *c, const evaluate_options *o,
                            const fth_option_group *groups, size_t n) {
    static const char *const blocks[] = {"tokens_per_sample", "context_window", NULL};
    const bool masked =
        c->arch == FTH_ENC && c->front == FTH_FRONT_TEXT && c->head == FTH_HEAD_MASKED_TOKEN;
    if (c->arch == FTH_ENCDEC || (c->arch == FTH_ENC && !masked))
        return fth_refuse_options(groups, n, blocks, "is for dec models and masked ones");
    if (o->context_window >= o->tokens_per_sample)
        return fth_fail(FTH_USAGE, "--context-window %lld: must be below --tokens-per-sample %lld",
                        (long long)o->context_window, (long long)o->tokens_per_sample);
    if (o->tokens_per_sample > c->max_positions)
        return fth_fail(FTH_USAGE, "--tokens-per-sample %lld: the model has max_positions %d",
                        (long long)o->tokens_per_sample, c->max_positions);
    return FTH_OK;
}

/* Nine digits; what is not finite is a string (doc/formats.md#the-run-folder). */
static fth_number json_text(double x) {
    fth_number n;
    snprintf(n.text, sizeof n.text, isfinite(x) ? "%.9g" : "\"%g\"", x);
    return n;
}

static void warn_left_out(const work *w, const evaluate_options *o, const fth_eval *e) {
    if (e->left_out)
        fprintf(stderr,
                "fathom: warning: %lld sentences were longer than --max-tokens %lld or the model's "
                "max_positions %d and are left out\n",
                (long long)e->left_out, (long long)o->max_tokens, w->model.config.max_positions);
}

static void print_result(const work *w, const evaluate_options *o, const fth_eval *e) {
    double nll = e->nll;
    int64_t units = e->tokens;
    if (o->per_word) { /* every line end is a word too: it is predicted */
        units = w->data->side[w->data->n_sides - 1].words + w->data->sentences;
        nll = e->nll * (double)e->tokens / (double)units;
    }
    if (isnan(nll)) nll = fabs(nll); /* without a sign */
    if (o->json)
        printf("{\"split\": \"%s\", \"nll_loss\": %s, \"ppl\": %s, \"tokens\": %lld, "
               "\"left_out\": %lld, \"per\": \"%s\"}\n",
               o->split, json_text(nll).text, json_text(exp(nll)).text, (long long)units,
               (long long)e->left_out, o->per_word ? "word" : "token");
    else
        printf("%s: nll %.4f, ppl %.3f per %s over %lld\n", o->split, nll, exp(nll),
               o->per_word ? "word" : "token", (long long)units);
    warn_left_out(w, o, e);
}

static void print_directions(const work *w, const evaluate_options *o, const fth_eval *of,
                             const fth_eval *mean) {
    const char *end = "";
    if (o->json)
        printf("{\"split\": \"%s\", \"nll_loss\": %s, \"ppl\": %s, \"tokens\": %lld, "
               "\"left_out\": %lld, \"directions\": {",
               o->split, json_text(mean->nll).text, json_text(exp(mean->nll)).text,
               (long long)mean->tokens, (long long)mean->left_out);
    for (int32_t k = 0; k < w->data->n_directions; k++) {
        if (!of[k].tokens) continue;
        if (o->json)
            printf("%s\"%s\": {\"nll_loss\": %s, \"ppl\": %s, \"tokens\": %lld}", end,
                   fth_languages_name(&w->folder.languages, k).text, json_text(of[k].nll).text,
                   json_text(exp(of[k].nll)).text, (long long)of[k].tokens);
        else
            printf("%-11s nll %.4f, ppl %.3f per token over %lld\n",
                   fth_languages_name(&w->folder.languages, k).text, of[k].nll, exp(of[k].nll),
                   (long long)of[k].tokens);
        end = ", ";
    }
    if (o->json)
        printf("}}\n");
    else
        printf("%-11s nll %.4f, ppl %.3f over %lld\n", "mean", mean->nll, exp(mean->nll),
               (long long)mean->tokens);
}

static fth_err evaluate_directions(work *w, const evaluate_options *o, const fth_eval_spec *spec) {
    fth_eval mean, *of = calloc((size_t)w->data->n_directions, sizeof *of);
    if (!of) return fth_fail(FTH_NO_MEMORY, "no memory to evaluate directions");
    fth_err err = fth_evaluate_directions(&w->evaluator, w->data, spec, of, &mean);
    if (err == FTH_OK) print_directions(w, o, of, &mean);
    if (err == FTH_OK) warn_left_out(w, o, &mean);
    free(of);
    return err;
}

static fth_err check_directions(const work *w, const evaluate_options *o,
                                const fth_option_group *groups, size_t n) {
    static const char *const words[] = {"per_word", NULL};
    if (!o->by[0]) return FTH_OK;
    if (!w->data->n_directions)
        return fth_fail(FTH_USAGE, "--by direction: %s has one pair of languages", w->folder.path);
    return fth_refuse_options(groups, n, words, "cannot be given with --by direction");
}

/* Options of the other way to evaluate. */
static fth_err check_way(const fth_option_group *groups, size_t n, bool choices, int positionals) {
    static const char *const of_data[] = {
        "split", "tokens_per_sample", "context_window", "by", "per_word", "strict", NULL};
    if (choices && positionals > 1)
        return fth_fail(FTH_USAGE, "--choices: is in the place of a data set; give one of them");
    if (choices)
        return fth_refuse_options(groups, n, of_data, "is for data sets, not for --choices");
    FTH_TRY(fth_refuse_group(&groups[2], "needs --choices"));
    if (positionals < 2) return fth_fail(FTH_USAGE, "a data set is missing, or --choices FILE");
    return FTH_OK;
}

static fth_err open_device(work *w, const char *folder, const evaluate_options *o,
                           const fth_device_options *d) {
    FTH_TRY(fth_device_open(d->device, d->precision, (int)d->threads, &w->device));
    FTH_TRY(fth_device_quantize(w->device, o->quantize));
    if (strcmp(o->quantize, "none") != 0) {
        fth_err err = fth_weights_finite(&w->model, w->flat, FTH_QUANTIZE_RULE);
        if (err != FTH_OK) return fth_fail_in(err, "%s", folder);
    }
    FTH_TRY(fth_arenas_new(w->device, w->model.params.size, 0, 0, &w->arenas));
    return fth_arenas_load(w->device, &w->arenas, w->flat);
}

static fth_err choose(work *w, const char *folder, const evaluate_options *o,
                      const fth_choices_options *choices, const fth_device_options *d,
                      const fth_option_group *groups, size_t n) {
    FTH_TRY(fth_weights_read(folder, &w->model, &w->flat));
    FTH_TRY(open_device(w, folder, o, d));
    const fth_evaluated m = {folder, &w->model, w->device, &w->arenas};
    return fth_evaluate_choices(&m, choices, groups, n, o->max_tokens, o->json);
}

static fth_err evaluate(work *w, const char *folder, const char *data, const evaluate_options *o,
                        const fth_device_options *d, const fth_option_group *groups, size_t n) {
    FTH_TRY(fth_weights_read(folder, &w->model, &w->flat));
    FTH_TRY(fth_folder_open(&w->folder, data));
    FTH_TRY(fth_folder_split(&w->folder, split_of(o->split), &w->data));
    FTH_TRY(fth_fits(&w->model.config, folder, &w->folder, w->data));
    FTH_TRY(check_blocks(&w->model.config, o, groups, n));
    FTH_TRY(check_directions(w, o, groups, n));
    FTH_TRY(open_device(w, folder, o, d));
    const fth_run_spec run = {
        .data = data,
        .recipe.seed = 1,
        .encoder = {.mask_prob = 0.15, .mask_keep = 0.1, .mask_random = 0.1, .mask_patches = 0.4}};
    FTH_TRY(fth_run_items_init(&w->items, &run, &w->folder, w->data, &w->model.config));
    bool lm = w->model.config.arch == FTH_DEC || w->items.valid.masking;
    int64_t len = lm ? o->tokens_per_sample : o->max_tokens;
    FTH_TRY(fth_evaluator_init(&w->evaluator, &w->model, w->device, &w->arenas, NULL,
                               (int32_t)o->max_tokens, len));
    fth_eval_spec spec = {.update = w->model.config.step,
                          .block = lm ? (int32_t)o->tokens_per_sample : 0,
                          .context_window = lm ? (int32_t)o->context_window : 0,
                          .item = w->model.config.arch == FTH_ENC ? &w->items.valid : NULL,
                          .strict = o->strict};
    if (o->by[0]) return evaluate_directions(w, o, &spec);
    fth_eval result;
    FTH_TRY(fth_evaluate(&w->evaluator, w->data, &spec, &result));
    print_result(w, o, &result);
    return FTH_OK;
}

fth_err fth_verb_evaluate(int argc, char **argv) {
    evaluate_options options;
    fth_device_options device;
    fth_choices_options choices;
    enum { N_GROUPS = 3 };
    fth_option_group groups[N_GROUPS] = {evaluate_options_group(&options),
                                         fth_device_options_group(&device),
                                         fth_choices_options_group(&choices)};
    const fth_usage usage = {"fathom evaluate", "MODEL DATASET",
                             "Prints the loss (nats) and perplexity of a model on a data set, or "
                             "with --choices how often it chooses the right ending.",
                             1, 2};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, N_GROUPS, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) {
        work w = {0};
        err = fth_model_paths(&parsed, 0, 0);
        const bool chosen = choices.choices[0] != 0;
        if (err == FTH_OK) err = check_way(groups, N_GROUPS, chosen, (int)parsed.n_positionals);
        if (err == FTH_OK && chosen)
            err = choose(&w, parsed.positionals[0], &options, &choices, &device, groups, N_GROUPS);
        else if (err == FTH_OK)
            err = evaluate(&w, parsed.positionals[0], parsed.positionals[1], &options, &device,
                           groups, N_GROUPS);
        fth_evaluator_fini(&w.evaluator);
        fth_run_items_fini(&w.items);
        if (w.device) fth_arenas_free(w.device, &w.arenas);
        fth_device_close(w.device);
        fth_dataset_free(w.data);
        fth_folder_fini(&w.folder);
        free(w.flat);
        fth_model_fini(&w.model);
    }
    fth_parsed_fini(&parsed);
    return err;
}
