/* run_loop.c: update after update, until a limit is met or a signal comes, with validations and
 * checkpoints where they are due. */
#include "run/running.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/progress.h"
#include "base/signals.h"
#include "run/run_ranks.h"

/* Validation and checkpoint belong together: the state that is saved knows the score. One that a
 * signal ends is made when the run goes on. */
static fth_err validate_and_save(fth_running *r, bool with_validation) {
    fth_err err = with_validation && r->evaluates ? fth_running_validate(r) : FTH_OK;
    return err == FTH_OK || err == FTH_STOPPED ? fth_running_save(r) : err;
}

/* Fetches the next batch. */
static fth_err fetch(fth_running *r, fth_prefetched *made) {
    FTH_TRY(fth_prefetch_next(r->prefetch, made));
    r->position = made->next;
    return FTH_OK;
}

/* The batches of an update: the first one is at hand already, and knows the targets of all. */
typedef struct own_batches {
    fth_running *run;
    fth_prefetched made;
    bool begun;
} own_batches;

static fth_err next_batch(void *context, const fth_batch **out) {
    own_batches *b = context;
    if (b->begun) FTH_TRY(fetch(b->run, &b->made));
    b->begun = true;
    *out = &b->run->stores[b->made.slot].batch;
    return FTH_OK;
}

static fth_err run_update(fth_running *r, int64_t update, bool watched, fth_update *u) {
    own_batches own = {.run = r};
    FTH_TRY(fetch(r, &own.made));
    const int n = (int)r->spec->update_freq;
    const fth_batch *first = &r->stores[own.made.slot].batch;
    const fth_batches batches = {
        .n = n,
        .targets = n > 1 ? own.made.counted : fth_batch_targets(first, r->trainer.outputs.rows),
        .next = next_batch,
        .context = &own,
        .kept = fth_batches_held(r->spec) >= n};
    return watched ? fth_telemetry_update_from(r->telemetry, update, &batches, u)
                   : fth_trainer_update_from(&r->trainer, update, &batches, u);
}

/* Is an update watched? The first one is, for it shows how the model begins. */
static bool is_watched(const fth_running *r, int64_t update) {
    return r->telemetry && (update == 1 || update % r->spec->telemetry == 0);
}

static fth_err one_update(fth_running *r, fth_update *u) {
    int64_t update = r->state.update + 1;
    FTH_TRY(fth_running_check_folder(r));
    FTH_TRY(fth_verify_found(r->verify));
    const fth_position before = r->position;
    fth_err err = run_update(r, update, is_watched(r, update), u);
    if (err == FTH_STOPPED) r->position = before; /* as if it had not begun */
    FTH_TRY(err);
    if (is_watched(r, update)) FTH_TRY(fth_telemetry_log(r->telemetry, &r->lines));
    if (!u->finite) return fth_running_diverged(r, u, before);
    r->state.update++;
    if (r->state.update == 1) r->state.first_nll = u->nll;
    r->state.last_nll = u->nll;
    r->state.alpha = u->alpha;
    r->state.tokens += u->tokens;
    r->model.config.step = r->state.update;
    r->state.log_loss += u->loss * (double)u->tokens;
    r->state.log_nll += u->nll * (double)u->tokens;
    r->state.log_gnorm += u->gnorm;
    r->state.log_tokens += u->tokens;
    r->state.log_updates++;
    r->tokens += u->tokens;
    r->updates++;
    return FTH_OK;
}

/* Has a limit of the run been met? */
static bool finished(const fth_running *r) {
    const fth_run_spec *s = r->spec;
    if (r->state.update >= s->max_update) return true;
    if (s->max_epoch > 0 && r->position.epoch > s->max_epoch) return true;
    return s->patience > 0 && r->state.patience >= s->patience;
}

/* Whether another update is to be made. The clock and signals are not the same on all ranks: they
 * agree. */
static fth_err goes_on(fth_running *r, int *signal, bool *result) {
    const fth_run_spec *s = r->spec;
    *result = false;
    if (finished(r)) return FTH_OK;
    *signal = fth_signals_pending();
    bool late = s->stop_seconds > 0 && fth_now() - r->started >= s->stop_seconds;
    FTH_TRY(fth_ranks_stop(s->ranks, signal, &late));
    *result = !*signal && !late;
    return FTH_OK;
}

static bool is_due(int64_t update, int64_t interval) {
    return interval > 0 && update % interval == 0;
}

/* Does a run that is not stopped have a checkpoint of this update? */
static bool is_regular(const fth_run_spec *s, int64_t update) {
    return is_due(update, s->validate_interval) || is_due(update, s->save_interval);
}

/* Whether the checkpoint that this process goes on from still lacks the validation that its update
 * was due. */
static bool is_unvalidated(const fth_running *r) {
    return r->resumed && r->evaluates && r->state.update > 0 &&
           r->state.validated != r->state.update &&
           is_due(r->state.update, r->spec->validate_interval);
}

/* What the bar counts to: where a number of epochs is the limit, the updates that they have,
 * about. */
static int64_t expected_updates(const fth_running *r) {
    const fth_run_spec *s = r->spec;
    const int64_t epoch = fth_batcher_expected(r->batcher) / s->update_freq;
    if (s->max_epoch <= 0 || epoch >= s->max_update / s->max_epoch) return s->max_update;
    return epoch > 0 ? epoch * s->max_epoch : s->max_epoch;
}

fth_err fth_running_loop(fth_running *r, int *signal) {
    fth_progress bar;
    char extra[80];
    const int64_t update = r->state.update, most = expected_updates(r);
    fth_progress_init(&bar, r->log, fth_real_clock(), "train", "updates", update,
                      update > most ? update : most);
    r->since = fth_now();
    r->waited = fth_ranks_waited(r->spec->ranks);
    r->slow = -1;
    int64_t saved = r->resumed ? r->state.update : -1;
    fth_update u = {0};
    fth_err err = FTH_OK;
    if (r->resumed) r->state.stopped_at = is_regular(r->spec, update) ? 0 : update;
    if (is_unvalidated(r)) FTH_TRY_OR(err, validate_and_save(r, true), done);
    for (bool on;;) {
        FTH_TRY_OR(err, goes_on(r, signal, &on), done);
        if (!on) break;
        err = one_update(r, &u);
        if (err == FTH_STOPPED) continue; /* the signal is still there */
        if (err != FTH_OK) goto done;
        int64_t t = r->state.update;
        snprintf(extra, sizeof extra, "loss %.3f, %.0f tokens/s", u.nll,
                 (double)r->tokens / (fth_now() - r->since + 1e-9));
        fth_progress_update(&bar, t, extra);
        if (is_due(t, r->spec->log_interval)) FTH_TRY_OR(err, fth_running_log_train(r), done);
        if (is_regular(r->spec, t)) {
            const bool validation = is_due(t, r->spec->validate_interval);
            const double begun = fth_now(), waited = fth_ranks_waited(r->spec->ranks);
            FTH_TRY_OR(err, validate_and_save(r, validation), done);
            r->since += fth_now() - begun; /* the speed is that of training */
            r->waited += fth_ranks_waited(r->spec->ranks) - waited;
            saved = t;
        }
    }
    err = FTH_OK;
    if (r->state.log_updates > 0) FTH_TRY_OR(err, fth_running_log_train(r), done);
    const bool unjudged = r->evaluates && *signal == 0 && r->state.validated != r->state.update;
    if (saved != r->state.update || unjudged) err = validate_and_save(r, *signal == 0);
    if (r->evaluates && r->state.validated != r->state.update) *signal = fth_signals_pending();
done:
    fth_progress_end(&bar);
    return err;
}
