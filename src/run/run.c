/* run.c: a training run from its options to its result; the files run_*.c are its parts. */
#include "run/run.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/signals.h"
#include "run/memory_check.h"
#include "run/run_ranks.h"
#include "run/running.h"
#include "train/pipeline.h"

bool fth_running_writes(const fth_running *r) {
    return fth_rank(r->spec->ranks) == 0;
}

void fth_running_warn(void *context, const char *text) {
    fth_running *r = context;
    fth_log_warn(r->log, "%s", text);
    json_t *line = fth_run_log_line("warn", r->state.update);
    fth_run_log_text(line, "text", text);
    fth_run_log_write(&r->lines, line);
}

double fth_running_wall(const fth_running *r) {
    return r->wall_before + fth_now() - r->started;
}

/* What the stages are; and how long they wait where that is a quarter of the time and more. */
static void describe_pipeline(fth_running *r) {
    char text[400];
    const int stages = (int)r->spec->pipeline, groups = r->trainer.groups;
    const int batches = (int)((r->spec->update_freq + groups - 1) / groups);
    const double idle = fth_pipeline_idle(stages, batches);
    fth_pipeline_describe(r->trainer.pipeline, text, sizeof text);
    fth_log_info(r->log, "%d stages, of layers %s", stages, text);
    if (idle < 0.25) return;
    snprintf(text, sizeof text,
             "with %d batches an update the stages wait %.0f %% of the time; with --update-freq %d "
             "%.0f %%",
             (int)r->spec->update_freq, 100 * idle, 4 * stages * groups,
             100 * fth_pipeline_idle(stages, 4 * stages));
    fth_running_warn(r, text);
}

static fth_err log_start(fth_running *r) {
    const int64_t planned = fth_running_bytes(r);
    json_t *line = fth_run_log_line("start", r->state.update);
    fth_run_log_number(line, "parameters", (double)fth_params_count(&r->model.params));
    const int64_t batches = fth_batch_memory(r->spec);
    fth_run_log_number(line, "planned_bytes", (double)planned);
    fth_run_log_number(line, "batch_bytes", (double)batches);
    fth_run_log_text(line, "device", r->device->backend->name);
    fth_run_log_number(line, "threads", r->device->threads);
    fth_ranks_log_start(line, r->spec->ranks, r->spec->pipeline);
    if (r->trainer.exchange) fth_run_log_text(line, "exchange", r->trainer.exchange->name);
    if (r->trainer.exchange)
        fth_run_log_text(line, "reduce", r->spec->reduce_fast ? "fast" : "exact");
    fth_run_log_text(line, "config", r->spec->yaml);
    const fth_config *c = &r->model.config;
    fth_log_info(r->log, "%s, %d encoder and %d decoder layers, width %d: %.2f M parameters",
                 r->model.method.method->title, c->encoder_layers, c->decoder_layers, c->d_model,
                 (double)fth_params_count(&r->model.params) / 1e6);
    int64_t available = 0, total = 0;
    FTH_TRY(r->device->backend->memory(r->device, &available, &total));
    fth_log_info(r->log, "needs %.1f MiB on %s (%.1f MiB more are free), %.1f MiB for batches%s",
                 (double)planned / 1048576.0, r->device->backend->name,
                 (double)available / 1048576.0, (double)batches / 1048576.0,
                 fth_program_recomputed(r->trainer.program) ? ", recomputing layers" : "");
    const char *advice = fth_method_warning(&r->model.method);
    if (advice) fth_running_warn(r, advice);
    if (r->trainer.pipeline) describe_pipeline(r);
    if (r->trainer.exchange && r->trainer.exchange->note[0])
        fth_running_warn(r, r->trainer.exchange->note);
    return fth_run_log_write(&r->lines, line);
}

fth_err fth_run(const fth_run_spec *spec, fth_device *device, fth_log *log,
                fth_run_result *result) {
    int signal = 0;
    fth_signals before;
    fth_running r = {
        .spec = spec, .device = device, .log = log, .best_nll = NAN, .lines = {.fd = -1}};
    *result = (fth_run_result){.best_nll = NAN, .final_nll = NAN, .best_score = NAN};
    fth_err err = fth_ranks_agree(spec->ranks, fth_running_open(&r));
    if (err != FTH_OK) goto done;
    FTH_TRY_OR(err, fth_ranks_same_run(spec, fth_folder_hash(&r.folder)), done);
    FTH_TRY_OR(err, fth_running_start(&r), done);
    FTH_TRY_OR(err, log_start(&r), done);
    fth_signals_catch(&before);
    /* alone: where others wait for a part of the update, it is made to its end */
    device->stop = fth_rank_count(spec->ranks) == 1 ? fth_signals_flag() : NULL;
    err = fth_running_loop(&r, &signal);
    device->stop = NULL;
    fth_signals_release(&before);
    if (err != FTH_OK) goto done;
    *result =
        (fth_run_result){.updates = r.state.update,
                         .best_nll = r.spec->best_by_score ? (double)NAN : r.state.best_score,
                         .best_score = r.spec->best_by_score ? fth_running_best(&r) : (double)NAN,
                         .final_nll = r.state.valid_nll,
                         .seconds = fth_running_wall(&r)};
    if (signal)
        err = fth_fail(signal == SIGINT ? FTH_STOPPED : FTH_TERMINATED,
                       "stopped by a signal at update %lld; the same command goes on from here",
                       (long long)r.state.update);
    else
        err = fth_running_end(&r, result);
done:
    fth_running_close(&r);
    return err;
}
