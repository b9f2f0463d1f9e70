/* run_log_lines.c: the lines of log.jsonl that say how a run begins and goes on. Those of an
 * analysis stand with it: validation, telemetry, the end. */
#include "run/running.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "run/memory_check.h"
#include "run/run_ranks.h"
#include "train/pipeline.h"

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

fth_err fth_running_log_start(fth_running *r) {
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

/* How long ranks have waited for each other since the last line. Stages of a pipeline always
 * wait. */
static fth_err look_at_ranks(fth_running *r, double seconds, fth_rank_waits *out) {
    fth_ranks *ranks = r->spec->ranks;
    FTH_TRY(fth_ranks_waits(ranks, fth_ranks_waited(ranks) - r->waited, seconds, out));
    if (out->slow >= 0 && out->slow != r->slow && r->spec->pipeline <= 1) {
        fth_running_warn(r, out->text);
        r->slow = out->slow;
    }
    r->waited = fth_ranks_waited(ranks);
    return FTH_OK;
}

fth_err fth_running_log_train(fth_running *r) {
    fth_train_state *s = &r->state;
    double seconds = fth_now() - r->since, n = (double)s->log_updates;
    fth_rank_waits waits;
    FTH_TRY(look_at_ranks(r, seconds, &waits));
    json_t *line = fth_run_log_line("train", r->state.update);
    fth_run_log_number(line, "epoch", (double)r->position.epoch);
    fth_run_log_number(line, "loss", s->log_loss / (double)s->log_tokens);
    fth_run_log_number(line, "nll_loss", s->log_nll / (double)s->log_tokens);
    fth_run_log_number(line, "ppl", exp(s->log_nll / (double)s->log_tokens));
    fth_run_log_number(line, "gnorm", s->log_gnorm / n);
    fth_run_log_number(line, "lr", fth_schedule_lr(&r->trainer.recipe.schedule, s->update));
    fth_run_log_number(line, "alpha", s->alpha);
    fth_run_log_number(line, "wps", (double)r->tokens / seconds);
    fth_run_log_number(line, "ups", (double)r->updates / seconds);
    fth_run_log_number(line, "tokens", (double)r->state.tokens);
    fth_run_log_number(line, "wall", fth_running_wall(r));
    fth_run_log_number(line, "data_wait", fth_prefetch_waited(r->prefetch));
    if (r->spec->ranks) fth_run_log_number(line, "rank_wait", waits.mean);
    s->log_loss = s->log_nll = s->log_gnorm = 0;
    s->log_tokens = s->log_updates = 0;
    r->tokens = r->updates = 0;
    r->since = fth_now();
    return fth_run_log_write(&r->lines, line);
}

fth_err fth_running_log_checkpoint(fth_running *r) {
    json_t *line = fth_run_log_line("checkpoint", r->state.update);
    char path[64];
    snprintf(path, sizeof path, "checkpoints/step-%08lld", (long long)r->state.update);
    fth_run_log_text(line, "path", path);
    return fth_run_log_write(&r->lines, line);
}

void fth_running_warn(void *context, const char *text) {
    fth_running *r = context;
    fth_log_warn(r->log, "%s", text);
    json_t *line = fth_run_log_line("warn", r->state.update);
    fth_run_log_text(line, "text", text);
    fth_run_log_write(&r->lines, line);
}
