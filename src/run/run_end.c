/* run_end.c: how a run ends: stopped by a value that is not finite, judged as failed, or well; a
 * failure is reported in RUN/diverged.json. */
#include "run/running.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/number.h"
#include "base/str.h"
#include "run/failure_report.h"
#include "run/health.h"

/* RUN/diverged.json; the caller's error is about the run, so one of the report's is only warned of.
 * A process that has made no update has nothing to add to what an earlier one wrote. */
static void report_failure(fth_running *r, const fth_failure *f) {
    if (!fth_running_writes(r)) return;
    char *path = fth_strdup_printf("%s/diverged.json", r->spec->save_dir);
    if (path && f->update == r->began && fth_file_exists(path)) {
        free(path);
        return;
    }
    if (!path || fth_diverge_write(path, &r->trainer, r->telemetry, f, r->log) != FTH_OK)
        fth_log_warn(r->log, "no report of the failure: %s", fth_error_message());
    free(path);
}

/* The batch at a position is made again. Nothing is made ahead any more. */
static fth_err make_batch(fth_running *r, fth_position at, const fth_batch **out) {
    fth_packed packed = {0};
    fth_prefetch_free(r->prefetch);
    r->prefetch = NULL;
    FTH_TRY(fth_batcher_seek(r->batcher, at));
    fth_err err = fth_packed_init(&packed, (int32_t)r->spec->max_tokens);
    if (err == FTH_OK) err = fth_batcher_next(r->batcher, &packed);
    if (err == FTH_OK) err = fth_store_packed(&r->stores[0], &packed, &r->model.config, 0);
    fth_packed_fini(&packed);
    *out = &r->stores[0].batch;
    return err;
}

fth_err fth_running_diverged(fth_running *r, const fth_update *u, fth_position begun) {
    char where[160], reason[320];
    int64_t update = r->state.update + 1;
    const fth_batch *batch = NULL;
    fth_nonfinite first;
    FTH_TRY(make_batch(r, begun, &batch));
    FTH_TRY(fth_health_first_nonfinite(&r->trainer, update, batch, &first));
    fth_nonfinite_text(&first, where, sizeof where);
    json_t *line = fth_run_log_line("diverged", update);
    fth_run_log_number(line, "loss", u->loss);
    fth_run_log_number(line, "gnorm", u->gnorm);
    fth_run_log_text(line, "where", where);
    FTH_TRY(fth_run_log_write(&r->lines, line));
    snprintf(reason, sizeof reason, "loss %s, gradient norm %s; first value that is not finite: %s",
             fth_shown_number(u->loss).text, fth_shown_number(u->gnorm).text, where);
    report_failure(r, &(fth_failure){.kind = FTH_FAULT_NONFINITE,
                                     .reason = reason,
                                     .update = update,
                                     .max_update = r->spec->max_update,
                                     .loss = u->loss,
                                     .gnorm = u->gnorm,
                                     .encoder_cosine = NAN,
                                     .nonfinite = &first});
    return fth_fail(FTH_DIVERGED,
                    "training diverged at update %lld: %s. %s; %s/diverged.json has what was "
                    "measured and what usually helps",
                    (long long)update, reason,
                    fth_folder_has(r->checkpoints, "last") ? "The last good checkpoint is kept"
                                                           : "There is no checkpoint yet",
                    r->spec->save_dir);
}

static fth_err judge(fth_running *r, fth_judgement *out) {
    *out = (fth_judgement){.kind = FTH_NO_FAULT};
    if (r->evaluates && r->state.update >= r->spec->judge_after)
        return fth_health_judge(&r->evaluator, r->valid, r->state.update, (int32_t)r->spec->block,
                                r->best_nll, r->state.valid_nll, r->folder.target_unigram_nll, out);
    if (r->state.update > r->began || !isnan(r->state.first_nll))
        fth_health_judge_short(r->state.first_nll,
                               r->evaluates ? r->state.valid_nll : r->state.last_nll, out);
    return FTH_OK;
}

fth_err fth_running_end(fth_running *r, fth_run_result *result) {
    fth_judgement j;
    if (fth_running_writes(r)) FTH_TRY(judge(r, &j));
    FTH_TRY(fth_ranks_broadcast(r->spec->ranks, &j, sizeof j));
    bool failed = j.kind != FTH_NO_FAULT;
    json_t *line = fth_run_log_line(failed ? "diverged" : "end", r->state.update);
    fth_run_log_number(line, "best", fth_running_best(r));
    fth_run_log_number(line, "wall", result->seconds);
    if (failed) fth_run_log_text(line, "reason", j.reason);
    FTH_TRY(fth_run_log_write(&r->lines, line));
    if (!failed) return FTH_OK;
    report_failure(r, &(fth_failure){.kind = j.kind,
                                     .reason = j.reason,
                                     .update = r->state.update,
                                     .max_update = r->spec->max_update,
                                     .loss = r->evaluates ? r->state.valid_nll : r->state.last_nll,
                                     .gnorm = NAN,
                                     .encoder_cosine = j.encoder_cosine});
    return fth_fail(FTH_DIVERGED,
                    "training failed: %s. %s/diverged.json has what was measured and what usually "
                    "helps",
                    j.reason, r->spec->save_dir);
}
