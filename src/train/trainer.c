/* trainer.c: zero the gradients, run each micro-batch, take the norm, clip, and let Adam take what
 * the program has not updated itself. */
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/pipeline.h"
#include "train/sum.h"

void fth_capacities(const fth_trainer_spec *spec, int64_t capacity[FTH_N_EXTENTS]) {
    memset(capacity, 0, sizeof *capacity * FTH_N_EXTENTS);
    int64_t src = spec->src_tokens, tgt = spec->tgt_tokens, len = spec->max_len;
    capacity[FTH_ROWS_SRC] = src;
    capacity[FTH_ROWS_TGT] = tgt;
    capacity[FTH_ROWS_SENTENCES] = spec->sentences ? spec->sentences : src;
    capacity[FTH_ROWS_PICKED] = spec->picked ? spec->picked : src;
    capacity[FTH_ROWS_INPUT] = spec->numbers ? spec->numbers : src;
    capacity[FTH_ROWS_SRC_PAIRS] = src * (len < src ? len : src);
    capacity[FTH_ROWS_TGT_PAIRS] = tgt * (len < tgt ? len : tgt);
    capacity[FTH_ROWS_CROSS_PAIRS] = tgt * (len < src ? len : src);
}

/* ---- runs of parameters that share a learning rate ---- */

/* Decided by what the method says of the first update, where schedules differ most. */
bool fth_same_rate(const fth_method_state *m, const fth_param *a, const fth_param *b) {
    return a->share == b->share && (!m->method->lr_scale || m->method->lr_scale(m, a->role, 1) ==
                                                                m->method->lr_scale(m, b->role, 1));
}

/* The method's factor alone, in the precision of the product with the parameter's share. */
static float role_rate(const fth_method_state *m, fth_role role, int64_t update) {
    return m->method->lr_scale ? (float)m->method->lr_scale(m, role, update) : 1;
}

float fth_rate_of(const fth_method_state *m, const fth_param *p, int64_t update) {
    return role_rate(m, p->role, update) * p->share;
}

static fth_err make_ranges(fth_trainer *t) {
    const fth_params *params = &t->model->params;
    t->range = calloc((size_t)params->n + 1, sizeof *t->range);
    t->range_param = calloc((size_t)params->n + 1, sizeof *t->range_param);
    if (!t->range || !t->range_param) return fth_fail(FTH_NO_MEMORY, "no memory for a trainer");
    for (int32_t i = 0; i < params->n; i++) {
        const fth_param *p = &params->param[i];
        int64_t end = i + 1 < params->n ? params->param[i + 1].offset : params->size;
        int64_t grad = fth_inline_updates_grad(&t->inline_updates, p->offset);
        int64_t begin = p->offset;
        if (grad < 0 || p->share == 0) continue;
        if (t->exchange) { /* never early */
            begin = (begin > t->own.begin ? begin : t->own.begin) - t->own.begin;
            end = (end < t->own.end ? end : t->own.end) - t->own.begin;
            grad = begin;
            if (begin >= end) continue;
        }
        fth_adam_range *last = t->n_ranges ? &t->range[t->n_ranges - 1] : NULL;
        if (last && last->end == begin && last->grad + (last->end - last->begin) == grad &&
            fth_same_rate(&t->model->method, t->range_param[t->n_ranges - 1], p)) {
            last->end = end;
            continue;
        }
        t->range[t->n_ranges] = (fth_adam_range){begin, end, grad, 1};
        t->range_param[t->n_ranges++] = p;
    }
    return FTH_OK;
}

/* ---- making ---- */

bool fth_can_update_inline(const fth_recipe *recipe, int64_t batches, int ranks) {
    return batches == 1 && ranks == 1 && !(recipe->clip > 0);
}

static bool same_rate(const void *method, const fth_param *a, const fth_param *b) {
    return fth_same_rate(method, a, b);
}

fth_err fth_update_graph(const fth_model *model, const fth_device *dev, const fth_recipe *recipe,
                         fth_taps *taps, fth_inline_updates *updates, fth_graph *graph,
                         fth_outputs *outputs) {
    fth_graph_spec what = {.backward = true,
                           .dropout = recipe->dropout,
                           .keep_bits = dev->backend->keep_bits,
                           .smoothing = recipe->smoothing,
                           .taps = taps};
    fth_err err = fth_model_graph(model, &what, graph, outputs);
    fth_inline_spec how = {.params = &model->params,
                           .loss = outputs->loss,
                           .same_rate = same_rate,
                           .context = &model->method,
                           .watched = taps != NULL,
                           .together = dev->backend->update_together};
    if (err == FTH_OK && updates)
        err = fth_graph_update_inline(graph, &how, updates, &outputs->updates);
    if (err != FTH_OK) fth_graph_fini(graph);
    return err;
}

static int64_t moments_of(const fth_trainer *t) {
    const int64_t own = t->own.end - t->own.begin;
    return own > 0 ? own : 1;
}

/* Everything but the program. */
static int64_t fixed_bytes(const fth_trainer *t) {
    const int64_t moments = moments_of(t);
    return fth_arenas_bytes(t->device, t->arenas.n, t->arenas.grads, moments) +
           (t->sum ? moments * (int64_t)fth_dtype_size(t->device->full) : 0) +
           (t->exchange ? t->exchange->bytes : 0);
}

static fth_err program_spec(const fth_trainer *t, const fth_trainer_spec *spec,
                            fth_program_spec *how) {
    *how = (fth_program_spec){.arenas = &t->arenas};
    fth_capacities(spec, how->capacity);
    if (spec->memory_budget <= 0) return FTH_OK;
    const int64_t fixed = fixed_bytes(t);
    if (spec->memory_budget <= fixed)
        return fth_fail(FTH_NO_MEMORY,
                        "parameters, gradients and moments alone need %.1f MiB, "
                        "--memory-budget is %.1f MiB",
                        (double)fixed / 1048576.0, (double)spec->memory_budget / 1048576.0);
    how->budget = spec->memory_budget - fixed;
    return FTH_OK;
}

/* Takes the graph over. */
static fth_err make_program(fth_trainer *t, const fth_trainer_spec *spec, fth_program *lender,
                            fth_graph *graph, fth_program **program) {
    fth_program_spec how;
    fth_err err = program_spec(t, spec, &how);
    how.lender = lender;
    if (err == FTH_OK) return fth_program_new(t->device, graph, &how, program);
    fth_graph_fini(graph);
    return err;
}

/* The same, cut into stages. */
static fth_err make_pipeline(fth_trainer *t, const fth_trainer_spec *spec, fth_graph *graph) {
    fth_program_spec how;
    fth_err err = program_spec(t, spec, &how);
    if (err == FTH_OK) err = fth_pipeline_new(t, spec, graph, &how, &t->pipeline);
    if (err == FTH_OK) t->program = fth_pipeline_program(t->pipeline);
    fth_graph_fini(graph);
    return err;
}

fth_err fth_trainer_program(fth_trainer *t, const fth_trainer_spec *spec, fth_taps *taps,
                            fth_program *lender, fth_program **program, fth_outputs *outputs) {
    fth_graph graph;
    fth_inline_updates updates = {0}; /* the same as the trainer's */
    FTH_TRY(fth_update_graph(t->model, t->device, &t->recipe, taps,
                             t->updates_inline ? &updates : NULL, &graph, outputs));
    fth_inline_updates_fini(&updates);
    return make_program(t, spec, lender, &graph, program);
}

/* This rank's slice, and the exchange with the others. */
static fth_err join_ranks(fth_trainer *t, const fth_trainer_spec *spec) {
    const int64_t n = t->model->params.size;
    t->own = fth_slice_of(n, fth_rank(spec->ranks), fth_rank_count(spec->ranks));
    t->own_first = spec->own_first && t->own.end - t->own.begin < n;
    t->groups = fth_rank_count(spec->ranks) / (spec->stages > 1 ? spec->stages : 1);
    return spec->ranks ? fth_exchange_new(spec->ranks, t->device, n, &t->exchange) : FTH_OK;
}

fth_err fth_trainer_init(fth_trainer *t, fth_model *model, fth_device *dev,
                         const fth_recipe *recipe, const fth_trainer_spec *spec) {
    *t = (fth_trainer){
        .model = model, .device = dev, .recipe = *recipe, .updates_inline = spec->inline_updates};
    fth_graph graph;
    fth_inline_updates *updates = spec->inline_updates ? &t->inline_updates : NULL;
    FTH_TRY(fth_update_graph(model, dev, recipe, NULL, updates, &graph, &t->outputs));
    const int64_t n = model->params.size;
    fth_err err = join_ranks(t, spec);
    if (err == FTH_OK)
        err = fth_arenas_new(dev, n, updates ? updates->grads : n, moments_of(t), &t->arenas);
    if (err == FTH_OK && (spec->batches > 1 || t->exchange)) err = fth_sum_init(t, spec->batches);
    if (err != FTH_OK)
        fth_graph_fini(&graph);
    else if (spec->stages > 1)
        err = make_pipeline(t, spec, &graph);
    else
        err = make_program(t, spec, NULL, &graph, &t->program);
    if (err == FTH_OK) err = make_ranges(t);
    t->inline_sums =
        calloc((size_t)t->inline_updates.n * FTH_RANGE_SUMS + 1, sizeof *t->inline_sums);
    if (err == FTH_OK && !t->inline_sums) err = fth_fail(FTH_NO_MEMORY, "no memory for a trainer");
    if (err != FTH_OK) fth_trainer_fini(t);
    return err;
}

void fth_trainer_fini(fth_trainer *t) {
    if (!t->pipeline) fth_program_free(t->program);
    fth_pipeline_free(t->pipeline);
    if (t->device && t->sum) t->device->backend->release(t->device, t->sum);
    if (t->device) fth_arenas_free(t->device, &t->arenas);
    fth_exchange_free(t->exchange);
    free(t->numbers);
    fth_inline_updates_fini(&t->inline_updates);
    free(t->inline_sums);
    free(t->range);
    free(t->range_param);
    *t = (fth_trainer){0};
}

fth_err fth_trainer_draw(fth_trainer *t, uint64_t seed) {
    const int64_t n = t->model->params.size;
    fth_mirror mirror;
    fth_err err = fth_mirror_blank(t->device, t->arenas.master, n, &mirror);
    if (err == FTH_OK) fth_model_draw(t->model, seed, mirror.flat);
    if (err == FTH_OK) err = fth_mirror_store(t->device, t->arenas.master, n, &mirror);
    fth_mirror_fini(&mirror);
    return err == FTH_OK ? t->device->backend->refresh_weights(t->device, &t->arenas) : err;
}

int64_t fth_trainer_bytes(const fth_trainer *t) {
    return fixed_bytes(t) + fth_program_bytes(t->program) + fth_pipeline_bytes(t->pipeline);
}

/* ---- updating ---- */

int64_t fth_batch_targets(const fth_batch *batch, fth_extent rows) {
    if (rows == FTH_ROWS_PICKED) return batch->n_picked;
    if (rows == FTH_ROWS_SENTENCES && batch->values) return batch->n_sent;
    const int32_t *targets = fth_targets_of(batch, rows);
    const int32_t end =
        rows == FTH_ROWS_SENTENCES ? batch->n_sent : batch->side[rows == FTH_ROWS_TGT].rows;
    int64_t n = 0;
    for (int32_t r = 0; targets && r < end; r++) n += targets[r] >= 0;
    return n;
}

/* The numbers of an update; those of Adam where the program itself updates. */
static fth_step step_of(const fth_trainer *t, int64_t update, const fth_update *u) {
    const fth_method_state *m = &t->model->method;
    _Static_assert((int)FTH_ROLE_EXTRA < FTH_STEP_RATES, "a rate for every role");
    fth_step step = {.seed = t->recipe.seed,
                     .update = (uint32_t)update,
                     .loss_scale = u->tokens ? 1.0 / (double)u->tokens : 0};
    fth_method_step(m, update, step.slots);
    if (!t->updates_inline) return step;
    step.adam = fth_trainer_adam(t, update, u);
    for (int role = 0; role < FTH_STEP_RATES; role++)
        step.rate[role] = role <= (int)FTH_ROLE_EXTRA ? role_rate(m, (fth_role)role, update) : 1;
    return step;
}

/* Norm of the whole gradient; what the program has updated itself it has squared too. */
static fth_err measure_gradient(fth_trainer *t, fth_program *program, const fth_outputs *outputs,
                                double *gnorm) {
    double squares = 0;
    if (t->arenas.grads > 0)
        FTH_TRY(
            t->device->backend->sum_squares(t->device, t->arenas.grad, t->arenas.grads, &squares));
    if (t->inline_updates.n) FTH_TRY(fth_program_read(program, outputs->updates, t->inline_sums));
    for (int32_t i = 0; i < t->inline_updates.n; i++) {
        const double norm = t->inline_sums[i * FTH_RANGE_SUMS + FTH_RANGE_GRAD];
        squares += norm * norm;
    }
    *gnorm = sqrt(squares);
    return FTH_OK;
}

/* Frozen vectors and embeddings get gradients like others, from operations that make several; the
 * gradient of an update has 0 there. */
static fth_err forget_frozen(const fth_trainer *t) {
    const fth_params *params = &t->model->params;
    const int64_t each = (int64_t)fth_dtype_size(t->device->full);
    for (int32_t i = 0; i < params->n; i++) {
        const fth_param *p = &params->param[i];
        if (p->share > 0) continue;
        const int64_t begin = fth_inline_updates_grad(&t->inline_updates, p->offset);
        int64_t end = begin + fth_param_size(p);
        for (; i + 1 < params->n && params->param[i + 1].share == 0; i++) {
            p = &params->param[i + 1];
            end = fth_inline_updates_grad(&t->inline_updates, p->offset) + fth_param_size(p);
        }
        FTH_TRY(t->device->backend->zero(t->device, (char *)t->arenas.grad + begin * each,
                                         (end - begin) * each));
    }
    return FTH_OK;
}

fth_err fth_trainer_batch(fth_trainer *t, const fth_batch *batch, const fth_step *step, bool fresh,
                          double sums[2]) {
    const fth_stand_in *w = t->watcher;
    fth_program *program = w ? w->program : t->program;
    if (fresh)
        FTH_TRY(t->device->backend->zero(
            t->device, t->arenas.grad, t->arenas.grads * (int64_t)fth_dtype_size(t->device->full)));
    FTH_TRY(fth_program_run(program, batch, step));
    FTH_TRY(forget_frozen(t));
    FTH_TRY(fth_program_read(program, w ? w->outputs->loss : t->outputs.loss, sums));
    return w ? w->ran(w->context, batch) : FTH_OK;
}

static fth_err next_of_array(void *context, const fth_batch **out) {
    const fth_batch *const **at = context;
    *out = *(*at)++;
    return FTH_OK;
}

fth_batches fth_batches_of(const fth_trainer *t, const fth_batch *const **at, int n) {
    fth_batches b = {.n = n, .next = next_of_array, .context = at, .kept = true};
    for (int i = 0; i < n; i++) b.targets += fth_batch_targets((*at)[i], t->outputs.rows);
    return b;
}

static fth_err run_one(fth_trainer *t, const fth_batches *batches, const fth_step *step,
                       fth_update *out) {
    const fth_stand_in *w = t->watcher;
    const fth_batch *batch = NULL;
    double sums[2];
    if (batches->n != 1) return fth_fail(FTH_FAILED, "a trainer of one batch got %d", batches->n);
    FTH_TRY(batches->next(batches->context, &batch));
    FTH_TRY(fth_trainer_batch(t, batch, step, true, sums));
    out->loss = sums[0] * step->loss_scale;
    out->nll = sums[1] * step->loss_scale;
    return measure_gradient(t, w ? w->program : t->program, w ? w->outputs : &t->outputs,
                            &out->gnorm);
}

/* Loss and gradients; matrices that are updated inline. */
static fth_err run_batches(fth_trainer *t, int64_t update, const fth_batches *batches,
                           fth_update *out) {
    *out = (fth_update){.lr = fth_schedule_lr(&t->recipe.schedule, update),
                        .tokens = batches->targets};
    fth_step step = step_of(t, update, out);
    out->alpha = step.slots[0];
    t->summed = t->sum && (batches->n > 1 || t->exchange);
    FTH_TRY(t->summed ? fth_sum_batches(t, batches, &step, out) : run_one(t, batches, &step, out));
    out->finite = isfinite(out->loss) && isfinite(out->gnorm);
    return FTH_OK;
}

fth_err fth_trainer_gradients(fth_trainer *t, int64_t update, const fth_batch *const *batches,
                              int n_batches, fth_update *out) {
    const fth_batches all = fth_batches_of(t, &batches, n_batches);
    if (t->updates_inline)
        return fth_fail(
            FTH_FAILED,
            "a trainer that updates matrices in its backward has no gradients to look at");
    FTH_TRY(run_batches(t, update, &all, out));
    if (!t->summed || t->exchange) return FTH_OK;
    const fth_addends sum = {.data = t->sum, .many = 1, .fresh = true};
    return t->device->backend->add_up(t->device, t->arenas.grad, &sum, t->arenas.n);
}

fth_adam fth_trainer_adam(const fth_trainer *t, int64_t update, const fth_update *u) {
    const fth_recipe *r = &t->recipe;
    fth_adam adam = {.update = update,
                     .lr = u->lr,
                     .beta1 = r->beta1,
                     .beta2 = r->beta2,
                     .eps = r->eps,
                     .weight_decay = r->weight_decay,
                     .grad_scale = 1};
    if (r->clip > 0 && u->gnorm > r->clip) adam.grad_scale = r->clip / (u->gnorm + 1e-6);
    return adam;
}

fth_arenas fth_trainer_own(const fth_trainer *t) {
    fth_arenas a = t->arenas;
    if (t->summed) a.grad = t->sum;
    if (!t->exchange) return a;
    const size_t begin = (size_t)t->own.begin;
    a.n = a.grads = t->own.end - t->own.begin;
    const bool copy = a.weights != a.master;
    a.master = (char *)a.master + begin * fth_dtype_size(t->device->full);
    a.weights = copy ? (char *)a.weights + begin * fth_dtype_size(t->device->real) : a.master;
    return a;
}

/* What each rank has updated comes to all. */
static fth_err spread_weights(fth_trainer *t, int64_t update) {
    if (!t->exchange) return FTH_OK;
    fth_ranks_doing(t->exchange->ranks, update, "exchanging weights");
    FTH_TRY(t->exchange->gather(t->exchange, t->arenas.master));
    return t->device->backend->refresh_weights(t->device, &t->arenas);
}

static fth_err apply(fth_trainer *t, int64_t update, const fth_update *u) {
    const fth_method_state *m = &t->model->method;
    for (int32_t i = 0; i < t->n_ranges; i++)
        t->range[i].lr_scale = fth_rate_of(m, t->range_param[i], update);
    fth_adam adam = fth_trainer_adam(t, update, u);
    adam.range = t->range;
    adam.n_ranges = t->n_ranges;
    const fth_arenas own = fth_trainer_own(t);
    FTH_TRY(t->device->backend->adam(t->device, &own, &adam));
    return spread_weights(t, update);
}

fth_err fth_trainer_update_from(fth_trainer *t, int64_t update, const fth_batches *batches,
                                fth_update *out) {
    if (t->updates_inline && batches->n != 1)
        return fth_fail(FTH_FAILED,
                        "a trainer that updates matrices in its backward takes 1 batch, not %d",
                        batches->n);
    FTH_TRY(run_batches(t, update, batches, out));
    return out->finite ? apply(t, update, out) : FTH_OK;
}

fth_err fth_trainer_update(fth_trainer *t, int64_t update, const fth_batch *const *batches,
                           int n_batches, fth_update *out) {
    const fth_batches all = fth_batches_of(t, &batches, n_batches);
    return fth_trainer_update_from(t, update, &all, out);
}
