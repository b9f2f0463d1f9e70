/* flight.c: opening a run for a preflight, and its batches. */
#include "run/flight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/plan.h"
#include "run/memory_check.h"
#include "train/evaluate.h"
#include "train/profile.h"

/* ---- opening ---- */

/* The configuration for made-up sentences. */
static fth_err made_up_config(const fth_flight *f, fth_config *c) {
    *c = f->spec->config;
    if (c->arch == FTH_ENC)
        return fth_fail(FTH_USAGE, "--arch enc: name the data set; an encoder's batches are not "
                                   "made up");
    c->src_vocab = c->arch == FTH_ENCDEC ? f->how->vocab : 0;
    c->tgt_vocab = f->how->vocab;
    return FTH_OK;
}

enum { MADE_UP_LENGTH = 32 }; /* tokens of a made-up sentence at most */

fth_err fth_flight_batches(fth_flight *f, int64_t tokens) {
    fth_run_spec spec = *f->spec;
    f->tokens = spec.max_tokens = tokens;
    if (!f->train) return FTH_OK;
    if (tokens < f->spec->max_tokens) spec.strict = false;
    fth_batcher_free(f->batcher);
    f->batcher = NULL;
    return fth_run_batcher(&spec, f->train, &f->items.train, &f->batcher);
}

static int64_t longest(const fth_flight *f) {
    if (f->train) return fth_run_longest(f->spec, f->train, NULL);
    int64_t most = f->spec->block > 0 ? f->spec->block : MADE_UP_LENGTH;
    if (most > f->spec->config.max_positions) most = f->spec->config.max_positions;
    return most < f->spec->max_tokens ? most : f->spec->max_tokens;
}

fth_err fth_flight_open(fth_flight *f) {
    const fth_run_spec *s = f->spec;
    fth_config config;
    if (s->init_from && s->init_from[0])
        return fth_fail(FTH_USAGE, "--init-from %s: preflight looks at a fresh model, leave it out",
                        s->init_from);
    if (s->restore_file[0])
        return fth_fail(FTH_USAGE,
                        "--restore-file %s: preflight looks at a fresh model, leave it "
                        "out",
                        s->restore_file);
    if (s->data) {
        FTH_TRY(fth_folder_open(&f->folder, s->data));
        FTH_TRY(fth_folder_split(&f->folder, FTH_TRAIN, &f->train));
        FTH_TRY(fth_run_config(s, &f->folder, f->train, &config));
        FTH_TRY(fth_run_items_init(&f->items, s, &f->folder, f->train, &config));
        FTH_TRY(fth_flight_batches(f, s->max_tokens));
    } else {
        FTH_TRY(made_up_config(f, &config));
    }
    FTH_TRY(fth_run_size_check(s, f->device, &config));
    FTH_TRY(fth_model_init(&f->model, &config));
    FTH_TRY(fth_rates_set(&s->rates, &f->model, NULL));
    fth_model_scale_init(&f->model, f->spec->init_scale);
    FTH_TRY(fth_packed_init(&f->packed, (int32_t)s->max_tokens));
    f->size =
        (fth_trainer_spec){.src_tokens = config.arch != FTH_DEC ? s->max_tokens : 0,
                           .tgt_tokens = config.arch != FTH_ENC ? s->max_tokens : 0,
                           .max_len = longest(f),
                           .memory_budget = s->memory_budget,
                           .batches = s->update_freq,
                           .inline_updates = fth_can_update_inline(&s->recipe, s->update_freq, 1)};
    return FTH_OK;
}

/* Bytes without recomputation, planned and not taken. */
static fth_err plan_bytes(fth_flight *f) {
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
        fth_arenas_bytes(f->device, n, f->size.inline_updates ? updates.grads : n, n);
    fth_plan_fini(&plan);
    fth_inline_updates_fini(&updates);
    fth_graph_fini(&graph);
    return err;
}

fth_err fth_flight_plan(fth_flight *f) {
    fth_preflight *p = f->out;
    int64_t total;
    p->parameters = fth_params_count(&f->model.params);
    p->budget = f->spec->memory_budget;
    FTH_TRY(plan_bytes(f));
    FTH_TRY(f->device->backend->memory(f->device, &p->available_bytes, &total));
    p->planned_bytes = p->fixed_bytes + p->activation_bytes;
    if (p->budget > 0 && p->planned_bytes > p->budget) p->planned_bytes = p->budget;
    p->batch_bytes = fth_batch_memory(f->spec);
    p->fits = p->planned_bytes <= p->available_bytes;
    fth_err err = fth_batch_memory_check(f->spec);
    if (err != FTH_NO_MEMORY) return err;
    p->fits = false;
    snprintf(p->reason, sizeof p->reason, "memory: %s", fth_error_message());
    return FTH_OK;
}

fth_err fth_flight_stores(fth_flight *f) {
    const int32_t rows = (int32_t)f->spec->max_tokens, src_rows = f->size.src_tokens ? rows : 0;
    FTH_TRY(fth_batch_store_init(&f->store, src_rows, rows, rows));
    return fth_batch_store_init(&f->probe_store, src_rows, rows, rows);
}

fth_err fth_flight_probe(fth_flight *f) {
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
static void make_up(fth_flight *f) {
    fth_packed *p = &f->packed;
    const fth_config *c = &f->model.config;
    int32_t most = (int32_t)f->size.max_len, rows = 0, n = 0;
    p->src_offsets[0] = p->tgt_offsets[0] = 0;
    for (;;) {
        int32_t length = 1 + (int32_t)fth_rng_below(&f->rng, (uint64_t)most);
        if (rows + length > f->tokens) break;
        for (int32_t i = rows; i < rows + length; i++) {
            int32_t word = (int32_t)fth_rng_below(&f->rng, (uint64_t)f->how->vocab);
            p->src[i] = (int32_t)fth_rng_below(&f->rng, (uint64_t)f->how->vocab);
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

fth_err fth_flight_fill(fth_flight *f, fth_batch_store *store) {
    if (f->batcher)
        FTH_TRY(fth_batcher_next(f->batcher, &f->packed));
    else
        make_up(f);
    return fth_store_packed(store, &f->packed, &f->model.config, 0);
}

static int64_t count_targets(const void *flight, const fth_packed *packed) {
    const fth_flight *f = flight;
    return fth_packed_targets(packed, &f->model.config, f->trainer.outputs.rows);
}

/* Of the batches that come next. */
static int64_t count_ahead(fth_flight *f) {
    if (f->batcher)
        return fth_batcher_count(f->batcher, f->n_batches, &f->packed, count_targets, f);
    const fth_rng rng = f->rng;
    int64_t sum = 0;
    for (int i = 0; i < f->n_batches; i++) {
        make_up(f);
        sum += count_targets(f, &f->packed);
    }
    f->rng = rng;
    return sum;
}

static fth_err next_batch(void *flight, const fth_batch **out) {
    fth_flight *f = flight;
    if (!f->filled) FTH_TRY(fth_flight_fill(f, &f->store));
    f->filled = false;
    *out = &f->store.batch;
    return FTH_OK;
}

fth_err fth_flight_next(fth_flight *f, fth_batches *out) {
    *out = (fth_batches){
        .n = f->n_batches, .targets = count_ahead(f), .next = next_batch, .context = f};
    f->filled = true;
    return fth_flight_fill(f, &f->store);
}

const fth_batch *fth_flight_probe_batch(const fth_flight *f) {
    return &f->probe_store.batch;
}

/* ---- updates ---- */

void fth_flight_show(fth_flight *f, double loss) {
    char extra[40];
    snprintf(extra, sizeof extra, "loss %.3f", loss);
    f->made++;
    if (f->how->log) fth_progress_update(&f->bar, f->made, extra);
}

fth_err fth_flight_restart(fth_flight *f) {
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
    return fth_profile(&f->trainer, fth_flight_probe_batch(f), capacity);
}

void fth_flight_fini(fth_flight *f) {
    free(f->start);
    fth_batch_store_fini(&f->store);
    fth_batch_store_fini(&f->probe_store);
    fth_program_free(f->probe);
    fth_telemetry_free(f->telemetry);
    fth_trainer_fini(&f->trainer);
    fth_packed_fini(&f->packed);
    fth_batcher_free(f->batcher);
    fth_run_items_fini(&f->items);
    fth_model_fini(&f->model);
    fth_dataset_free(f->train);
    fth_folder_fini(&f->folder);
}
