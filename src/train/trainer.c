#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void fth_capacities(const fth_trainer_spec *spec, int64_t capacity[FTH_N_EXTENTS]) {
    memset(capacity, 0, sizeof *capacity * FTH_N_EXTENTS);
    int64_t src = spec->src_tokens, tgt = spec->tgt_tokens, len = spec->max_len;
    capacity[FTH_ROWS_SRC] = src;
    capacity[FTH_ROWS_TGT] = tgt;
    capacity[FTH_ROWS_SRC_PAIRS] = src * (len < src ? len : src);
    capacity[FTH_ROWS_TGT_PAIRS] = tgt * (len < tgt ? len : tgt);
    capacity[FTH_ROWS_CROSS_PAIRS] = tgt * (len < src ? len : src);
}

/* ---- runs of parameters that share a learning rate ---- */

/* Decided by what the method says of the first update, where schedules differ most. */
bool fth_same_rate(const fth_method_state *m, fth_role a, fth_role b) {
    return !m->method->lr_scale || m->method->lr_scale(m, a, 1) == m->method->lr_scale(m, b, 1);
}

static fth_err make_ranges(fth_trainer *t) {
    const fth_params *params = &t->model->params;
    t->range = calloc((size_t)params->n + 1, sizeof *t->range);
    t->range_role = calloc((size_t)params->n + 1, sizeof *t->range_role);
    if (!t->range || !t->range_role) return fth_fail(FTH_NO_MEMORY, "no memory for a trainer");
    for (int32_t i = 0; i < params->n; i++) {
        const fth_param *p = &params->param[i];
        int64_t end = i + 1 < params->n ? params->param[i + 1].offset : params->size;
        if (t->n_ranges &&
            fth_same_rate(&t->model->method, t->range_role[t->n_ranges - 1], p->role)) {
            t->range[t->n_ranges - 1].end = end;
            continue;
        }
        t->range[t->n_ranges] = (fth_adam_range){p->offset, end, 1};
        t->range_role[t->n_ranges++] = p->role;
    }
    return FTH_OK;
}

/* ---- making ---- */

fth_err fth_trainer_program(fth_trainer *t, const fth_trainer_spec *spec, fth_taps *taps,
                            const fth_program *lender, fth_program **program,
                            fth_outputs *outputs) {
    fth_graph graph;
    fth_graph_spec what = {.backward = true,
                           .dropout = t->recipe.dropout,
                           .smoothing = t->recipe.smoothing,
                           .taps = taps};
    fth_err err = fth_model_graph(t->model, &what, &graph, outputs);
    if (err != FTH_OK) {
        fth_graph_fini(&graph);
        return err;
    }
    fth_program_spec how = {.arenas = &t->arenas, .lender = lender};
    fth_capacities(spec, how.capacity);
    if (spec->memory_budget > 0) {
        int64_t fixed = fth_arenas_bytes(t->device, t->model->params.size, FTH_TO_TRAIN);
        if (spec->memory_budget <= fixed) {
            fth_graph_fini(&graph);
            return fth_fail(FTH_NO_MEMORY,
                            "parameters, gradients and moments alone need %.1f MiB, "
                            "--memory-budget is %.1f MiB",
                            (double)fixed / 1048576.0, (double)spec->memory_budget / 1048576.0);
        }
        how.budget = spec->memory_budget - fixed;
    }
    return fth_program_new(t->device, &graph, &how, program);
}

fth_err fth_trainer_init(fth_trainer *t, fth_model *model, fth_device *dev,
                         const fth_recipe *recipe, const fth_trainer_spec *spec) {
    *t = (fth_trainer){.model = model, .device = dev, .recipe = *recipe};
    fth_err err = fth_arenas_new(dev, model->params.size, FTH_TO_TRAIN, &t->arenas);
    if (err == FTH_OK) err = fth_trainer_program(t, spec, NULL, NULL, &t->program, &t->outputs);
    if (err == FTH_OK) err = make_ranges(t);
    if (err != FTH_OK) fth_trainer_fini(t);
    return err;
}

void fth_trainer_fini(fth_trainer *t) {
    fth_program_free(t->program);
    if (t->device) fth_arenas_free(t->device, &t->arenas);
    free(t->range);
    free(t->range_role);
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
    return fth_arenas_bytes(t->device, t->arenas.n, FTH_TO_TRAIN) + fth_program_bytes(t->program);
}

/* ---- updating ---- */

int64_t fth_batch_targets(const fth_batch *batch, fth_side side) {
    const fth_packed_side *s = &batch->side[side];
    int64_t n = 0;
    for (int32_t r = 0; r < s->rows; r++) n += s->targets[r] >= 0;
    return n;
}

fth_err fth_trainer_gradients(fth_trainer *t, int64_t update, const fth_batch *const *batches,
                              int n_batches, fth_update *out) {
    const fth_backend *backend = t->device->backend;
    fth_side side = t->outputs.side;
    *out = (fth_update){0};
    for (int i = 0; i < n_batches; i++) out->tokens += fth_batch_targets(batches[i], side);
    fth_step step = {.seed = t->recipe.seed,
                     .update = (uint32_t)update,
                     .loss_scale = out->tokens ? 1.0 / (double)out->tokens : 0};
    fth_method_step(&t->model->method, update, step.slots);
    out->alpha = step.slots[0];
    int64_t grad_bytes = t->arenas.n * (int64_t)fth_dtype_size(t->device->full);
    FTH_TRY(backend->zero(t->device, t->arenas.grad, grad_bytes));
    const fth_watcher *w = t->watcher;
    for (int i = 0; i < n_batches; i++) {
        double sums[2];
        fth_program *program = w ? w->program : t->program;
        FTH_TRY(fth_program_run(program, batches[i], &step));
        FTH_TRY(fth_program_read(program, w ? w->loss : t->outputs.loss, sums));
        if (w) FTH_TRY(w->ran(w->context, batches[i]));
        out->loss += sums[0] * step.loss_scale;
        out->nll += sums[1] * step.loss_scale;
        for (int s = 0; s < 2; s++) step.row_base[s] += batches[i]->side[s].rows;
    }
    double squares;
    FTH_TRY(backend->sum_squares(t->device, t->arenas.grad, t->arenas.n, &squares));
    out->gnorm = sqrt(squares);
    out->finite = isfinite(out->loss) && isfinite(out->gnorm);
    return FTH_OK;
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

static fth_err apply(fth_trainer *t, int64_t update, const fth_update *u) {
    const fth_method_state *m = &t->model->method;
    for (int32_t i = 0; i < t->n_ranges && m->method->lr_scale; i++)
        t->range[i].lr_scale = (float)m->method->lr_scale(m, t->range_role[i], update);
    fth_adam adam = fth_trainer_adam(t, update, u);
    adam.range = t->range;
    adam.n_ranges = t->n_ranges;
    return t->device->backend->adam(t->device, &t->arenas, &adam);
}

fth_err fth_trainer_update(fth_trainer *t, int64_t update, const fth_batch *const *batches,
                           int n_batches, fth_update *out) {
    FTH_TRY(fth_trainer_gradients(t, update, batches, n_batches, out));
    out->lr = fth_schedule_lr(&t->recipe.schedule, update);
    return out->finite ? apply(t, update, out) : FTH_OK;
}
