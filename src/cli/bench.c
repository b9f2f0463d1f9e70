/* bench.c: fathom bench train: how fast a model trains here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/device/device.h"
#include "base/philox.h"
#include "base/str.h"
#include "cli/groups.h"
#include "cli/verb.h"
#include "graph/batch_store.h"
#include "graph/flops.h"
#include "train/telemetry.h"

#define BENCH_OPTIONS(X)                                                                           \
    X(I64, vocab, "8192", FTH_RANGE(5, 16777216), "words of the vocabulary")                       \
    X(I64, sentence_length, "32", FTH_RANGE(1, 65535), "tokens of every sentence")                 \
    X(I64, max_tokens, "1024", FTH_RANGE(1, 16777216), "tokens of the batch, of each side")        \
    X(I64, updates, "10", FTH_RANGE(1, 1000000), "updates to time, after two to warm up")          \
    X(SIZE, memory_budget, "", FTH_ANY, "as in fathom train")                                      \
    X(BOOL, telemetry, "false", FTH_ANY,                                                           \
      "time measured updates too, in turn with plain ones (train's --telemetry)")                  \
    X(BOOL, profile, "false", FTH_ANY, "time every kind of operation (operations run one by one)") \
    X(BOOL, json, "false", FTH_ANY, "print one JSON object")
FTH_OPTIONS(bench_options, "bench", BENCH_OPTIONS)

typedef struct bench {
    const bench_options *o;
    fth_device *device;
    fth_model model;
    fth_trainer trainer;
    fth_batch_store store;
    fth_telemetry *telemetry; /* NULL: none */
    double *seconds;          /* [updates] */
    double *watched;          /* [updates] with telemetry */
    double startup;
    int64_t before; /* bytes in use before the model was made */
} bench;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Bytes of this process: resident now, or at their peak. */
static int64_t process_bytes(const char *key) {
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long long kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0) sscanf(line + strlen(key), ": %lld", &kib);
    if (f) fclose(f);
    return kib * 1024;
}

/* Bytes taken on the device: of a GPU what the driver says, else what the process has. */
static fth_err bytes_in_use(fth_device *dev, bool peak, int64_t *out) {
    if (strcmp(dev->backend->name, "cuda") != 0) {
        *out = process_bytes(peak ? "VmHWM" : "VmRSS");
        return FTH_OK;
    }
    int64_t available, total;
    FTH_TRY(dev->backend->memory(dev, &available, &total));
    *out = total - available;
    return FTH_OK;
}

static fth_err fill_side(bench *b, fth_side side, int32_t vocab) {
    int32_t length = (int32_t)b->o->sentence_length;
    int32_t n = (int32_t)(b->o->max_tokens / length), rows = n * length;
    int32_t *ids = malloc(sizeof *ids * (size_t)(2 * rows + n + 1));
    if (!ids) return fth_fail(FTH_NO_MEMORY, "no memory for a batch of %d tokens", rows);
    int32_t *targets = ids + rows, *offsets = targets + rows;
    fth_rng rng;
    fth_rng_init(&rng, 1, (uint64_t)side);
    for (int32_t i = 0; i < 2 * rows; i++)
        ids[i] = 4 + (int32_t)fth_rng_below(&rng, (uint64_t)(vocab - 4));
    for (int32_t i = 0; i <= n; i++) offsets[i] = i * length;
    bool loss = side == b->trainer.outputs.side;
    fth_err err =
        fth_batch_store_fill(&b->store, side, n, offsets, ids, loss ? targets : NULL, vocab);
    free(ids);
    return err;
}

static fth_err set_up(bench *b, const fth_config *config, const fth_recipe *recipe) {
    double start = now();
    FTH_TRY(bytes_in_use(b->device, false, &b->before));
    FTH_TRY(fth_model_init(&b->model, config));
    int64_t src = config->arch == FTH_DEC ? 0 : b->o->max_tokens;
    int64_t tgt = config->arch == FTH_ENC ? 0 : b->o->max_tokens;
    fth_trainer_spec size = {.src_tokens = src,
                             .tgt_tokens = tgt,
                             .max_len = b->o->sentence_length,
                             .memory_budget = (int64_t)b->o->memory_budget};
    FTH_TRY(fth_trainer_init(&b->trainer, &b->model, b->device, recipe, &size));
    if (b->o->telemetry) FTH_TRY(fth_telemetry_new(&b->trainer, &size, &b->telemetry));
    FTH_TRY(fth_trainer_draw(&b->trainer, 1));
    FTH_TRY(fth_batch_store_init(&b->store, (int32_t)src, (int32_t)tgt, (int32_t)b->o->max_tokens));
    if (src) FTH_TRY(fill_side(b, FTH_SRC, config->src_vocab));
    if (tgt) FTH_TRY(fill_side(b, FTH_TGT, config->tgt_vocab));
    b->startup = now() - start;
    return FTH_OK;
}

static fth_err measure(bench *b) {
    const fth_batch *batch = &b->store.batch;
    int64_t warm = 2;
    for (int64_t i = 0; i < b->o->updates + warm; i++) {
        if (i == warm && b->o->profile) fth_program_profile(b->trainer.program, true);
        double start = now();
        fth_update u;
        FTH_TRY(fth_trainer_update(&b->trainer, i + 1, &batch, 1, &u));
        if (!u.finite) return fth_fail(FTH_DIVERGED, "update %lld is not finite", (long long)i + 1);
        if (i == 0) b->startup += now() - start; /* a first update may prepare things */
        if (i >= warm) b->seconds[i - warm] = now() - start;
        if (!b->telemetry) continue;
        start = now();
        FTH_TRY(fth_telemetry_update(b->telemetry, i + 1, &batch, 1, true, &u));
        if (i >= warm) b->watched[i - warm] = now() - start;
    }
    return FTH_OK;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_profile(const bench *b, double total) {
    const double *times = fth_program_times(b->trainer.program);
    double n = (double)b->o->updates, known = 0;
    printf("\n%-18s %10s %7s\n", "operation", "ms/update", "share");
    for (int k = 0; k < FTH_N_KINDS; k++) {
        known += times[k];
        if (times[k] > 0)
            printf("%-18s %10.3f %6.1f%%\n", fth_kind_name((fth_kind)k), 1e3 * times[k] / n,
                   100 * times[k] / total);
    }
    printf("%-18s %10.3f %6.1f%%\n", "optimiser, rest", 1e3 * (total - known) / n,
           100 * (total - known) / total);
}

/* Sorts. */
static double median_of(double *seconds, int64_t n) {
    qsort(seconds, (size_t)n, sizeof *seconds, by_value);
    return n % 2 ? seconds[n / 2] : 0.5 * (seconds[n / 2 - 1] + seconds[n / 2]);
}

static fth_err report(bench *b) {
    int64_t n = b->o->updates, peak = 0;
    double total = 0;
    for (int64_t i = 0; i < n; i++) total += b->seconds[i];
    double median = median_of(b->seconds, n), watched = median_of(b->watched, n);
    const fth_batch *batch = &b->store.batch;
    double tokens = batch->side[0].rows + batch->side[1].rows;
    double flops = fth_graph_flops(fth_program_graph(b->trainer.program), batch);
    FTH_TRY(bytes_in_use(b->device, true, &peak));
    peak -= b->before;
    double planned = (double)fth_trainer_bytes(&b->trainer);
    double parameters = (double)fth_params_count(&b->model.params);
    if (b->o->json) {
        printf("{\"tokens_per_s\": %.6g, \"ms_per_update\": %.6g, \"tflops\": %.6g, "
               "\"peak_bytes\": %lld, \"planned_bytes\": %.0f, \"parameters\": %.0f, "
               "\"startup_s\": %.4g, \"recomputed_layers\": %d, \"device\": \"%s\", "
               "\"threads\": %d",
               tokens / median, 1e3 * median, flops / median / 1e12, (long long)peak, planned,
               parameters, b->startup, fth_program_recomputed(b->trainer.program),
               b->device->backend->name, b->device->threads);
        if (b->telemetry) printf(", \"ms_per_watched_update\": %.6g", 1e3 * watched);
        printf("}\n");
        return FTH_OK;
    }
    printf("%.1f M parameters on %s, %d threads\n", parameters / 1e6, b->device->backend->name,
           b->device->threads);
    printf("%.0f tokens/s, %.1f ms/update (median of %lld), %.1f GFLOP/s\n", tokens / median,
           1e3 * median, (long long)n, flops / median / 1e9);
    printf("memory: planned %.1f MiB, measured %.1f MiB; start-up %.2f s\n", planned / 1048576,
           (double)peak / 1048576, b->startup);
    if (b->telemetry)
        printf("measured updates: %.1f ms, so --telemetry 10 costs %.2f %%\n", 1e3 * watched,
               10 * (watched / median - 1));
    if (b->o->profile) print_profile(b, total);
    return FTH_OK;
}

static fth_err bench_train(const bench_options *o, const fth_model_options *m,
                           const fth_device_options *d) {
    bench b = {.o = o};
    fth_config config;
    fth_recipe recipe = {.schedule = {.kind = FTH_CONSTANT, .lr = 1e-5},
                         .beta1 = 0.9,
                         .beta2 = 0.98,
                         .eps = 1e-8,
                         .weight_decay = 1e-4,
                         .smoothing = 0.1,
                         .dropout = true,
                         .seed = 1};
    if (o->max_tokens < o->sentence_length)
        return fth_fail(FTH_USAGE, "--max-tokens %lld: must be at least --sentence-length %lld",
                        (long long)o->max_tokens, (long long)o->sentence_length);
    FTH_TRY(fth_config_from_options(m, &config));
    config.src_vocab = config.arch == FTH_DEC ? 0 : (int32_t)o->vocab;
    config.tgt_vocab = config.arch == FTH_ENC ? 0 : (int32_t)o->vocab;
    if (config.max_positions < o->sentence_length)
        config.max_positions = (int32_t)o->sentence_length;
    b.seconds = calloc((size_t)o->updates * 2, sizeof *b.seconds);
    if (!b.seconds)
        return fth_fail(FTH_NO_MEMORY, "no memory for %lld times", (long long)o->updates);
    b.watched = b.seconds + o->updates;
    fth_err err = fth_device_open(d->device, d->precision, (int)d->threads, &b.device);
    if (err == FTH_OK) err = set_up(&b, &config, &recipe);
    if (err == FTH_OK) err = measure(&b);
    if (err == FTH_OK) err = report(&b);
    fth_telemetry_free(b.telemetry);
    fth_trainer_fini(&b.trainer);
    fth_batch_store_fini(&b.store);
    fth_model_fini(&b.model);
    fth_device_close(b.device);
    free(b.seconds);
    return err;
}

fth_err fth_verb_bench(int argc, char **argv) {
    bench_options options;
    fth_model_options model;
    fth_device_options device;
    fth_option_group groups[] = {bench_options_group(&options), fth_model_options_group(&model),
                                 fth_device_options_group(&device)};
    const fth_usage usage = {"fathom bench", "train",
                             "Times updates of a model on made-up sentences: tokens (source and "
                             "target) per second, memory, and where the time goes.",
                             1, 1};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 3, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) {
        if (strcmp(parsed.positionals[0], "train") != 0)
            err = fth_fail(FTH_USAGE, "bench %s: must be train", parsed.positionals[0]);
        else
            err = bench_train(&options, &model, &device);
    }
    fth_parsed_fini(&parsed);
    return err;
}
