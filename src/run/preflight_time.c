/* preflight_time.c: how long the updates of a run take. */
#include <math.h>

#include "base/clock.h"
#include "base/median.h"
#include "run/flight.h"

enum { TIMED = FTH_FLIGHT_TIMED, WARM = FTH_FLIGHT_WARM };

/* Seconds and target tokens of a plain update with batches of the size at hand; not of the first
 * one, which
 * warms up. */
static fth_err time_one(fth_flight *f, int64_t update, double *seconds, double *tokens) {
    fth_update u;
    fth_batches batches;
    FTH_TRY(fth_flight_next(f, &batches));
    const double start = fth_now();
    FTH_TRY(fth_trainer_update_from(&f->trainer, update, &batches, &u));
    *seconds = fth_now() - start;
    *tokens = (double)u.tokens;
    fth_flight_show(f, u.nll);
    return FTH_OK;
}

/* Median of a few updates as the run makes them; after two that warm up. */
static fth_err time_whole(fth_flight *f, double until) {
    double seconds[TIMED];
    int n = 0;
    for (int i = 0; i < WARM + TIMED; i++) {
        double spent;
        FTH_TRY(time_one(f, i + 1, &spent, &f->out->target_tokens));
        if (i >= WARM || fth_now() > until) seconds[n++] = spent;
        if (n > 0 && fth_now() > until) break; /* a slow model: one is enough */
    }
    f->out->seconds_per_update = fth_median(seconds, n);
    return FTH_OK;
}

/* Two smaller sizes of batches give the seconds of a token and those that do not depend on tokens.
 */
static fth_err time_from_smaller(fth_flight *f) {
    const double whole = (double)f->spec->max_tokens * (double)f->spec->update_freq;
    double seconds[2], tokens[2];
    const bool halves = f->tokens / 2 >= f->size.max_len; /* a block or a picture must fit */
    for (int i = 0; i < 1 + halves; i++) {
        if (i) FTH_TRY(fth_flight_batches(f, f->tokens / 2));
        FTH_TRY(time_one(f, 1, &seconds[i], &tokens[i]));
        FTH_TRY(time_one(f, 2, &seconds[i], &tokens[i]));
        if (i == 0) f->out->target_tokens = tokens[0] / (double)f->tokens * whole;
    }
    double each = halves ? (seconds[0] - seconds[1]) / fmax(tokens[0] - tokens[1], 1) : 0;
    if (!(each > 0) || each > seconds[0] / tokens[0]) each = seconds[0] / tokens[0];
    f->out->seconds_per_update = seconds[0] + each * fmax(f->out->target_tokens - tokens[0], 0);
    f->out->estimated = true;
    return FTH_OK;
}

/* Updates of the run: the limit that is met first. */
static double updates_of_run(const fth_flight *f) {
    const double most = (double)f->spec->max_update;
    if (f->spec->max_epoch <= 0 || isnan(f->out->updates_per_epoch)) return most;
    return fmin(most, (double)f->spec->max_epoch * f->out->updates_per_epoch);
}

/* seconds: of an update of the dashes. */
fth_err fth_flight_time(fth_flight *f, double seconds) {
    const double larger = (double)f->spec->max_tokens / (double)f->tokens *
                          (double)f->spec->update_freq / f->n_batches;
    const double left = f->began + FTH_FLIGHT_SECONDS - fth_now();
    FTH_TRY(fth_flight_restart(f));
    if (f->how->quick && larger * seconds > left / 3 && f->tokens < f->spec->max_tokens) {
        FTH_TRY(time_from_smaller(f));
    } else {
        FTH_TRY(fth_flight_batches(f, f->spec->max_tokens));
        f->n_batches = (int)f->spec->update_freq;
        FTH_TRY(time_whole(f, f->how->quick ? f->began + FTH_FLIGHT_SECONDS : fth_now() + 20));
    }
    f->out->updates_per_epoch = NAN;
    if (f->train) {
        int64_t tokens = f->train->side[f->train->n_sides - 1].tokens + f->train->sentences;
        f->out->updates_per_epoch = (double)tokens / f->out->target_tokens;
    }
    f->out->updates = updates_of_run(f);
    return FTH_OK;
}
