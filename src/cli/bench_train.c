/* bench_train.c: fathom bench train: how fast a model trains here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/device/device.h"
#include "base/clock.h"
#include "base/median.h"
#include "base/philox.h"
#include "cli/bench.h"
#include "cli/bench_batch.h"
#include "graph/flops.h"
#include "run/telemetry.h"
#include "train/pipeline.h"

enum { SILENCE = 20 }; /* seconds after which a rank is lost */

typedef struct bench {
    const bench_options *o;
    fth_device *device;
    fth_model model;
    fth_trainer trainer;
    fth_bench_batch made;
    fth_telemetry *telemetry; /* NULL: none */
    double *seconds;          /* [updates] */
    double *watched;          /* [updates] with telemetry */
    double startup;
    double least_cpu; /* seconds of all threads for the update that took the least of them */
    int64_t before;   /* bytes in use before the model was made */
    fth_ranks *ranks; /* NULL: alone */
    const fth_batch **batches; /* [update_freq] the one that was made */
    int64_t sent;              /* bytes that this rank has sent in the timed updates */
    double flops;              /* of a batch */
    double waited;             /* seconds of them that it has waited for others */
} bench;

static fth_err set_up(bench *b, const fth_config *config, const fth_recipe *recipe) {
    double start = fth_now();
    FTH_TRY(fth_bench_bytes(b->device, false, &b->before));
    FTH_TRY(fth_model_init(&b->model, config));
    fth_trainer_spec size = fth_bench_size(b->o, config);
    size.memory_budget = (int64_t)b->o->memory_budget;
    size.batches = b->o->update_freq;
    size.ranks = b->ranks;
    size.stages = (int)b->o->pipeline;
    size.own_first = strcmp(b->o->reduce, "fast") == 0;
    size.inline_updates =
        fth_can_update_inline(recipe, b->o->update_freq, fth_rank_count(b->ranks));
    FTH_TRY(fth_pipeline_check(b->ranks, b->device, size.stages));
    FTH_TRY(fth_trainer_init(&b->trainer, &b->model, b->device, recipe, &size));
    if (b->o->telemetry) FTH_TRY(fth_telemetry_new(&b->trainer, &size, &b->telemetry));
    FTH_TRY(fth_trainer_draw(&b->trainer, 1));
    FTH_TRY(fth_bench_batch_init(&b->made, b->o, config));
    for (int64_t i = 0; i < b->o->update_freq; i++) b->batches[i] = &b->made.store.batch;
    b->startup = fth_now() - start;
    return FTH_OK;
}

/* Bytes that this rank has sent so far. */
static int64_t sent_by(const bench *b) {
    return fth_ranks_sent(b->ranks) + (b->trainer.exchange ? b->trainer.exchange->sent : 0);
}

static fth_err measure(bench *b) {
    const int n = (int)b->o->update_freq;
    int64_t warm = 2;
    for (int64_t i = 0; i < b->o->updates + warm; i++) {
        if (i == warm && b->o->profile) fth_program_profile(b->trainer.program, true);
        if (i == warm) b->sent = sent_by(b), b->waited = fth_ranks_waited(b->ranks);
        double start = fth_now(), cpu = fth_seconds(CLOCK_PROCESS_CPUTIME_ID);
        fth_update u;
        FTH_TRY(fth_trainer_update(&b->trainer, i + 1, b->batches, n, &u));
        if (!u.finite) return fth_fail(FTH_DIVERGED, "update %lld is not finite", (long long)i + 1);
        if (i == 0) b->startup += fth_now() - start; /* a first update may prepare things */
        if (i >= warm) b->seconds[i - warm] = fth_now() - start;
        cpu = fth_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        if (i == warm || (i > warm && cpu < b->least_cpu)) b->least_cpu = cpu;
        if (!b->telemetry) continue;
        start = fth_now();
        FTH_TRY(fth_telemetry_update(b->telemetry, i + 1, b->batches, n, &u));
        if (i >= warm) b->watched[i - warm] = fth_now() - start;
    }
    b->flops = fth_graph_flops(fth_program_graph(b->trainer.program), b->batches[0]);
    if (b->o->pipeline > 1) { /* each has its stage's */
        FTH_TRY(fth_ranks_add(b->ranks, &b->flops, 1));
        b->flops /= b->trainer.groups;
    }
    b->sent = sent_by(b) - b->sent;
    b->waited = fth_ranks_waited(b->ranks) - b->waited;
    return FTH_OK;
}

static fth_err report(bench *b) {
    int64_t n = b->o->updates, peak = 0;
    double total = 0;
    for (int64_t i = 0; i < n; i++) total += b->seconds[i];
    double median = fth_median(b->seconds, n), watched = fth_median(b->watched, n);
    const fth_batch *batch = &b->made.store.batch;
    const double batches = (double)b->o->update_freq;
    double tokens = batches * (batch->side[0].rows + batch->side[1].rows);
    const double flops = batches * b->flops;
    FTH_TRY(fth_bench_bytes(b->device, true, &peak));
    peak -= b->before;
    double planned = (double)fth_trainer_bytes(&b->trainer);
    double parameters = (double)fth_params_count(&b->model.params);
    if (b->o->json) {
        printf("{\"tokens_per_s\": %.6g, \"ms_per_update\": %.6g, \"ms_fastest\": %.6g, "
               "\"cpu_ms\": %.6g, \"tflops\": %.6g, \"peak_bytes\": %lld, \"planned_bytes\": %.0f, "
               "\"parameters\": %.0f, "
               "\"startup_s\": %.4g, \"recomputed_layers\": %d, \"device\": \"%s\", "
               "\"threads\": %d",
               tokens / median, 1e3 * median, 1e3 * b->seconds[0], 1e3 * b->least_cpu,
               flops / median / 1e12, (long long)peak, planned, parameters, b->startup,
               fth_program_recomputed(b->trainer.program), b->device->backend->name,
               b->device->threads);
        if (b->telemetry) printf(", \"ms_per_watched_update\": %.6g", 1e3 * watched);
        if (b->ranks)
            printf(", \"ranks\": %d, \"sent_bytes\": %.0f, \"waited\": %.4g",
                   fth_rank_count(b->ranks), (double)b->sent / (double)n, b->waited / total);
        printf("}\n");
        return FTH_OK;
    }
    printf("%.1f M parameters on %s, %d thread%s\n", parameters / 1e6, b->device->backend->name,
           b->device->threads, b->device->threads == 1 ? "" : "s");
    printf("%.0f tokens/s, %.1f ms/update (median of %lld), %.1f GFLOP/s\n", tokens / median,
           1e3 * median, (long long)n, flops / median / 1e9);
    printf("memory: planned %.1f MiB, measured %.1f MiB; start-up %.2f s\n", planned / 1048576,
           (double)peak / 1048576, b->startup);
    if (b->ranks)
        printf("rank 0 of %d: sends %.1f MiB an update, waits %.1f %% of the time\n",
               fth_rank_count(b->ranks), (double)b->sent / (double)n / 1048576,
               100 * b->waited / total);
    if (b->telemetry)
        printf("measured updates: %.1f ms, so --telemetry 10 costs %.2f %%\n", 1e3 * watched,
               10 * (watched / median - 1));
    if (b->o->profile)
        fth_bench_print_profile(fth_program_times(b->trainer.program), total, (double)n,
                                "ms/update");
    return FTH_OK;
}

static fth_err check_length(const bench_options *o, const fth_config *c) {
    const int64_t length = fth_bench_size(o, c).max_len;
    if (o->max_tokens >= length) return FTH_OK;
    if (length != o->sentence_length)
        return fth_fail(
            FTH_USAGE,
            "--max-tokens %lld: must be at least %lld, the rows of a picture or recording",
            (long long)o->max_tokens, (long long)length);
    return fth_fail(FTH_USAGE, "--max-tokens %lld: must be at least --sentence-length %lld",
                    (long long)o->max_tokens, (long long)length);
}

fth_err fth_bench_train(const fth_bench *what) {
    const bench_options *o = what->o;
    const fth_device_options *d = what->device;
    bench b = {.o = o};
    fth_config config;
    const fth_recipe recipe = fth_bench_recipe();
    FTH_TRY(fth_bench_config(what, &config));
    FTH_TRY(check_length(o, &config));
    b.seconds = calloc((size_t)o->updates * 2, sizeof *b.seconds);
    if (!b.seconds)
        return fth_fail(FTH_NO_MEMORY, "no memory for %lld times", (long long)o->updates);
    b.watched = b.seconds + o->updates;
    b.batches = calloc((size_t)o->update_freq, sizeof *b.batches);
    fth_err err = b.batches ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a bench");
    if (err == FTH_OK) err = fth_ranks_open(SILENCE, &b.ranks);
    if (err == FTH_OK)
        err = fth_ranks_agree(b.ranks,
                              fth_device_open(d->device, d->precision, (int)d->threads, &b.device));
    if (err == FTH_OK) err = set_up(&b, &config, &recipe);
    if (err == FTH_OK) err = measure(&b);
    if (err == FTH_OK && fth_rank(b.ranks) == 0) err = report(&b);
    fth_telemetry_free(b.telemetry);
    fth_trainer_fini(&b.trainer);
    fth_bench_batch_fini(&b.made);
    fth_model_fini(&b.model);
    fth_device_close(b.device);
    free(b.seconds);
    free(b.batches);
    fth_ranks_close(b.ranks, err);
    return err;
}
