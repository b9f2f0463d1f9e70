#include "run/preflight.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/philox.h"
#include "graph/plan.h"
#include "run/batch_memory.h"
#include "train/evaluate.h"
#include "train/profile.h"
#include "run/telemetry.h"

/* What a preflight has open. A zeroed one can be freed. */
typedef struct flight {
    const fth_run_spec *spec;
    fth_device *device;
    fth_folder folder;
    fth_dataset *train;
    fth_batcher *batcher; /* NULL: sentences are made up */
    fth_rng rng;          /* of made-up sentences */
    int32_t vocab;
    fth_packed packed;
    fth_model model;
    fth_trainer_spec size;
    fth_trainer trainer;
    fth_telemetry *telemetry;
    fth_program *probe; /* forward, dropout off, hidden states and logits kept */
    fth_outputs seen;
    fth_batch_store *stores;   /* [update_freq + 1], the last is the probe batch */
    const fth_batch **batches; /* [update_freq] */
    double *start, *now;       /* [rows * width] top output: of the fresh model, newest */
    double *logits[2];         /* [rows * V] likewise */
    fth_preflight *out;
} flight;

static double clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static fth_err no_memory(void) {
    return fth_fail(FTH_NO_MEMORY, "no memory for a preflight");
}

/* ---- opening ---- */

/* The configuration for made-up sentences. */
static fth_err made_up_config(const flight *f, fth_config *c) {
    *c = f->spec->config;
    if (c->arch == FTH_ENC)
        return fth_fail(FTH_USAGE, "--arch enc: training is not offered for encoder-only models; "
                                   "use encdec or dec");
    c->src_vocab = c->arch == FTH_ENCDEC ? f->vocab : 0;
    c->tgt_vocab = f->vocab;
    return FTH_OK;
}

enum { MADE_UP_LENGTH = 32 }; /* tokens of a made-up sentence at most */

static int64_t longest(const flight *f) {
    if (f->train) return fth_run_longest(f->spec, f->train, NULL);
    int64_t most = f->spec->block > 0 ? f->spec->block : MADE_UP_LENGTH;
    if (most > f->spec->config.max_positions) most = f->spec->config.max_positions;
    return most < f->spec->max_tokens ? most : f->spec->max_tokens;
}

static fth_err open_run(flight *f) {
    const fth_run_spec *s = f->spec;
    fth_config config;
    if (s->restore_file[0])
        return fth_fail(FTH_USAGE,
                        "--restore-file %s: preflight looks at a fresh model, leave it "
                        "out",
                        s->restore_file);
    if (s->data) {
        FTH_TRY(fth_folder_open(&f->folder, s->data));
        FTH_TRY(fth_folder_split(&f->folder, FTH_TRAIN, &f->train));
        FTH_TRY(fth_run_config(s, &f->folder, f->train, &config));
        FTH_TRY(fth_run_batcher(s, f->train, &f->batcher));
    } else {
        FTH_TRY(made_up_config(f, &config));
    }
    FTH_TRY(fth_model_init(&f->model, &config));
    FTH_TRY(fth_packed_init(&f->packed, (int32_t)s->max_tokens));
    f->size =
        (fth_trainer_spec){.src_tokens = config.arch == FTH_ENCDEC ? s->max_tokens : 0,
                           .tgt_tokens = s->max_tokens,
                           .max_len = longest(f),
                           .memory_budget = s->memory_budget,
                           .inline_updates = fth_can_update_inline(&s->recipe, s->update_freq)};
    return FTH_OK;
}

/* Bytes without recomputation, planned and not taken. */
static fth_err plan_bytes(flight *f) {
    fth_graph graph;
    fth_outputs outputs;
    fth_inline_updates updates = {0};
    fth_plan plan = {0};
    const int64_t n = f->model.params.size;
    int64_t capacity[FTH_N_EXTENTS];
    fth_capacities(&f->size, capacity);
    const fth_plan_spec how = fth_program_plan_spec(f->device, capacity);
    FTH_TRY(fth_update_graph(&f->model, f->device, &f->spec->recipe, NULL,
                             f->size.inline_updates ? &updates : NULL, &graph, &outputs));
    fth_err err = FTH_OK;
    if (how.recompute_norms) err = fth_graph_recompute_values(&graph, (fth_recompute_counts){0});
    if (err == FTH_OK) err = fth_plan_make(&graph, &how, &plan);
    f->out->activation_bytes = plan.bytes + fth_program_bytes_beside(f->device, &graph, capacity);
    f->out->fixed_bytes =
        fth_arenas_bytes(f->device, n, f->size.inline_updates ? updates.grads : n, true);
    fth_plan_fini(&plan);
    fth_inline_updates_fini(&updates);
    fth_graph_fini(&graph);
    return err;
}

static fth_err plan_memory(flight *f) {
    fth_preflight *p = f->out;
    int64_t total;
    p->parameters = fth_params_count(&f->model.params);
    p->budget = f->spec->memory_budget;
    FTH_TRY(plan_bytes(f));
    FTH_TRY(f->device->backend->memory(f->device, &p->available_bytes, &total));
    p->planned_bytes = p->fixed_bytes + p->activation_bytes;
    if (p->budget > 0 && p->planned_bytes > p->budget) p->planned_bytes = p->budget;
    p->batch_bytes = fth_batch_memory(f->spec, f->spec->update_freq + 1);
    p->fits = p->planned_bytes <= p->available_bytes;
    fth_err err = fth_batch_memory_check(f->spec, f->spec->update_freq + 1);
    if (err != FTH_NO_MEMORY) return err;
    p->fits = false;
    snprintf(p->reason, sizeof p->reason, "memory: %s", fth_error_message());
    return FTH_OK;
}

static fth_err open_stores(flight *f) {
    const fth_run_spec *s = f->spec;
    size_t n = (size_t)s->update_freq;
    int32_t rows = (int32_t)s->max_tokens;
    f->stores = calloc(n + 1, sizeof *f->stores);
    f->batches = calloc(n, sizeof *f->batches);
    if (!f->stores || !f->batches) return no_memory();
    for (size_t i = 0; i <= n; i++) {
        FTH_TRY(fth_batch_store_init(&f->stores[i], f->size.src_tokens ? rows : 0, rows, rows));
        if (i < n) f->batches[i] = &f->stores[i].batch;
    }
    return FTH_OK;
}

static fth_err open_probe(flight *f) {
    fth_graph graph;
    fth_graph_spec what = {.hidden = true, .logits = true};
    fth_program_spec how = {.arenas = &f->trainer.arenas, .lender = f->trainer.program};
    fth_capacities(&f->size, how.capacity);
    fth_err err = fth_model_graph(&f->model, &what, &graph, &f->seen);
    if (err == FTH_OK) return fth_program_new(f->device, &graph, &how, &f->probe);
    fth_graph_fini(&graph);
    return err;
}

/* ---- batches ---- */

/* Sentences of random words and lengths, each with a target of the same length. */
static void make_up(flight *f) {
    fth_packed *p = &f->packed;
    const fth_config *c = &f->model.config;
    int32_t most = (int32_t)f->size.max_len, rows = 0, n = 0;
    p->src_offsets[0] = p->tgt_offsets[0] = 0;
    for (;;) {
        int32_t length = 1 + (int32_t)fth_rng_below(&f->rng, (uint64_t)most);
        if (rows + length > f->spec->max_tokens) break;
        for (int32_t i = rows; i < rows + length; i++) {
            int32_t word = (int32_t)fth_rng_below(&f->rng, (uint64_t)f->vocab);
            p->src[i] = (int32_t)fth_rng_below(&f->rng, (uint64_t)f->vocab);
            p->tgt_out[i] = i == rows + length - 1 ? c->eos : word;
            p->tgt_in[i] = i == rows ? c->bos : p->tgt_out[i - 1];
        }
        rows += length;
        n++;
        p->src_offsets[n] = p->tgt_offsets[n] = rows;
    }
    p->n_sent = n;
    p->src_rows = p->tgt_rows = rows;
}

static fth_err fill(flight *f, fth_batch_store *store) {
    if (f->batcher)
        FTH_TRY(fth_batcher_next(f->batcher, &f->packed));
    else
        make_up(f);
    return fth_store_packed(store, &f->packed, &f->model.config, 0);
}

static fth_err next_batches(flight *f) {
    for (int64_t i = 0; i < f->spec->update_freq; i++) FTH_TRY(fill(f, &f->stores[i]));
    return FTH_OK;
}

/* The first batch of the run is the one that the model is looked at with. */
static const fth_batch *probe_batch(const flight *f) {
    return &f->stores[f->spec->update_freq].batch;
}

/* ---- updates ---- */

/* The model as it is drawn, without moments. */
static fth_err restart(flight *f) {
    fth_device *dev = f->device;
    int64_t bytes = f->model.params.size * (int64_t)fth_dtype_size(dev->full);
    FTH_TRY(fth_trainer_draw(&f->trainer, f->spec->recipe.seed));
    FTH_TRY(dev->backend->zero(dev, f->trainer.arenas.m, bytes));
    FTH_TRY(dev->backend->zero(dev, f->trainer.arenas.v, bytes));
    if (f->batcher) FTH_TRY(fth_batcher_seek(f->batcher, FTH_FIRST_POSITION));
    fth_rng_init(&f->rng, f->spec->recipe.seed, 0);
    if (!fth_profile_wanted(&f->model)) return FTH_OK;
    int64_t capacity[FTH_N_EXTENTS];
    fth_capacities(&f->size, capacity);
    return fth_profile(&f->trainer, probe_batch(f), capacity);
}

/* Top output and logits of the probe batch, with the method's numbers of an update. */
static fth_err look(flight *f, int64_t update, double *top, double *logits) {
    fth_step step = {.seed = f->spec->recipe.seed, .update = (uint32_t)update};
    fth_method_step(&f->model.method, update, step.slots);
    FTH_TRY(fth_program_run(f->probe, probe_batch(f), &step));
    FTH_TRY(fth_program_read(f->probe, f->seen.hidden[FTH_DECODER], top));
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
 * its sub-layers; norms [layers]: where they go, NULL: nowhere. Newest row. */
static double carried_in(const flight *f, fth_stack stack, fth_quantity q, double *norms) {
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
    return layers ? least / most : NAN;
}

static double dead_share(const flight *f) {
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
static double largest(const flight *f, fth_quantity q) {
    const fth_telemetry_row *row = fth_telemetry_row_at(f->telemetry, 0);
    int32_t n = fth_telemetry_sublayers(f->telemetry);
    double most = 0;
    for (int32_t i = 0; i < n; i++) {
        double x = (double)row->value[(int32_t)q * n + i];
        if (fth_telemetry_has(f->telemetry, q, i) && !(x <= most)) most = x;
    }
    return most;
}

static fth_err one_update(flight *f, int64_t t, fth_dash *d, bool *finite) {
    fth_update u;
    FTH_TRY(next_batches(f));
    FTH_TRY(fth_telemetry_update(f->telemetry, t, f->batches, (int)f->spec->update_freq, &u));
    *finite = u.finite;
    if (!u.finite) return FTH_OK;
    if (d->updates == 0) {
        d->first_loss = u.nll;
        d->first_gnorm = u.gnorm;
    }
    f->out->target_tokens = (double)u.tokens;
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

/* Ten updates from a fresh model, numbered from `first` on. */
static fth_err dash(flight *f, int64_t first, fth_dash *d) {
    int64_t rows = probe_batch(f)->side[FTH_TGT].rows;
    int64_t width = f->model.config.d_model, vocab = fth_config_output_vocab(&f->model.config);
    *d = (fth_dash){.encoder_cosine = NAN};
    FTH_TRY(restart(f));
    FTH_TRY(look(f, first, f->start, f->logits[0]));
    d->size = mean_distance(f->start, NULL, rows, width);
    for (int i = 0; i < FTH_PREFLIGHT_UPDATES; i++) {
        bool finite;
        FTH_TRY(one_update(f, first + i, d, &finite));
        if (!finite) return FTH_OK;
        FTH_TRY(look(f, first + i, f->now, f->logits[1]));
        d->moved[i] = mean_distance(f->now, f->start, rows, width);
        d->logits_moved[i] = mean_distance(f->logits[1], f->logits[0], rows, vocab);
        d->updates++;
    }
    return FTH_OK;
}

/* ---- the start ---- */

static fth_err measure_start(flight *f) {
    fth_preflight *p = f->out;
    const fth_batch *batch = probe_batch(f);
    fth_update u;
    FTH_TRY(restart(f));
    FTH_TRY(fth_telemetry_update(f->telemetry, 1, &batch, 1, &u));
    p->encoder_cosine = fth_telemetry_row_at(f->telemetry, 0)->encoder_cosine;
    for (int s = 0; s < 2; s++) {
        int32_t n = fth_stack_layers(&f->model.config, (fth_stack)s);
        p->layers[s] = n;
        p->grad_norm[s] = calloc((size_t)n + 1, sizeof *p->grad_norm[s]);
        if (!p->grad_norm[s]) return no_memory();
        p->carried[s] = carried_in(f, (fth_stack)s, FTH_Q_GRAD_NORM, p->grad_norm[s]);
    }
    return FTH_OK;
}

/* ---- time ---- */

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of a few plain updates; after two that warm up. */
static fth_err measure_time(flight *f) {
    enum { TIMED = 5, WARM = 2 };
    double seconds[TIMED];
    int n = 0;
    FTH_TRY(restart(f));
    double begin = clock_now();
    for (int i = 0; i < WARM + TIMED; i++) {
        fth_update u;
        FTH_TRY(next_batches(f));
        double start = clock_now();
        FTH_TRY(fth_trainer_update(&f->trainer, i + 1, f->batches, (int)f->spec->update_freq, &u));
        if (i >= WARM) seconds[n++] = clock_now() - start;
        if (n > 0 && clock_now() - begin > 20) break; /* a slow model: one is enough */
    }
    qsort(seconds, (size_t)n, sizeof *seconds, by_size);
    f->out->seconds_per_update = seconds[n / 2];
    f->out->updates_per_epoch = NAN;
    if (!f->train) return FTH_OK;
    int64_t tokens = f->train->side[f->train->n_sides - 1].tokens + f->train->sentences;
    f->out->updates_per_epoch = (double)tokens / f->out->target_tokens;
    return FTH_OK;
}

/* ---- all of it ---- */

static fth_err measure(flight *f) {
    const fth_run_spec *s = f->spec;
    fth_recipe recipe = s->recipe;
    FTH_TRY(fth_trainer_init(&f->trainer, &f->model, f->device, &recipe, &f->size));
    FTH_TRY(fth_telemetry_new(&f->trainer, &f->size, &f->telemetry));
    f->out->recomputed = fth_program_recomputed(f->trainer.program);
    FTH_TRY(open_probe(f));
    FTH_TRY(open_stores(f));
    FTH_TRY(fill(f, &f->stores[s->update_freq]));
    size_t rows = (size_t)probe_batch(f)->side[FTH_TGT].rows;
    size_t width = (size_t)f->model.config.d_model;
    size_t vocab = (size_t)fth_config_output_vocab(&f->model.config);
    f->start = malloc(sizeof *f->start * rows * 2 * (width + vocab));
    if (!f->start) return no_memory();
    f->now = f->start + rows * width;
    f->logits[0] = f->now + rows * width;
    f->logits[1] = f->logits[0] + rows * vocab;
    FTH_TRY(measure_start(f));
    FTH_TRY(dash(f, 1, &f->out->scheduled));
    FTH_TRY(dash(f, s->recipe.schedule.warmup + 1, &f->out->peak));
    return measure_time(f);
}

fth_err fth_preflight_run(const fth_run_spec *spec, int32_t vocab, fth_device *device,
                          fth_preflight *out) {
    flight f = {.spec = spec, .device = device, .vocab = vocab, .out = out};
    *out = (fth_preflight){.peak_lr = spec->recipe.schedule.lr,
                           .warmup = spec->recipe.schedule.warmup,
                           .carried = {NAN, NAN},
                           .encoder_cosine = NAN};
    if (spec->recipe.schedule.kind == FTH_INVERSE_SQRT_NOWARMUP) out->warmup = 0;
    fth_err err = open_run(&f);
    if (err == FTH_OK) err = plan_memory(&f);
    if (err == FTH_OK) {
        out->uniform_loss = log((double)fth_config_output_vocab(&f.model.config));
        if (out->fits) err = measure(&f);
    }
    if (err == FTH_NO_MEMORY) { /* the budget, or the machine, is too small: that is a verdict */
        out->fits = false;
        err = FTH_OK;
    }
    if (err == FTH_OK) fth_preflight_judge(out);
    free(f.start);
    for (int64_t i = 0; f.stores && i <= spec->update_freq; i++) fth_batch_store_fini(&f.stores[i]);
    free(f.stores);
    free(f.batches);
    fth_program_free(f.probe);
    fth_telemetry_free(f.telemetry);
    fth_trainer_fini(&f.trainer);
    fth_packed_fini(&f.packed);
    fth_batcher_free(f.batcher);
    fth_model_fini(&f.model);
    fth_dataset_free(f.train);
    fth_folder_fini(&f.folder);
    if (err != FTH_OK) fth_preflight_fini(out);
    return err;
}

void fth_preflight_fini(fth_preflight *p) {
    free(p->grad_norm[0]);
    free(p->grad_norm[1]);
    p->grad_norm[0] = p->grad_norm[1] = NULL;
}
