/* advice.c: rules in order, the most telling first: each looks at the numbers of the failed run and
 * says a sentence, or nothing. */
#include "run/advice.h"

#include <math.h>
#include <stdio.h>

const char *fth_fault_name(fth_fault_kind kind) {
    static const char *const names[] = {"nonfinite", "unlearned", "worsened",
                                        "collapsed", "deaf",      "none"};
    return names[kind];
}

const char *fth_fault_rule(fth_fault_kind kind) {
    static const char *const rules[] = {"a: not finite",      "b: learned nothing",
                                        "c: fell back",       "d: encoder collapsed",
                                        "d: source not used", ""};
    return rules[kind];
}

/* Thresholds. doc/telemetry.md says where they come from. */
#define LARGE_UPDATE 0.1  /* a healthy update moves a sub-layer's parameters by less */
#define TINY_UPDATE  1e-5 /* with less, a thousand updates move them by a hundredth */
#define GROWN        3.0  /* parameters that have so many times their first size */
#define JUMP         10.0 /* of the gradient norm over its median */
#define LOST_GRADIENT                                                                              \
    0.05          /* of the layer with the largest gradient, in the one with the smallest */
#define ALIKE 0.9 /* cosine of positions that are about to collapse */

/* A rule: its name, and its sentence when it applies (snprintf's result; 0: it does not). */
typedef int rule_text(const fth_evidence *e, char *text, size_t size);

/* One rate for all rules that ask for a smaller one. */
static double smaller_rate(const fth_evidence *e) {
    const double share = e->update_ratio > LARGE_UPDATE ? LARGE_UPDATE / 2 / e->update_ratio : 1;
    return e->peak_lr * fmin(0.25, share);
}

static int rate(const fth_evidence *e, char *text, size_t size) {
    if (!(e->update_ratio > LARGE_UPDATE)) return 0;
    return snprintf(text, size,
                    "one update changed the parameters of %s by %.0f %% of their size (healthy "
                    "updates stay below %.0f %%): a smaller rate, --lr %.2g instead of %.2g",
                    e->update_where, 100 * e->update_ratio, 100 * LARGE_UPDATE, smaller_rate(e),
                    e->peak_lr);
}

static int growth(const fth_evidence *e, char *text, size_t size) {
    if (!(e->growth > GROWN)) return 0;
    return snprintf(text, size,
                    "parameters are %.1f times as large as at the first measured update: the rate "
                    "threw the model far off its start, --lr %.2g instead of %.2g",
                    e->growth, smaller_rate(e), e->peak_lr);
}

static bool is_slow(const fth_evidence *e) {
    return e->kind == FTH_FAULT_UNLEARNED && e->usual_update_ratio < TINY_UPDATE &&
           !(e->growth > 2);
}

static int too_slow(const fth_evidence *e, char *text, size_t size) {
    if (!is_slow(e)) return 0;
    return snprintf(text, size,
                    "an update changes parameters by %.1e of their size at most places: the rate "
                    "%.2g is too small to learn anything, a larger --lr or a shorter warm-up",
                    e->usual_update_ratio, e->lr);
}

static int schedule(const fth_evidence *e, char *text, size_t size) {
    bool early = e->schedule > 0 && e->update <= 2 * e->schedule;
    if (!early || (e->kind != FTH_FAULT_COLLAPSED && !(e->encoder_cosine > ALIKE))) return 0;
    return snprintf(text, size,
                    "the encoder's positions became alike (cosine %.3f) while the branches grew "
                    "(alpha %.2g, T = %lld): a shorter T, --method-option steps=%lld%s",
                    e->encoder_cosine, e->alpha, (long long)e->schedule,
                    (long long)e->schedule / 5 + 1,
                    e->takes_branch_lr ? ", or --method-option branch_lr=alpha" : "");
}

static int method(const fth_evidence *e, char *text, size_t size) {
    if (!(e->carried < LOST_GRADIENT) || e->layers < 6) return 0;
    return snprintf(text, size,
                    "at the first measured update the smallest gradient norm of a layer was %.2g "
                    "of the largest, over %d layers: the method does not carry gradients so far, "
                    "a --method that is made for depth does (fathom methods)",
                    e->carried, e->layers);
}

static int warmup(const fth_evidence *e, char *text, size_t size) {
    if (is_slow(e)) return 0;
    if (e->warmup > 0 && e->update > 4 * e->warmup) return 0;
    long long longer = e->warmup > 100 ? 4 * (long long)e->warmup : 400;
    if (e->warmup == 0)
        return snprintf(text, size,
                        "the run had no warm-up and failed at update %lld: --warmup-updates %lld",
                        (long long)e->update, longer);
    return snprintf(text, size,
                    "it failed at update %lld with a warm-up of %lld: a longer one, "
                    "--warmup-updates %lld",
                    (long long)e->update, (long long)e->warmup, longer);
}

static int clip(const fth_evidence *e, char *text, size_t size) {
    if (e->clip > 0 || !(e->gnorm > JUMP * e->usual_gnorm)) return 0;
    return snprintf(text, size,
                    "the gradient norm rose to %.3g, %.0f times its median of %.3g: clipping, "
                    "--clip-norm %.2g",
                    e->gnorm, e->gnorm / e->usual_gnorm, e->usual_gnorm, 2 * e->usual_gnorm);
}

static int dead(const fth_evidence *e, char *text, size_t size) {
    if (!(e->dead > 0.25)) return 0;
    return snprintf(text, size,
                    "in %.0f %% of the feed-forwards almost no activation is above 0: the rate was "
                    "too high for them, a smaller --lr; --activation gelu does not die",
                    100 * e->dead);
}

static int sharp(const fth_evidence *e, char *text, size_t size) {
    if (!(e->sharp > 0.25)) return 0;
    return snprintf(text, size,
                    "%.0f %% of the attentions look at a single position: their scores grew too "
                    "fast, a smaller --lr or more --weight-decay",
                    100 * e->sharp);
}

static int longer(const fth_evidence *e, char *text, size_t size) {
    if (e->kind != FTH_FAULT_UNLEARNED || !(e->loss_last < e->loss_middle - 0.1)) return 0;
    return snprintf(
        text, size,
        "the loss was still falling (%.2f to %.2f in the later half of the measured updates): more "
        "updates, --max-update %lld",
        e->loss_middle, e->loss_last, 4 * (long long)e->max_update);
}

/* When nothing else can be said. */
static int anything(const fth_evidence *e, char *text, size_t size) {
    return snprintf(
        text, size,
        "no measured number stands out%s: usually a smaller --lr (now %.2g) or a longer "
        "warm-up (now %lld) helps, then another --method",
        isnan(e->usual_update_ratio) ? " (there are none: --telemetry 10)" : "", e->peak_lr,
        (long long)e->warmup);
}

json_t *fth_advice(const fth_evidence *e) {
    static const struct {
        const char *name;
        rule_text *text;
    } rules[] = {{"schedule", schedule}, {"rate", rate},     {"growth", growth},
                 {"too slow", too_slow}, {"method", method}, {"clip", clip},
                 {"dead", dead},         {"sharp", sharp},   {"longer", longer},
                 {"warm-up", warmup}};
    json_t *list = json_array();
    char text[400];
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].text(e, text, sizeof text) > 0)
            json_array_append_new(list,
                                  json_pack("{s:s, s:s}", "rule", rules[i].name, "text", text));
    if (json_array_size(list) == 0 && anything(e, text, sizeof text) > 0)
        json_array_append_new(list, json_pack("{s:s, s:s}", "rule", "general", "text", text));
    if (isnan(e->usual_update_ratio))
        json_array_append_new(list, json_pack("{s:s, s:s}", "rule", "telemetry", "text",
                                              "sub-layers were not measured: with --telemetry 10 "
                                              "such a report can say more"));
    return list;
}
