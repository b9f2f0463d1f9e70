/* bench_scaling.c: fathom bench scaling: how fast a model would train on ranks that are not here.
 * One rank is measured, or its times are given; the schedule is played through (train/replay.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/device/device.h"
#include "base/clock.h"
#include "cli/bench.h"
#include "cli/bench_batch.h"
#include "graph/plan.h"
#include "graph/stages.h"
#include "train/replay.h"

typedef struct scaling {
    const bench_options *o;
    fth_device *device;
    fth_model model;
    fth_trainer_spec size;
    fth_bench_batch made;
    fth_stages stages;
    int64_t *hop; /* [stages] bytes over the border above each */
    double batch, update;
} scaling;

enum { TIMED = 3 };

/* Seconds of updates of n batches, the fastest. */
static fth_err time_updates(fth_trainer *t, const fth_batch *batch, int n, double *seconds) {
    const fth_batch *batches[2] = {batch, batch};
    *seconds = 1e30;
    for (int i = 0; i < TIMED + 1; i++) {
        fth_update u;
        const double start = fth_now();
        FTH_TRY(fth_trainer_update(t, i + 1, batches, n, &u));
        if (i > 0 && fth_now() - start < *seconds) *seconds = fth_now() - start;
    }
    return FTH_OK;
}

/* Two updates of different length tell apart what a batch takes and what an update does. */
static fth_err measure(scaling *s, const fth_recipe *recipe) {
    fth_trainer t;
    double one = 0, two = 0;
    if (s->o->batch_ms > 0) {
        s->batch = s->o->batch_ms / 1e3;
        s->update = s->o->update_ms / 1e3;
        return FTH_OK;
    }
    s->size.batches = 2;
    FTH_TRY(fth_trainer_init(&t, &s->model, s->device, recipe, &s->size));
    fth_err err = fth_trainer_draw(&t, 1);
    if (err == FTH_OK) err = time_updates(&t, &s->made.store.batch, 1, &one);
    if (err == FTH_OK) err = time_updates(&t, &s->made.store.batch, 2, &two);
    fth_trainer_fini(&t);
    s->batch = two - one > 0 ? two - one : one;
    s->update = one - s->batch > 0 ? one - s->batch : 0;
    return err;
}

/* Bytes that stage k sends to those above it for a batch; gradients take the same way back. */
static void count_hops(scaling *s, const fth_graph *g, const int64_t rows[FTH_N_EXTENTS]) {
    const fth_plan_spec sizes = fth_program_plan_spec(s->device, rows);
    for (int32_t i = 0; i < s->stages.n_crossings; i++) {
        const fth_crossing *c = &s->stages.crossing[i];
        if (!c->backward) s->hop[c->from] += fth_value_bytes(g, &sizes, c->value);
    }
}

static fth_err cut(scaling *s, const fth_recipe *recipe) {
    const fth_config *c = &s->model.config;
    const int32_t layers[2] = {fth_stack_layers(c, FTH_ENCODER), fth_stack_layers(c, FTH_DECODER)};
    int64_t rows[FTH_N_EXTENTS];
    fth_graph graph;
    fth_outputs outputs;
    fth_batch_rows(&s->made.store.batch, rows);
    s->hop = calloc((size_t)s->o->pipeline, sizeof *s->hop);
    if (!s->hop) return fth_fail(FTH_NO_MEMORY, "no memory for a bench");
    FTH_TRY(fth_update_graph(&s->model, s->device, recipe, NULL, NULL, &graph, &outputs));
    fth_err err = fth_stages_find(&graph, layers, rows, (int32_t)s->o->pipeline, &s->stages);
    if (err == FTH_OK) count_hops(s, &graph, rows);
    fth_graph_fini(&graph);
    return err;
}

static fth_err check(const bench_options *o) {
    if (o->ranks % o->pipeline != 0)
        return fth_fail(FTH_USAGE, "--pipeline %lld: must divide --ranks %lld",
                        (long long)o->pipeline, (long long)o->ranks);
    if (o->update_freq < o->ranks / o->pipeline)
        return fth_fail(FTH_USAGE,
                        "--update-freq %lld: must be at least %lld, a batch of each of the ranks "
                        "that have a whole model",
                        (long long)o->update_freq, (long long)(o->ranks / o->pipeline));
    return FTH_OK;
}

static fth_err replay(const scaling *s, int ranks, int stages, fth_replay *out) {
    const bench_options *o = s->o;
    const double one = 1;
    const fth_topology t = {.ranks = ranks,
                            .ranks_per_host = (int)o->ranks_per_host,
                            .stages = stages,
                            .link = o->link_gb_s * 1e9,
                            .net = o->net_gb_s * 1e9,
                            .latency = o->latency_us * 1e-6};
    const fth_workload w = {.batch = s->batch,
                            .update = s->update,
                            .cost = stages > 1 ? s->stages.cost : &one,
                            .hop = s->hop,
                            .batches = (int)o->update_freq,
                            .parameters = fth_params_count(&s->model.params),
                            .own_first = strcmp(o->reduce, "fast") == 0};
    return fth_replay_update(&t, &w, out);
}

static fth_err report(const scaling *s) {
    const bench_options *o = s->o;
    const fth_batch *b = &s->made.store.batch;
    const double tokens = (double)o->update_freq * (b->side[0].rows + b->side[1].rows);
    fth_replay all, alone;
    FTH_TRY(replay(s, (int)o->ranks, (int)o->pipeline, &all));
    FTH_TRY(replay(s, 1, 1, &alone));
    const double speedup = alone.seconds / all.seconds;
    if (o->json) {
        printf(
            "{\"tokens_per_s\": %.6g, \"ms_per_update\": %.6g, \"speedup\": %.6g, "
            "\"efficiency\": %.4g, \"computed\": %.4g, \"exchange\": %.4g, \"sent_bytes\": %.0f, "
            "\"ranks\": %lld, \"pipeline\": %lld, \"batch_ms\": %.6g, \"update_ms\": %.6g, "
            "\"parameters\": %lld}\n",
            tokens / all.seconds, 1e3 * all.seconds, speedup, speedup / (double)o->ranks,
            all.computed, all.exchange, all.sent, (long long)o->ranks, (long long)o->pipeline,
            1e3 * s->batch, 1e3 * s->update, (long long)fth_params_count(&s->model.params));
        return FTH_OK;
    }
    printf("%.1f M parameters, %.1f ms a batch and %.1f ms an update on one rank\n",
           (double)fth_params_count(&s->model.params) / 1e6, 1e3 * s->batch, 1e3 * s->update);
    printf("%lld ranks, %lld stage%s: %.0f tokens/s, %.1f ms/update, %.2f times one rank (%.0f %% "
           "of %lld)\n",
           (long long)o->ranks, (long long)o->pipeline, o->pipeline == 1 ? "" : "s",
           tokens / all.seconds, 1e3 * all.seconds, speedup, 100 * speedup / (double)o->ranks,
           (long long)o->ranks);
    printf("time: %.1f %% computing, %.1f %% exchanging gradients and weights, %.1f %% waiting for "
           "other stages\n",
           100 * all.computed, 100 * all.exchange, 100 * fmax(1 - all.computed - all.exchange, 0));
    printf("a rank sends at most %.1f MiB an update\n", all.sent / 1048576);
    return FTH_OK;
}

fth_err fth_bench_scaling(const fth_bench *what) {
    const fth_device_options *d = what->device;
    scaling s = {.o = what->o};
    fth_config config;
    const fth_recipe recipe = fth_bench_recipe();
    FTH_TRY(check(what->o));
    FTH_TRY(fth_bench_config(what, &config));
    fth_err err = fth_device_open(d->device, d->precision, (int)d->threads, &s.device);
    if (err == FTH_OK) err = fth_model_init(&s.model, &config);
    if (err == FTH_OK) s.size = fth_bench_size(what->o, &config);
    if (err == FTH_OK) err = fth_bench_batch_init(&s.made, what->o, &config);
    if (err == FTH_OK) err = cut(&s, &recipe);
    if (err == FTH_OK) err = measure(&s, &recipe);
    if (err == FTH_OK) err = report(&s);
    fth_stages_fini(&s.stages);
    free(s.hop);
    fth_bench_batch_fini(&s.made);
    fth_model_fini(&s.model);
    fth_device_close(s.device);
    return err;
}
