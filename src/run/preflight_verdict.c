/* preflight_verdict.c: from the numbers of a preflight to a verdict. The thresholds were set on
 * short runs of many methods, depths, warm-ups and rates (scripts/calibrate-preflight,
 * doc/preflight.md). */
#include <math.h>
#include <stdio.h>

#include "run/health.h"
#include "run/preflight.h"

const char *fth_verdict_name(fth_verdict v) {
    static const char *const names[] = {"fine", "at risk", "will fail"};
    return names[v];
}

/* How far the model has gone after the last update, in units of the size of its output. */
static double drift(const fth_dash *d) {
    return d->updates > 0 ? d->moved[d->updates - 1] / d->size : NAN;
}

/* ---- rules: each sets the verdict and says why, or leaves it ---- */

typedef bool rule(fth_preflight *p);

#define SAYS(p, v, ...)                                                                            \
    ((p)->verdict = (v), snprintf((p)->reason, sizeof(p)->reason, __VA_ARGS__), true)

static bool too_large(fth_preflight *p) {
    if (p->fits) return false;
    p->verdict = FTH_WILL_FAIL;
    if (p->reason[0]) return true;
    const double mib = 1048576.0, needed = (double)(p->fixed_bytes + p->activation_bytes) / mib;
    if (p->budget > 0 && p->budget < p->available_bytes)
        return SAYS(
            p, FTH_WILL_FAIL,
            "memory: more than the --memory-budget of %.1f MiB is needed (%.1f MiB, nothing "
            "recomputed); raise it, or lower --max-tokens",
            (double)p->budget / mib, needed);
    return SAYS(p, FTH_WILL_FAIL,
                "memory: %.1f MiB are needed, %.1f MiB are free; a --memory-budget recomputes "
                "layers, a smaller --max-tokens needs less",
                needed, (double)p->available_bytes / mib);
}

static bool not_finite(fth_preflight *p) {
    const fth_dash *d = p->scheduled.updates < p->planned ? &p->scheduled : &p->peak;
    if (d->updates == p->planned) return false;
    return SAYS(p, FTH_WILL_FAIL, "update %d %sis not finite: a smaller --lr than %.2g",
                d->updates + 1, d == &p->peak ? "at the peak rate " : "of the run ", p->peak_lr);
}

/* After ten updates at the peak rate, how much of the gradient is left in the layer that has the
 * least? Nothing else tells runs that fail from healthy ones as well. */
#define LOST   0.001 /* a layer with less learns nothing any more */
#define FADING 0.02  /* with less a short warm-up does not save the run */
#define WEAK   0.1   /* healthy runs keep more */
#define SHORT  100   /* updates of a short warm-up */

/* What the fresh model's layer with the least gradient has of the most in its stack. A stack that
 * is not there has no number. */
static double carried_at_first(const fth_preflight *p) {
    return fmin(p->carried[0], p->carried[1]);
}

/* The branches of a fresh model at the peak rate and with their full weight are what a ramp is
 * there to avoid: 18-18 and 50-50 layers train at that rate behind a ramp as long as the warm-up,
 * along which their rate grows (doc/results.md), and a short ramp does not save 50-50. */
static bool ramped(fth_preflight *p) {
    const bool long_enough = p->ramp.updates > SHORT && 2 * p->ramp.updates >= p->warmup;
    if (!p->ramp.rate_follows || !long_enough || p->warmup <= SHORT) return false;
    if (!(p->peak.carried < WEAK) || carried_at_first(p) < WEAK) return false;
    return SAYS(p, FTH_FINE,
                "the branches and their rate grow over %lld updates, the rate over %lld: at the "
                "start every layer "
                "has at least %.2g of the largest gradient norm of one (without both ramps %d "
                "updates at the "
                "peak rate %.2g would leave %.1e)",
                (long long)p->ramp.updates, (long long)p->warmup, carried_at_first(p), p->planned,
                p->peak_lr, p->peak.carried);
}

/* What train warns of as well. */
static bool advised_against(fth_preflight *p) {
    return p->advice && SAYS(p, FTH_AT_RISK, "%s", p->advice);
}

/* A long warm-up saves a model that passes gradients down before it is trained (18-18 and 50-50
 * layers of width 512: doc/preflight.md), and none that does not: 18-18 Post-LN has 0.01 to 0.02 of
 * them and fails after any warm-up. */
static bool lost_without_warmup(fth_preflight *p) {
    if (p->warmup <= SHORT || !(p->peak.carried < LOST) || carried_at_first(p) < WEAK) return false;
    return SAYS(
        p, FTH_AT_RISK,
        "without a warm-up %d updates at the peak rate %.2g would leave %.1e of the largest "
        "gradient norm of a layer in the smallest; the %lld updates of yours may be enough, a "
        "smaller --lr is safer",
        p->planned, p->peak_lr, p->peak.carried, (long long)p->warmup);
}

static bool gradient_lost(fth_preflight *p) {
    double left = p->peak.carried;
    bool short_ramp = p->warmup <= SHORT;
    if (!(left < LOST) && !(left < FADING && short_ramp)) return false;
    return SAYS(p, FTH_WILL_FAIL,
                "%d updates at the peak rate %.2g leave %.1e of the largest gradient norm of a "
                "layer in the smallest: a smaller --lr, %sor a --method that is made for depth",
                p->planned, p->peak_lr, left, short_ramp ? "a longer warm-up " : "");
}

static bool gradient_weak(fth_preflight *p) {
    if (!(p->peak.carried < WEAK)) return false;
    return SAYS(p, FTH_AT_RISK,
                "%d updates at the peak rate %.2g leave %.2g of the largest gradient norm of a "
                "layer in the smallest (healthy runs keep more than %.1g): a smaller --lr or a "
                "longer warm-up",
                p->planned, p->peak_lr, p->peak.carried, WEAK);
}

static bool positions_alike(fth_preflight *p) {
    if (!(p->peak.encoder_cosine > FTH_COLLAPSED)) return false;
    return SAYS(p, FTH_AT_RISK,
                "after %d updates at the peak rate %.2g the encoder's positions have a cosine of "
                "%.4f: it may collapse, a smaller --lr or a longer warm-up",
                p->planned, p->peak_lr, p->peak.encoder_cosine);
}

static bool fine(fth_preflight *p) {
    return SAYS(p, FTH_FINE,
                "%d updates at the peak rate leave %.2g of the largest gradient norm of a layer in "
                "the smallest, and the loss goes from %.2f to %.2f",
                p->planned, p->peak.carried, p->peak.first_loss, p->peak.last_loss);
}

void fth_preflight_judge(fth_preflight *p) {
    static rule *const rules[] = {too_large,       not_finite,          ramped,
                                  advised_against, lost_without_warmup, gradient_lost,
                                  gradient_weak,   positions_alike,     fine};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i](p)) return;
}

/* ---- JSON ---- */

/* A number that is not there is null. */
static json_t *known(double x) {
    return isnan(x) ? json_null() : fth_json_number(x);
}

static json_t *numbers(const double *x, int32_t n) {
    json_t *list = json_array();
    for (int32_t i = 0; i < n; i++) json_array_append_new(list, known(x[i]));
    return list;
}

static json_t *dash_json(const fth_dash *d) {
    const struct {
        const char *key;
        double value;
    } rows[] = {{"first_loss", d->first_loss},
                {"last_loss", d->last_loss},
                {"first_gnorm", d->first_gnorm},
                {"last_gnorm", d->last_gnorm},
                {"largest_gnorm", d->largest_gnorm},
                {"update_ratio", d->update_ratio},
                {"carried", d->carried},
                {"outputs_carried", d->outputs_carried},
                {"dead", d->dead},
                {"output_norm", d->size},
                {"drift", drift(d)},
                {"encoder_cosine", d->encoder_cosine}};
    json_t *o =
        json_pack("{s:i, s:o, s:o}", "updates", d->updates, "moved", numbers(d->moved, d->updates),
                  "logits_moved", numbers(d->logits_moved, d->updates));
    for (size_t i = 0; o && i < sizeof rows / sizeof *rows; i++)
        json_object_set_new(o, rows[i].key, known(rows[i].value));
    return o;
}

static json_t *memory_json(const fth_preflight *p) {
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:i, s:b}", "parameters_bytes", (json_int_t)p->fixed_bytes,
        "activation_bytes", (json_int_t)p->activation_bytes, "planned_bytes",
        (json_int_t)p->planned_bytes, "free_bytes", (json_int_t)p->available_bytes, "batch_bytes",
        (json_int_t)p->batch_bytes, "recomputed_layers", p->recomputed, "fits", p->fits);
}

static json_t *ranks_json(const fth_preflight *p) {
    json_t *list = json_array();
    for (int i = 0; i < p->n_plans; i++) {
        const fth_rank_plan *r = &p->plan[i];
        json_array_append_new(
            list, json_pack("{s:i, s:i, s:I, s:o, s:o, s:o, s:o, s:b, s:b}", "stages", r->stages,
                            "batches", r->batches, "bytes", (json_int_t)r->bytes, "sent_bytes",
                            known(r->sent), "waiting", known(r->waiting), "seconds_per_update",
                            known(r->seconds), "target_tokens_per_s", known(r->target_tokens_per_s),
                            "fits", r->fits, "recommended", i == p->best_plan));
    }
    return list;
}

json_t *fth_preflight_json(const fth_preflight *p) {
    return json_pack("{s:s, s:s, s:s?, s:I, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, "
                     "s:o, s:o, s:o}",
                     "verdict", fth_verdict_name(p->verdict), "reason", p->reason, "advice",
                     p->advice, "parameters", (json_int_t)p->parameters, "memory", memory_json(p),
                     "seconds_per_update", known(p->seconds_per_update), "estimated", p->estimated,
                     "seconds_per_epoch", known(p->seconds_per_update * p->updates_per_epoch),
                     "seconds_of_run", known(p->seconds_per_update * p->updates),
                     "encoder_grad_norm", numbers(p->grad_norm[0], p->layers[0]),
                     "decoder_grad_norm", numbers(p->grad_norm[1], p->layers[1]), "carried",
                     json_pack("[o, o]", known(p->carried[0]), known(p->carried[1])),
                     "encoder_cosine", known(p->encoder_cosine), "peak_lr", known(p->peak_lr),
                     "warmup_updates", (json_int_t)p->warmup, "scheduled", dash_json(&p->scheduled),
                     "peak", dash_json(&p->peak), "ranks", ranks_json(p));
}
