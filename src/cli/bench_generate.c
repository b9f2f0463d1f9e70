/* bench_generate.c: fathom bench generate: how fast a model generates here
 * (doc/analyses.md#speed-of-generation). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/device/device.h"
#include "base/clock.h"
#include "base/median.h"
#include "base/philox.h"
#include "cli/bench.h"
#include "decode/search.h"
#include "train/weights.h"

typedef struct bench {
    const bench_options *o;
    fth_device *device;
    fth_model model;
    fth_arenas arenas;
    fth_stepper *stepper;
    fth_search_spec search;
    int32_t *offsets, *ids; /* [batch + 1], [batch, sentence_length] the sources */
    double *seconds;        /* [repeats] */
    int64_t tokens;         /* of one batch */
    double startup;
    double least_cpu; /* seconds of all threads for the batch that took the least of them */
    int64_t before;   /* bytes in use before the model was made */
} bench;

/* ---- set-up ---- */

static fth_err load_model(bench *b, const fth_bench *what) {
    float *flat = NULL;
    if (what->folder) {
        FTH_TRY(fth_weights_read(what->folder, &b->model, &flat));
    } else {
        fth_config config;
        FTH_TRY(fth_bench_config(what, &config));
        FTH_TRY(fth_model_init(&b->model, &config));
        flat = malloc(sizeof *flat * (size_t)b->model.params.size);
        if (!flat) return fth_fail(FTH_NO_MEMORY, "no memory for the parameters");
        fth_model_draw(&b->model, 1, flat);
    }
    fth_err err = fth_arenas_new(b->device, b->model.params.size, 0, 0, &b->arenas);
    if (err == FTH_OK) err = fth_arenas_load(b->device, &b->arenas, flat);
    free(flat);
    return err;
}

static fth_err check_sizes(const bench *b) {
    const int32_t most = b->model.config.max_positions;
    if (b->o->sentence_length > most)
        return fth_fail(FTH_USAGE, "--sentence-length %lld: the model has max_positions %d",
                        (long long)b->o->sentence_length, most);
    if (b->o->length > most)
        return fth_fail(FTH_USAGE, "--length %lld: the model has max_positions %d",
                        (long long)b->o->length, most);
    return FTH_OK;
}

/* Sources of words drawn at random; the last token ends the sentence. */
static fth_err draw_sources(bench *b) {
    const fth_config *c = &b->model.config;
    const int32_t n = (int32_t)b->o->batch, length = (int32_t)b->o->sentence_length;
    b->offsets = malloc(sizeof *b->offsets * (size_t)(n + 1));
    b->ids = malloc(sizeof *b->ids * (size_t)n * (size_t)length);
    if (!b->offsets || !b->ids) return fth_fail(FTH_NO_MEMORY, "no memory for %d sentences", n);
    fth_rng rng;
    fth_rng_init(&rng, 1, 0);
    for (int32_t i = 0; i <= n; i++) b->offsets[i] = i * length;
    for (int32_t i = 0; i < n * length && c->src_vocab > 4; i++)
        b->ids[i] = 4 + (int32_t)fth_rng_below(&rng, (uint64_t)(c->src_vocab - 4));
    for (int32_t i = 0; i < n; i++) b->ids[i * length + length - 1] = c->eos;
    return FTH_OK;
}

static fth_err set_up(bench *b, const fth_bench *what) {
    const double start = fth_now();
    FTH_TRY(fth_bench_bytes(b->device, false, &b->before));
    FTH_TRY(load_model(b, what));
    FTH_TRY(check_sizes(b));
    FTH_TRY(draw_sources(b));
    const fth_config *c = &b->model.config;
    const int32_t n = (int32_t)b->o->batch, beam = (int32_t)b->o->beam;
    b->search = (fth_search_spec){.beam = beam,
                                  .lenpen = 1,
                                  .max_len_b = b->o->length - 1, /* and the end symbol */
                                  .min_len = b->o->length - 1,
                                  .temperature = 1,
                                  .bos = c->bos,
                                  .pad = c->pad,
                                  .eos = c->eos,
                                  .unk = c->unk,
                                  .first = c->arch == FTH_DEC ? c->eos : c->bos,
                                  .max_positions = c->max_positions};
    const fth_stepper_spec size = {
        .sentences = n,
        .src_tokens = c->arch == FTH_ENCDEC ? n * (int32_t)b->o->sentence_length : 0,
        .rows = n * beam,
        .length = (int32_t)b->o->length,
        .top = fth_search_top(&b->search, 1, fth_config_output_vocab(c))};
    FTH_TRY(fth_stepper_new(&b->model, b->device, &b->arenas, &size, &b->stepper));
    b->seconds = calloc((size_t)b->o->repeats, sizeof *b->seconds);
    if (!b->seconds) return fth_fail(FTH_NO_MEMORY, "no memory for the times");
    b->startup = fth_now() - start;
    return FTH_OK;
}

/* ---- measuring ---- */

static void write_numbers(FILE *f, const int32_t *x, int32_t n) {
    for (int32_t i = 0; i < n; i++) fprintf(f, "%s%d", i ? " " : "", x[i]);
}

/* A line for each sentence: its source, a tab, the best hypothesis. */
static fth_err write_tokens(const bench *b, const fth_search_result *r) {
    const char *path = b->o->tokens;
    if (!*path) return FTH_OK;
    FILE *f = fopen(path, "w");
    if (!f) return fth_fail(FTH_IO, "%s: cannot write: %s", path, strerror(errno));
    for (int32_t i = 0; i < r->n_sent; i++) {
        if (b->model.config.arch == FTH_ENCDEC)
            write_numbers(f, b->ids + b->offsets[i], b->offsets[i + 1] - b->offsets[i]);
        putc('\t', f);
        write_numbers(f, r->found[i][0].tokens, r->found[i][0].n);
        putc('\n', f);
    }
    if (fclose(f) != 0) return fth_fail(FTH_IO, "%s: cannot write: %s", path, strerror(errno));
    return FTH_OK;
}

static fth_err generate_once(bench *b, bool last) {
    const bool encdec = b->model.config.arch == FTH_ENCDEC;
    const fth_search_batch batch = {.n_sent = (int32_t)b->o->batch,
                                    .offsets = encdec ? b->offsets : NULL,
                                    .ids = encdec ? b->ids : NULL};
    fth_search_result r;
    FTH_TRY(fth_search(&b->stepper, 1, fth_config_output_vocab(&b->model.config), &b->search,
                       &batch, &r));
    b->tokens = 0;
    for (int32_t i = 0; i < r.n_sent; i++) b->tokens += r.found[i][0].n;
    fth_err err = last ? write_tokens(b, &r) : FTH_OK;
    fth_search_result_fini(&r);
    return err;
}

static fth_err measure(bench *b) {
    FTH_TRY(generate_once(b, false));
    if (b->o->profile) fth_stepper_profile(b->stepper, true);
    for (int64_t i = 0; i < b->o->repeats; i++) {
        const double start = fth_now(), cpu = fth_seconds(CLOCK_PROCESS_CPUTIME_ID);
        FTH_TRY(generate_once(b, false));
        b->seconds[i] = fth_now() - start;
        const double spent = fth_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        if (i == 0 || spent < b->least_cpu) b->least_cpu = spent;
    }
    if (b->o->profile) return FTH_OK;
    return *b->o->tokens ? generate_once(b, true) : FTH_OK;
}

static fth_err report(bench *b) {
    const int64_t n = b->o->repeats;
    double total = 0;
    for (int64_t i = 0; i < n; i++) total += b->seconds[i];
    const double median = fth_median(b->seconds, n);
    int64_t peak = 0;
    FTH_TRY(fth_bench_bytes(b->device, true, &peak));
    peak -= b->before;
    const double planned =
        (double)(fth_stepper_bytes(b->stepper) + fth_arenas_bytes(b->device, b->arenas.n, 0, 0));
    const double parameters = (double)fth_params_count(&b->model.params);
    if (b->o->json) {
        printf("{\"tokens_per_s\": %.6g, \"ms_per_batch\": %.6g, \"ms_fastest\": %.6g, "
               "\"cpu_ms\": %.6g, \"tokens\": %lld, \"batch\": %lld, \"beam\": %lld, "
               "\"peak_bytes\": %lld, "
               "\"planned_bytes\": %.0f, \"parameters\": %.0f, \"startup_s\": %.4g, "
               "\"quantize\": \"%s\", \"device\": \"%s\", \"threads\": %d}\n",
               (double)b->tokens / median, 1e3 * median, 1e3 * b->seconds[0], 1e3 * b->least_cpu,
               (long long)b->tokens, (long long)b->o->batch, (long long)b->o->beam, (long long)peak,
               planned, parameters, b->startup, b->o->quantize, b->device->backend->name,
               b->device->threads);
        return FTH_OK;
    }
    printf("%.1f M parameters on %s, %d thread%s\n", parameters / 1e6, b->device->backend->name,
           b->device->threads, b->device->threads == 1 ? "" : "s");
    printf("%.1f tokens/s, %.2f ms/batch (median of %lld) of %lld sentences, beam %lld\n",
           (double)b->tokens / median, 1e3 * median, (long long)n, (long long)b->o->batch,
           (long long)b->o->beam);
    printf("memory: planned %.1f MiB, measured %.1f MiB; start-up %.2f s\n", planned / 1048576,
           (double)peak / 1048576, b->startup);
    if (b->o->profile) {
        double times[FTH_N_KINDS];
        fth_stepper_times(b->stepper, times);
        fth_bench_print_profile(times, total, (double)n, "ms/batch");
    }
    return FTH_OK;
}

fth_err fth_bench_generate(const fth_bench *what) {
    bench b = {.o = what->o};
    const fth_device_options *d = what->device;
    fth_err err = fth_device_open(d->device, d->precision, (int)d->threads, &b.device);
    if (err == FTH_OK) err = fth_device_quantize(b.device, what->o->quantize);
    if (err == FTH_OK) err = set_up(&b, what);
    if (err == FTH_OK) err = measure(&b);
    if (err == FTH_OK) err = report(&b);
    fth_stepper_free(b.stepper);
    if (b.device) fth_arenas_free(b.device, &b.arenas);
    fth_model_fini(&b.model);
    fth_device_close(b.device);
    free(b.offsets);
    free(b.ids);
    free(b.seconds);
    return err;
}
