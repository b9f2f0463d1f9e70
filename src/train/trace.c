/* trace.c: fetches every value that the format names after one run, and parameters and losses after
 * further updates. */
#include "train/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/number.h"
#include "store/safetensors.h"
#include "train/padded.h"
#include "train/weights.h"

/* The tensors of the file to be; their numbers and names live in the arena. */
typedef struct trace {
    fth_arena arena;
    fth_st_tensor *tensors;
    size_t n, capacity;
} trace;

static float *add_tensor(trace *t, const char *name, int rank, const int64_t *shape) {
    if (t->n == t->capacity) {
        size_t capacity = t->capacity ? t->capacity * 2 : 256;
        fth_st_tensor *more = realloc(t->tensors, sizeof *more * capacity);
        if (!more) return NULL;
        t->tensors = more;
        t->capacity = capacity;
    }
    size_t count = 1;
    for (int i = 0; i < rank; i++) count *= (size_t)shape[i];
    float *data = fth_arena_alloc(&t->arena, sizeof *data * (count + 1));
    char *copy = fth_arena_strdup(&t->arena, name);
    if (!data || !copy) return NULL;
    fth_st_tensor *made = &t->tensors[t->n++];
    *made = (fth_st_tensor){.name = copy, .dtype = FTH_ST_F32, .rank = rank, .data = data};
    memcpy(made->shape, shape, sizeof *shape * (size_t)rank);
    memset(data, 0, sizeof *data * count);
    return data;
}

static fth_err add_vector(trace *t, const char *name, const double *numbers, int64_t n) {
    float *out = add_tensor(t, name, 1, &n);
    if (!out) return fth_fail(FTH_NO_MEMORY, "no memory for the trace of %s", name);
    for (int64_t i = 0; i < n; i++) out[i] = (float)numbers[i];
    return FTH_OK;
}

/* A value with rows of the batch, as [sentences, padded length, width] or [sentences, width]. */
static fth_err add_rows(trace *t, const char *name, const fth_padded *batch, const fth_config *c,
                        fth_extent extent, bool all, fth_program *program, fth_val v,
                        int64_t width) {
    int64_t shape[3];
    const int rank = fth_padded_shape(batch, c, extent, all, width, shape);
    const int64_t n = fth_program_rows(program, v);
    float *out = add_tensor(t, name, rank, shape);
    double *rows = malloc(sizeof *rows * (size_t)(n * width + 1));
    if (!out || !rows) {
        free(rows);
        return fth_fail(FTH_NO_MEMORY, "no memory for the trace of %s", name);
    }
    fth_err err = fth_program_read(program, v, rows);
    if (err == FTH_OK) fth_padded_spread(batch, extent, all, rows, n, width, out);
    free(rows);
    return err;
}

/* Every parameter's part of an arena, as prefix + its name. */
static fth_err add_params(trace *t, const char *prefix, fth_trainer *tr, const void *arena) {
    const fth_params *params = &tr->model->params;
    float *flat = malloc(sizeof *flat * (size_t)params->size);
    if (!flat) return fth_fail(FTH_NO_MEMORY, "no memory for the trace of %s", prefix);
    fth_err err = fth_arena_get(tr->device, arena, params->size, flat);
    for (int32_t i = 0; i < params->n && err == FTH_OK; i++) {
        const fth_param *p = &params->param[i];
        char name[160];
        snprintf(name, sizeof name, "%s%s", prefix, p->name);
        int64_t shape[3];
        const int rank = fth_param_file_shape(p, shape);
        float *out = add_tensor(t, name, rank, shape);
        if (!out)
            err = fth_fail(FTH_NO_MEMORY, "no memory for the trace of %s", name);
        else
            memcpy(out, flat + p->offset, sizeof *out * (size_t)fth_param_size(p));
    }
    free(flat);
    return err;
}

/* Forward values: a program of its own that keeps logits and hidden states. */
static fth_err add_forward(trace *t, fth_trainer *tr, const fth_padded *batch,
                           const int64_t capacity[], int64_t update) {
    fth_graph graph;
    fth_outputs out;
    fth_graph_spec what = {.hidden = true, .logits = true, .smoothing = tr->recipe.smoothing};
    fth_program_spec how = {.arenas = &tr->arenas};
    memcpy(how.capacity, capacity, sizeof how.capacity);
    fth_err err = fth_model_graph(tr->model, &what, &graph, &out);
    fth_program *program = NULL;
    if (err != FTH_OK)
        fth_graph_fini(&graph);
    else
        err = fth_program_new(tr->device, &graph, &how, &program);
    if (err != FTH_OK) return err;
    fth_step step = {.seed = tr->recipe.seed, .update = (uint32_t)update};
    fth_method_step(&tr->model->method, update, step.slots);
    const fth_config *c = &tr->model->config;
    err = fth_program_run(program, &batch->store.batch, &step);
    if (err == FTH_OK)
        err = add_rows(t, "logits", batch, c, out.rows, false, program, out.logits,
                       fth_config_output_vocab(c));
    if (err == FTH_OK && out.hidden[FTH_ENCODER])
        err = add_rows(t, "hidden.encoder", batch, c, FTH_ROWS_SRC, true, program,
                       out.hidden[FTH_ENCODER], c->d_model);
    if (err == FTH_OK && out.hidden[FTH_DECODER])
        err = add_rows(t, "hidden.decoder", batch, c, FTH_ROWS_TGT, true, program,
                       out.hidden[FTH_DECODER], c->d_model);
    fth_program_free(program);
    return err;
}

static fth_err add_steps(trace *t, fth_trainer *tr, const fth_batch *batch, int64_t steps) {
    double *numbers = malloc(sizeof *numbers * 4 * (size_t)steps);
    if (!numbers) return fth_fail(FTH_NO_MEMORY, "no memory for the trace of %s", "step");
    fth_err err = FTH_OK;
    for (int64_t i = 0; i < steps && err == FTH_OK; i++) {
        fth_update u;
        err = fth_trainer_update(tr, i + 1, &batch, 1, &u);
        if (err == FTH_OK && !u.finite)
            err = fth_fail(FTH_DIVERGED, "update %lld: loss %s, gradient norm %s are not finite",
                           (long long)(i + 1), fth_shown_number(u.loss).text,
                           fth_shown_number(u.gnorm).text);
        numbers[i] = u.loss;
        numbers[steps + i] = u.gnorm;
        numbers[2 * steps + i] = u.lr;
        numbers[3 * steps + i] = u.alpha;
    }
    static const char *const names[] = {"step.loss", "step.gnorm", "step.lr", "step.alpha"};
    for (int k = 0; k < 4 && err == FTH_OK; k++)
        err = add_vector(t, names[k], numbers + k * steps, steps);
    free(numbers);
    return err != FTH_OK ? err : add_params(t, "after.", tr, tr->arenas.master);
}

static fth_err fill(trace *t, fth_trainer *tr, const fth_padded *batch, const int64_t capacity[],
                    const fth_trace_spec *spec) {
    const fth_batch *packed = &batch->store.batch;
    fth_update u;
    FTH_TRY(fth_trainer_gradients(tr, spec->update, &packed, 1, &u));
    FTH_TRY(add_vector(t, "loss", &u.loss, 1));
    FTH_TRY(add_vector(t, "nll", &u.nll, 1));
    FTH_TRY(add_params(t, "grad.", tr, tr->arenas.grad));
    FTH_TRY(add_forward(t, tr, batch, capacity, spec->update));
    return spec->steps > 0 ? add_steps(t, tr, packed, spec->steps) : FTH_OK;
}

fth_err fth_trace(fth_model *model, const float *flat, fth_device *dev,
                  const fth_trace_spec *spec) {
    fth_padded batch;
    fth_trainer tr = {0};
    trace t = {0};
    FTH_TRY(fth_padded_read(spec->batch, &model->config, &batch));
    int64_t src = batch.side[FTH_SRC].rows, tgt = batch.side[FTH_TGT].rows;
    fth_trainer_spec size = {.src_tokens = src,
                             .tgt_tokens = tgt,
                             .max_len = src + tgt,
                             .sentences = batch.n,
                             .picked = batch.store.batch.n_picked,
                             .numbers = batch.store.batch.input.rows};
    int64_t capacity[FTH_N_EXTENTS];
    fth_capacities(&size, capacity);
    fth_err err = fth_trainer_init(&tr, model, dev, &spec->recipe, &size);
    if (err == FTH_OK) err = fth_arenas_load(dev, &tr.arenas, flat);
    if (err == FTH_OK) err = fill(&t, &tr, &batch, capacity, spec);
    if (err == FTH_OK) err = fth_st_write(spec->out, t.tensors, t.n, NULL, NULL, NULL);
    fth_trainer_fini(&tr);
    fth_padded_fini(&batch);
    fth_arena_fini(&t.arena);
    free(t.tensors);
    return err;
}
