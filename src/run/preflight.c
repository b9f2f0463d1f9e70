/* preflight.c: makes the model, its plan and a few updates without a run folder, and collects
 * what they show. */
#include "run/preflight.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "run/flight.h"

/* Tokens of the batches of a quick look, and of one at a slow model; fewest updates of a dash. */
enum { QUICK_TOKENS = 512, FEW_TOKENS = 128, FEW_UPDATES = 3 };

/* ---- updates ---- */

/* Rows of the top stack in the probe batch. */
static int64_t top_rows(const fth_flight *f) {
    const fth_side side = f->model.config.arch == FTH_ENC ? FTH_SRC : FTH_TGT;
    return fth_flight_probe_batch(f)->side[side].rows;
}

/* Top output and logits of the probe batch, with the method's numbers of an update. */
static fth_err look(fth_flight *f, int64_t update, double *top, double *logits) {
    fth_step step = {.seed = f->spec->recipe.seed, .update = (uint32_t)update};
    fth_method_step(&f->model.method, update, step.slots);
    FTH_TRY(fth_program_run(f->probe, fth_flight_probe_batch(f), &step));
    const fth_stack stack = f->model.config.arch == FTH_ENC ? FTH_ENCODER : FTH_DECODER;
    FTH_TRY(fth_program_read(f->probe, f->seen.hidden[stack], top));
    return fth_program_read(f->probe, f->seen.logits, logits);
}

/* Mean over rows of |a - b|; b NULL: of |a|. */
static double mean_distance(const double *a, const double *b, int64_t rows, int64_t width) {
    double sum = 0;
    for (int64_t r = 0; r < rows; r++) {
        double square = 0;
        for (int64_t c = r * width; c < (r + 1) * width; c++) {
            double d = a[c] - (b ? b[c] : 0);
            square += d * d;
        }
        sum += sqrt(square);
    }
    return rows ? sum / (double)rows : 0;
}

/* Smallest over largest of a stack's layers, each the root of the sum of squares of a quantity over
 * its sub-layers; frozen layers have none. norms [layers]: where they go, NULL: nowhere. Newest
 * row. */
static double carried_in(const fth_flight *f, fth_stack stack, fth_quantity q, double *norms) {
    const fth_config *c = &f->model.config;
    int32_t layers = fth_stack_layers(c, stack);
    int32_t each = layers ? fth_sublayers(c, stack) / layers : 0;
    const float *x = fth_telemetry_row_at(f->telemetry, 0)->value +
                     (int32_t)q * fth_telemetry_sublayers(f->telemetry) +
                     (stack == FTH_DECODER ? fth_sublayers(c, FTH_ENCODER) : 0);
    double least = INFINITY, most = 0;
    for (int32_t l = 0; l < layers; l++) {
        double square = 0;
        for (int32_t i = 0; i < each; i++, x++) square += (double)*x * (double)*x;
        if (norms) norms[l] = sqrt(square);
        least = fmin(least, sqrt(square));
        most = fmax(most, sqrt(square));
    }
    return isinf(least) ? NAN : least / most;
}

static double dead_share(const fth_flight *f) {
    const fth_telemetry_row *row = fth_telemetry_row_at(f->telemetry, 0);
    int32_t n = fth_telemetry_sublayers(f->telemetry), dead = 0, all = 0;
    for (int32_t i = 0; i < n; i++) {
        if (!fth_telemetry_has(f->telemetry, FTH_Q_FFN_NONZERO, i)) continue;
        all++;
        dead += row->value[FTH_Q_FFN_NONZERO * n + i] < 0.01f;
    }
    return all ? (double)dead / all : NAN;
}

/* Largest of a quantity in the newest row. */
static double largest(const fth_flight *f, fth_quantity q) {
    const fth_telemetry_row *row = fth_telemetry_row_at(f->telemetry, 0);
    int32_t n = fth_telemetry_sublayers(f->telemetry);
    double most = 0;
    for (int32_t i = 0; i < n; i++) {
        double x = (double)row->value[(int32_t)q * n + i];
        if (fth_telemetry_has(f->telemetry, q, i) && !(x <= most)) most = x;
    }
    return most;
}

static fth_err one_update(fth_flight *f, int64_t t, fth_dash *d, bool *finite) {
    fth_update u;
    fth_batches batches;
    FTH_TRY(fth_flight_next(f, &batches));
    FTH_TRY(fth_telemetry_update_from(f->telemetry, t, &batches, &u));
    fth_flight_show(f, u.nll);
    *finite = u.finite;
    if (!u.finite) return FTH_OK;
    if (d->updates == 0) {
        d->first_loss = u.nll;
        d->first_gnorm = u.gnorm;
    }
    d->last_loss = u.nll;
    d->last_gnorm = u.gnorm;
    d->carried = fmin(carried_in(f, FTH_ENCODER, FTH_Q_GRAD_NORM, NULL),
                      carried_in(f, FTH_DECODER, FTH_Q_GRAD_NORM, NULL));
    d->outputs_carried = fmin(carried_in(f, FTH_ENCODER, FTH_Q_OUTPUT_GRAD_NORM, NULL),
                              carried_in(f, FTH_DECODER, FTH_Q_OUTPUT_GRAD_NORM, NULL));
    d->dead = dead_share(f);
    d->largest_gnorm = fmax(d->largest_gnorm, u.gnorm);
    d->update_ratio = fmax(d->update_ratio, largest(f, FTH_Q_UPDATE_RATIO));
    d->encoder_cosine = fth_telemetry_row_at(f->telemetry, 0)->encoder_cosine;
    return FTH_OK;
}

/* Updates from a fresh model, numbered from `first` on. */
static fth_err dash(fth_flight *f, int64_t first, fth_dash *d) {
    int64_t rows = top_rows(f);
    int64_t width = f->model.config.d_model, vocab = fth_config_output_vocab(&f->model.config);
    *d = (fth_dash){.encoder_cosine = NAN};
    FTH_TRY(fth_flight_restart(f));
    FTH_TRY(look(f, first, f->start, f->logits[0]));
    d->size = mean_distance(f->start, NULL, rows, width);
    for (int i = 0; i < f->out->planned; i++) {
        bool finite;
        FTH_TRY(one_update(f, first + i, d, &finite));
        if (!finite) return FTH_OK;
        FTH_TRY(look(f, first + i, f->now, f->logits[1]));
        d->moved[i] = mean_distance(f->now, f->start, rows, width);
        d->logits_moved[i] = mean_distance(f->logits[1], f->logits[0],
                                           fth_program_rows(f->probe, f->seen.logits), vocab);
        d->updates++;
    }
    return FTH_OK;
}

/* ---- the start ---- */

static fth_err measure_start(fth_flight *f) {
    fth_preflight *p = f->out;
    const fth_batch *batch = fth_flight_probe_batch(f);
    fth_update u;
    FTH_TRY(fth_flight_restart(f));
    FTH_TRY(fth_telemetry_update(f->telemetry, 1, &batch, 1, &u));
    fth_flight_show(f, u.nll);
    p->encoder_cosine = fth_telemetry_row_at(f->telemetry, 0)->encoder_cosine;
    for (int s = 0; s < 2; s++) {
        int32_t n = fth_stack_layers(&f->model.config, (fth_stack)s);
        p->layers[s] = n;
        free(p->grad_norm[s]);
        p->grad_norm[s] = calloc((size_t)n + 1, sizeof *p->grad_norm[s]);
        if (!p->grad_norm[s]) return fth_no_memory("a preflight");
        p->carried[s] = carried_in(f, (fth_stack)s, FTH_Q_GRAD_NORM, p->grad_norm[s]);
    }
    return FTH_OK;
}

/* ---- all of it ---- */

/* The gradients of a layer hardly depend on how many tokens they are taken over, so a quick look
 * takes few. */
static int64_t few_tokens(const fth_flight *f, int64_t wanted) {
    const int64_t least = f->size.max_len > wanted ? f->size.max_len : wanted;
    return f->how->quick && least < f->spec->max_tokens ? least : f->spec->max_tokens;
}

/* The start with batches of so many tokens; *seconds: what a later update like it takes. */
static fth_err start_with(fth_flight *f, int64_t tokens, double *seconds) {
    FTH_TRY(fth_flight_batches(f, tokens));
    FTH_TRY(fth_flight_fill(f, &f->probe_store));
    const double begin = fth_now();
    FTH_TRY(measure_start(f));
    *seconds = fth_now() - begin;
    return FTH_OK;
}

/* Fewer tokens, then fewer updates, until both dashes take about half a minute. */
static fth_err choose_size(fth_flight *f, double *seconds) {
    const double bound = 0.7 * FTH_FLIGHT_SECONDS;
    f->out->planned = FTH_PREFLIGHT_UPDATES;
    f->n_batches = f->how->quick ? 1 : (int)f->spec->update_freq;
    FTH_TRY(start_with(f, few_tokens(f, QUICK_TOKENS), seconds));
    if (!f->how->quick || 2 * FTH_PREFLIGHT_UPDATES * *seconds < bound) return FTH_OK;
    if (few_tokens(f, FEW_TOKENS) < f->tokens)
        FTH_TRY(start_with(f, few_tokens(f, FEW_TOKENS), seconds));
    const double n = floor(bound / 2 / *seconds);
    f->out->planned = n > FTH_PREFLIGHT_UPDATES ? FTH_PREFLIGHT_UPDATES
                      : n < FEW_UPDATES         ? FEW_UPDATES
                                                : (int32_t)n;
    return FTH_OK;
}

static fth_err open_memory(fth_flight *f) {
    size_t rows = (size_t)top_rows(f); /* logits have at most as many */
    size_t width = (size_t)f->model.config.d_model;
    size_t vocab = (size_t)fth_config_output_vocab(&f->model.config);
    f->start = malloc(sizeof *f->start * rows * 2 * (width + vocab));
    if (!f->start) return fth_no_memory("a preflight");
    f->now = f->start + rows * width;
    f->logits[0] = f->now + rows * width;
    f->logits[1] = f->logits[0] + rows * vocab;
    return FTH_OK;
}

static fth_err measure(fth_flight *f) {
    const fth_run_spec *s = f->spec;
    fth_recipe recipe = s->recipe;
    double seconds;
    f->began = fth_now();
    FTH_TRY(fth_trainer_init(&f->trainer, &f->model, f->device, &recipe, &f->size));
    FTH_TRY(fth_telemetry_new(&f->trainer, &f->size, &f->telemetry));
    f->out->recomputed = fth_program_recomputed(f->trainer.program);
    FTH_TRY(fth_flight_probe(f));
    FTH_TRY(fth_flight_stores(f));
    FTH_TRY(choose_size(f, &seconds));
    FTH_TRY(open_memory(f));
    FTH_TRY(dash(f, 1, &f->out->scheduled));
    FTH_TRY(dash(f, s->recipe.schedule.warmup + 1, &f->out->peak));
    FTH_TRY(fth_flight_time(f, seconds));
    return fth_preflight_ranks(f);
}

static fth_err measure_with_bar(fth_flight *f) {
    const int64_t updates = 1 + 2 * FTH_PREFLIGHT_UPDATES + FTH_FLIGHT_WARM + FTH_FLIGHT_TIMED;
    if (f->how->log)
        fth_progress_init(&f->bar, f->how->log, fth_real_clock(), "preflight", "updates", 0,
                          updates);
    fth_err err = measure(f);
    if (f->how->log) fth_progress_end(&f->bar);
    return err;
}

fth_err fth_preflight_run(const fth_run_spec *spec, const fth_preflight_how *how,
                          fth_device *device, fth_preflight *out) {
    fth_flight f = {.spec = spec, .how = how, .device = device, .out = out};
    *out = (fth_preflight){.peak_lr = spec->recipe.schedule.lr,
                           .warmup = spec->recipe.schedule.warmup,
                           .carried = {NAN, NAN},
                           .encoder_cosine = NAN};
    if (spec->recipe.schedule.kind == FTH_INVERSE_SQRT_NOWARMUP) out->warmup = 0;
    fth_err err = fth_flight_open(&f);
    const bool opened = err == FTH_OK;
    if (err == FTH_OK) err = fth_flight_plan(&f);
    if (err == FTH_OK) {
        out->uniform_loss = log((double)fth_config_output_vocab(&f.model.config));
        out->advice = fth_method_warning(&f.model.method);
        out->ramp = fth_method_ramp(&f.model.method);
        if (out->fits) err = measure_with_bar(&f);
    }
    if (err == FTH_NO_MEMORY &&
        opened) { /* the budget, or the machine, is too small: that is a verdict */
        out->fits = false;
        err = FTH_OK;
    }
    if (err == FTH_OK) fth_preflight_judge(out);
    fth_flight_fini(&f);
    if (err != FTH_OK) fth_preflight_fini(out);
    return err;
}

void fth_preflight_fini(fth_preflight *p) {
    free(p->grad_norm[0]);
    free(p->grad_norm[1]);
    p->grad_norm[0] = p->grad_norm[1] = NULL;
}
