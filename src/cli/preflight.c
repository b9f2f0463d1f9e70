/* preflight.c: fathom preflight [DATASET] --config C: is a training worth starting? */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/device/device.h"
#include "base/option_uses.h"
#include "base/str.h"
#include "cli/train_options.h"
#include "cli/verb.h"
#include "run/preflight.h"

#define PREFLIGHT_OPTIONS(X)                                                                       \
    X(I64, vocab, "8000", FTH_RANGE(5, 16777216), "without DATASET: words of the vocabulary")      \
    X(BOOL, quick, "true", FTH_ANY,                                                                \
      "an answer in a minute: smaller batches, fewer updates of a slow model")                     \
    X(BOOL, json, "false", FTH_ANY, "print one JSON object")
FTH_OPTIONS(preflight_options, "preflight", PREFLIGHT_OPTIONS)

static double mib(int64_t bytes) {
    return (double)bytes / 1048576.0;
}

/* "17 days", "1 h 02 min", "3 min 20 s", "0.81 s" */
static void print_time(const char *what, double seconds) {
    if (seconds >= 2 * 86400)
        printf("%-22s %.0f days\n", what, seconds / 86400);
    else if (seconds < 60)
        printf("%-22s %.3g s\n", what, seconds);
    else if (seconds < 3600)
        printf("%-22s %d min %02d s\n", what, (int)seconds / 60, (int)seconds % 60);
    else
        printf("%-22s %.0f h %02d min\n", what, floor(seconds / 3600), (int)fmod(seconds / 60, 60));
}

/* At most eight layers, evenly spread, the lowest and the highest among them. */
static void print_gradients(const fth_preflight *p, int stack) {
    enum { SHOWN = 8 };
    static const char *const names[] = {"encoder", "decoder"};
    int32_t n = p->layers[stack], shown = n < SHOWN ? n : SHOWN;
    if (n == 0) return;
    printf("  %s layers        ", names[stack]);
    for (int32_t i = 0; i < shown; i++) {
        int32_t l = shown > 1 ? (int32_t)lround((double)i * (n - 1) / (shown - 1)) : 0;
        printf("%s%d: ", i ? ", " : "", l + 1);
        if (isnan(p->grad_norm[stack][l]))
            printf("frozen");
        else
            printf("%.2g", p->grad_norm[stack][l]);
    }
    printf("\n");
}

static void print_dash(const char *what, const fth_preflight *p, const fth_dash *d) {
    printf("%s\n", what);
    printf("  output moved         ");
    for (int32_t i = 0; i < d->updates; i++) printf("%s%.3g", i ? ", " : "", d->moved[i]);
    printf(d->updates ? " (its size: %.3g)\n" : "- (its size: %.3g)\n", d->size);
    printf("  loss                 %.3f to %.3f\n", d->first_loss, d->last_loss);
    printf("  gradient norm        %.3g, largest %.3g\n", d->first_gnorm, d->largest_gnorm);
    printf("  largest update       %.2g of the parameters of a sub-layer\n", d->update_ratio);
    if (!isnan(d->encoder_cosine)) printf("  encoder cosine       %.3f\n", d->encoder_cosine);
    if (d->updates < p->planned) printf("  not finite at update %d\n", d->updates + 1);
}

static void print_ranks(const fth_preflight *p, int ranks) {
    if (p->n_plans == 0) return;
    printf("%d ranks on this machine\n", ranks);
    printf("  stages  batches an update  memory of a rank  sent in an update  waiting  target "
           "tokens/s\n");
    for (int i = 0; i < p->n_plans; i++) {
        const fth_rank_plan *r = &p->plan[i];
        printf("  %6d  %17d  %12.1f MiB  %13.1f MiB  %5.0f %%  %15.0f%s\n", r->stages, r->batches,
               mib(r->bytes), r->sent / 1048576, 100 * r->waiting, r->target_tokens_per_s,
               r->fits ? "" : "  (too large)");
    }
    if (p->best_plan < 0) {
        printf("  no number of stages fits into this machine\n");
        return;
    }
    const fth_rank_plan *best = &p->plan[p->best_plan];
    printf("  recommended: --ranks %d --update-freq %d", ranks, best->batches);
    if (best->stages > 1) printf(" --pipeline %d", best->stages);
    printf("\n");
}

static void print_text(const fth_preflight *p, int ranks) {
    printf("verdict: %s\n  %s\n\n", fth_verdict_name(p->verdict), p->reason);
    if (p->advice && strcmp(p->advice, p->reason) != 0) printf("advice: %s\n\n", p->advice);
    printf("%-22s %.2f M\n", "parameters", (double)p->parameters / 1e6);
    const int64_t whole = p->fixed_bytes + p->activation_bytes;
    printf("%-22s %.1f MiB: %.1f for parameters, gradients and moments, %.1f for activations%s; "
           "%.1f free\n",
           "memory", mib(p->fits ? p->planned_bytes : whole), mib(p->fixed_bytes),
           mib(p->activation_bytes),
           p->fits && p->planned_bytes < whole ? " (cut by recomputing layers)" : "",
           mib(p->available_bytes));
    printf("%-22s %.1f MiB of the machine's memory\n", "batches at a time", mib(p->batch_bytes));
    if (!p->fits) return;
    print_time(p->estimated ? "time per update, about" : "time per update", p->seconds_per_update);
    if (!isnan(p->updates_per_epoch))
        print_time("time per epoch", p->seconds_per_update * p->updates_per_epoch);
    char what[64];
    snprintf(what, sizeof what, "%.0f updates, here", p->updates);
    print_time(what, p->seconds_per_update * p->updates);
    printf("gradient norm at the start\n");
    print_gradients(p, 0);
    print_gradients(p, 1);
    if (!isnan(p->encoder_cosine))
        printf("%-22s %.3f (mean between positions of a sentence)\n", "encoder cosine",
               p->encoder_cosine);
    snprintf(what, sizeof what, "first %d updates", p->planned);
    print_dash(what, p, &p->scheduled);
    snprintf(what, sizeof what, "%d updates at the peak rate, from the same start", p->planned);
    print_dash(what, p, &p->peak);
    print_ranks(p, ranks);
}

static fth_err print_json(const fth_preflight *p) {
    fth_str text = {0};
    json_t *o = fth_preflight_json(p);
    fth_err err = fth_json_write(o, 0, &text);
    if (err == FTH_OK) printf("%s\n", text.text);
    fth_str_fini(&text);
    json_decref(o);
    return err;
}

static fth_err fly(const fth_run_spec *spec, const fth_device_options *d,
                   const preflight_options *own, int ranks) {
    fth_device *device = NULL;
    fth_preflight p;
    fth_log log;
    fth_log_init(&log, stderr, false);
    const fth_preflight_how how = {(int32_t)own->vocab, own->quick, &log, ranks};
    FTH_TRY(fth_device_open(d->device, d->precision, (int)d->threads, &device));
    fth_err err = fth_preflight_run(spec, &how, device, &p);
    if (err == FTH_OK) {
        if (own->json)
            err = print_json(&p);
        else
            print_text(&p, ranks);
        fth_preflight_fini(&p);
    }
    fth_device_close(device);
    return err;
}

fth_err fth_verb_preflight(int argc, char **argv) {
    fth_run_options run;
    preflight_options own;
    fth_run_options_init(&run);
    fth_option_group groups[FTH_RUN_GROUPS + 1];
    groups[0] = preflight_options_group(&own);
    for (int i = 0; i < FTH_RUN_GROUPS; i++) groups[i + 1] = run.groups[i];
    const fth_usage usage = {
        "fathom preflight", "[DATASET]",
        "Looks at a training before hours are spent on it. Takes the options and --config files of "
        "fathom train, makes ten updates by its schedule and ten at its peak rate, and says how "
        "much memory and time the whole run takes and whether it is fine, at risk or will fail, "
        "and why. "
        "Without DATASET it makes sentences up. Writes no file; exit status 0 whatever the "
        "verdict.",
        0, 1};
    fth_parsed parsed;
    bool done;
    fth_run_spec spec;
    fth_err err = fth_verb_options(&usage, groups, FTH_RUN_GROUPS + 1, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) {
        for (int i = 0; i < FTH_RUN_GROUPS; i++) run.groups[i] = groups[i + 1];
        const bool has_data = parsed.n_positionals > 0;
        if (has_data)
            err = fth_refuse_option(groups, 1, "vocab", "a data set has its own vocabulary");
        if (err == FTH_OK)
            err = fth_refuse_option(run.groups, FTH_RUN_GROUPS, "pipeline",
                                    "preflight looks at every number of stages; --ranks is enough");
        if (err == FTH_OK) err = fth_run_spec_from_options(&run, &spec);
        spec.data = has_data ? parsed.positionals[0] : NULL;
        if (err == FTH_OK) err = fly(&spec, &run.device, &own, (int)run.train.ranks);
    }
    fth_parsed_fini(&parsed);
    return err;
}
