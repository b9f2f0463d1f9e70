/* pipeline.c: the stage of this rank, and one forward one backward through it. */
#include "train/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/plan.h"
#include "train/pipeline_inside.h"

/* ---- making ---- */

static void free_lane(fth_pipeline *p, lane *l) {
    fth_program_free(l->program);
    for (int32_t i = 0; l->come && i < p->stages.n_crossings; i++)
        if (l->come[i]) p->device->backend->release(p->device, l->come[i]);
    free(l->come);
    free(l->letter);
}

void fth_pipeline_free(fth_pipeline *p) {
    if (!p) return;
    for (int k = p->n_lanes - 1; k >= 0 && p->lane; k--) free_lane(p, &p->lane[k]);
    free(p->lane);
    if (p->sum) p->device->backend->release(p->device, p->sum);
    if (p->others) p->device->backend->release(p->device, p->others);
    free(p->handed);
    free(p->letter);
    free(p->base);
    fth_stages_fini(&p->stages);
    free(p);
}

/* Memory for what comes from other stages. */
static fth_err make_room(fth_pipeline *p, const fth_graph *g, const fth_plan_spec *sizes, lane *l,
                         fth_shared *shared, int32_t *n) {
    *n = 0;
    for (int32_t i = 0; i < p->stages.n_crossings; i++) {
        const fth_crossing *c = &p->stages.crossing[i];
        if (c->to != p->stage) continue;
        const int64_t bytes = fth_value_bytes(g, sizes, c->value);
        FTH_TRY(p->device->backend->alloc(p->device, bytes, &l->come[i]));
        p->bytes += bytes;
        shared[(*n)++] = (fth_shared){c->value, l->come[i]};
    }
    return FTH_OK;
}

/* One lane's program; the graph of the model is built again for each. */
static fth_err make_lane(fth_pipeline *p, fth_trainer *t, const fth_program_spec *spec, lane *l) {
    const size_t n = (size_t)p->stages.n_crossings + 1;
    fth_graph graph;
    fth_outputs outputs;
    l->come = calloc(n, sizeof *l->come);
    l->letter = calloc(n, sizeof *l->letter);
    fth_shared *shared = calloc(n, sizeof *shared);
    fth_err err = l->come && l->letter && shared ? FTH_OK : fth_no_memory("a pipeline");
    if (err == FTH_OK)
        err = fth_update_graph(t->model, t->device, &t->recipe, NULL, NULL, &graph, &outputs);
    if (err == FTH_OK) {
        const fth_plan_spec sizes = fth_program_plan_spec(t->device, spec->capacity);
        fth_program_spec how = *spec;
        p->forward = fth_stages_keep(&p->stages, p->stage, &graph);
        err = make_room(p, &graph, &sizes, l, shared, &how.n_shared);
        how.shared = shared;
        if (err == FTH_OK)
            err = fth_program_new(t->device, &graph, &how, &l->program);
        else
            fth_graph_fini(&graph);
    }
    free(shared);
    return err;
}

/* Micro-batches of which this stage keeps activations at once. */
static int lanes_of(const fth_pipeline *p, int batches) {
    const int rounds = (batches + p->groups - 1) / p->groups, above = p->stages.n - p->stage;
    return rounds < above ? rounds : above;
}

static fth_err make_lists(fth_pipeline *p, fth_trainer *t) {
    const fth_stages *s = &p->stages;
    const int count = fth_rank_count(p->ranks);
    const int64_t size = (int64_t)fth_grad_size(p);
    int64_t longest = 1;
    for (int32_t i = 0; i < s->n_runs; i++)
        if (s->run[i].end - s->run[i].begin > longest) longest = s->run[i].end - s->run[i].begin;
    p->handed = calloc((size_t)s->n_handovers + 1, sizeof *p->handed);
    p->letter = calloc((size_t)s->n_runs * (size_t)count + 1, sizeof *p->letter);
    p->base = calloc((size_t)t->batches, sizeof *p->base);
    if (!p->handed || !p->letter || !p->base) return fth_no_memory("a pipeline");
    p->bytes += size * t->arenas.n;
    FTH_TRY(t->device->backend->alloc(t->device, size * t->arenas.n, &p->sum));
    if (p->groups == 1) return FTH_OK;
    p->bytes += size * (longest / p->groups + 1);
    return t->device->backend->alloc(t->device, size * (longest / p->groups + 1), &p->others);
}

/* spec->budget is that of all lanes together. */
static fth_err make_lanes(fth_pipeline *p, fth_trainer *t, const fth_program_spec *spec) {
    fth_program_spec how = *spec;
    p->n_lanes = lanes_of(p, t->batches);
    p->lane = calloc((size_t)p->n_lanes, sizeof *p->lane);
    if (!p->lane) return fth_no_memory("a pipeline");
    how.budget /= p->n_lanes;
    if (how.budget > 0) how.budget -= p->bytes / p->n_lanes;
    if (spec->budget > 0 && how.budget <= 0) how.budget = 1;
    for (int k = 0; k < p->n_lanes; k++) {
        FTH_TRY(make_lane(p, t, &how, &p->lane[k]));
        if (k > 0) p->bytes += fth_program_bytes(p->lane[k].program);
    }
    return FTH_OK;
}

fth_err fth_pipeline_check(const fth_ranks *ranks, const fth_device *dev, int stages) {
    const int count = fth_rank_count(ranks);
    if (stages > 1 && count % stages != 0)
        return fth_fail(FTH_USAGE, "--pipeline %d: must divide the number of ranks, %d", stages,
                        count);
    if (stages > 1 && !dev->backend->on_host)
        return fth_fail(FTH_USAGE, "--pipeline %d: device %s runs whole models only; --device cpu",
                        stages, dev->backend->name);
    return FTH_OK;
}

fth_err fth_pipeline_new(fth_trainer *t, const fth_trainer_spec *spec, const fth_graph *graph,
                         const fth_program_spec *how, fth_pipeline **out) {
    const fth_config *c = &t->model->config;
    const int32_t layers[2] = {fth_stack_layers(c, FTH_ENCODER), fth_stack_layers(c, FTH_DECODER)};
    fth_pipeline *p = calloc(1, sizeof *p);
    *out = p;
    if (!p) return fth_no_memory("a pipeline");
    p->device = t->device;
    p->ranks = spec->ranks;
    p->groups = t->groups;
    p->group = fth_rank(spec->ranks) / spec->stages;
    p->stage = fth_rank(spec->ranks) % spec->stages;
    memcpy(p->capacity, how->capacity, sizeof p->capacity);
    FTH_TRY(fth_stages_find(graph, layers, how->capacity, spec->stages, &p->stages));
    FTH_TRY(make_lists(p, t));
    return make_lanes(p, t, how);
}

fth_err fth_pipeline_whole(fth_trainer *t, fth_program **out) {
    fth_program_spec how = {.arenas = &t->arenas};
    fth_graph graph;
    fth_outputs outputs;
    memcpy(how.capacity, t->pipeline->capacity, sizeof how.capacity);
    FTH_TRY(fth_update_graph(t->model, t->device, &t->recipe, NULL, NULL, &graph, &outputs));
    return fth_program_new(t->device, &graph, &how, out);
}

void fth_pipeline_describe(const fth_pipeline *p, char *text, size_t size) {
    const fth_stages *s = &p->stages;
    size_t at = 0;
    text[0] = '\0';
    for (int32_t k = 0; k < s->n && at < size; k++)
        at += (size_t)snprintf(text + at, size - at, "%s%d to %d (%.0f %%)", k ? ", " : "",
                               s->first[k] + 1, s->first[k + 1], 100 * s->cost[k]);
    if (at >= size && size > 4) memcpy(text + size - 4, "...", 4);
}

double fth_pipeline_idle(int stages, int batches) {
    return (double)(stages - 1) / (batches + stages - 1);
}

int64_t fth_pipeline_bytes(const fth_pipeline *p) {
    return p ? p->bytes : 0;
}

fth_program *fth_pipeline_program(const fth_pipeline *p) {
    return p->lane[0].program;
}

/* ---- one forward, one backward ---- */

/* The update at hand. */
typedef struct passage {
    fth_pipeline *p;
    fth_trainer *t;
    const fth_batch *const *batches; /* [n] */
    int n;
    const fth_step *step;
    double *losses; /* [rounds, 2] */
} passage;

/* Micro-batch of this group in a round; n and more: none. */
static int batch_of(const passage *w, int round) {
    return round * w->p->groups + w->p->group;
}

static void say(const passage *w, int round, const char *what, int from) {
    const fth_pipeline *p = w->p;
    char text[96], of[40] = "";
    const int32_t first = p->stages.first[p->stage], last = p->stages.first[p->stage + 1];
    if (from >= 0) snprintf(of, sizeof of, "waiting for rank %d: ", from);
    snprintf(text, sizeof text, "%s%s of layers %d to %d, micro-batch %d of %d", of, what,
             first + 1, last, batch_of(w, round) + 1, w->n);
    fth_ranks_doing(p->ranks, w->step->update, text);
}

static fth_step step_at(const passage *w, int i) {
    fth_step step = *w->step;
    memcpy(step.row_base, w->p->base[i], sizeof step.row_base);
    return step;
}

static fth_err receive_values(const passage *w, lane *l, int round, bool backward) {
    fth_pipeline *p = w->p;
    const char *what = backward ? "backward" : "forward";
    for (int32_t i = 0; i < p->stages.n_crossings; i++) {
        const fth_crossing *c = &p->stages.crossing[i];
        if (c->to != p->stage || c->backward != backward) continue;
        const int from = fth_stage_rank(p, p->group, c->from);
        const fth_value *v = &fth_program_graph(l->program)->value[c->value];
        const size_t size = fth_dtype_size(fth_dtype_of(p->device, v->class));
        say(w, round, what, from);
        FTH_TRY(fth_post_receive(p->ranks, from, l->come[i],
                                 fth_program_rows(l->program, c->value) * v->width, size));
    }
    for (int32_t i = 0; i < p->stages.n_handovers && backward; i++) {
        const fth_handover *h = &p->stages.handover[i];
        if (h->to != p->stage) continue;
        const size_t size = fth_grad_size(p);
        say(w, round, what, fth_stage_rank(p, p->group, h->from));
        FTH_TRY(fth_post_receive(p->ranks, fth_stage_rank(p, p->group, h->from),
                                 (char *)w->t->arenas.grad + (size_t)h->begin * size,
                                 h->end - h->begin, size));
    }
    say(w, round, what, -1);
    return FTH_OK;
}

static fth_err send_values(const passage *w, lane *l, bool backward) {
    fth_pipeline *p = w->p;
    for (int32_t i = 0; i < p->stages.n_crossings; i++) {
        const fth_crossing *c = &p->stages.crossing[i];
        if (c->from != p->stage || c->backward != backward) continue;
        const fth_value *v = &fth_program_graph(l->program)->value[c->value];
        const size_t size = fth_dtype_size(fth_dtype_of(p->device, v->class));
        FTH_TRY(fth_post_send(
            p->ranks, fth_stage_rank(p, p->group, c->to), fth_program_address(l->program, c->value),
            fth_program_rows(l->program, c->value) * v->width, size, &l->letter[i]));
    }
    for (int32_t i = 0; i < p->stages.n_handovers && backward; i++) {
        const fth_handover *h = &p->stages.handover[i];
        const size_t size = fth_grad_size(p);
        if (h->from != p->stage) continue;
        FTH_TRY(fth_post_send(p->ranks, fth_stage_rank(p, p->group, h->to),
                              (char *)w->t->arenas.grad + (size_t)h->begin * size,
                              h->end - h->begin, size, &p->handed[i]));
    }
    return FTH_OK;
}

/* The stage with the loss adds to gradients in its forward. */
static fth_err clear(const passage *w) {
    FTH_TRY(fth_post_settle(w->p->ranks, w->p->handed, w->p->stages.n_handovers));
    return fth_pipeline_zero(w->p, w->t->arenas.grad);
}

static fth_err forward(const passage *w, int round) {
    fth_pipeline *p = w->p;
    lane *l = &p->lane[round % p->n_lanes];
    const int i = batch_of(w, round);
    const fth_step step = step_at(w, i);
    const bool last = p->stage == p->stages.n - 1;
    FTH_TRY(fth_post_settle(p->ranks, l->letter, p->stages.n_crossings));
    if (last) FTH_TRY(clear(w));
    FTH_TRY(fth_program_load(l->program, w->batches[i], &step));
    FTH_TRY(receive_values(w, l, round, false));
    FTH_TRY(fth_program_run_part(l->program, 0, p->forward));
    FTH_TRY(send_values(w, l, false));
    return last ? fth_program_read(l->program, w->t->outputs.loss, w->losses + 2 * round) : FTH_OK;
}

static fth_err backward(const passage *w, int round) {
    fth_pipeline *p = w->p;
    lane *l = &p->lane[round % p->n_lanes];
    if (p->stage < p->stages.n - 1) FTH_TRY(clear(w));
    FTH_TRY(receive_values(w, l, round, true));
    FTH_TRY(fth_program_run_part(l->program, p->forward, fth_program_graph(l->program)->n_ops));
    return send_values(w, l, true);
}

/* Rows of the micro-batches before each of them. */
static void count_rows(fth_pipeline *p, const fth_batch *const *batches, int n, fth_step *step) {
    for (int i = 0; i < n; i++) {
        int64_t rows[FTH_N_EXTENTS];
        memcpy(p->base[i], step->row_base, sizeof p->base[i]);
        fth_batch_rows(batches[i], rows);
        for (int e = 0; e < FTH_ROW_EXTENTS; e++) step->row_base[e] += rows[e];
    }
}

static fth_err settle_all(fth_pipeline *p) {
    for (int k = 0; k < p->n_lanes; k++)
        FTH_TRY(fth_post_settle(p->ranks, p->lane[k].letter, p->stages.n_crossings));
    return fth_post_settle(p->ranks, p->handed, p->stages.n_handovers);
}

/* As without stages: the gradient of an update has 0 where parameters are frozen. */
static fth_err forget_frozen(fth_trainer *t) {
    const fth_params *params = &t->model->params;
    const int64_t each = (int64_t)fth_dtype_size(t->device->full);
    for (int32_t i = 0; i < params->n; i++) {
        const fth_param *p = &params->param[i];
        const int64_t last = p->offset + fth_param_size(p);
        const int64_t begin = p->offset > t->own.begin ? p->offset : t->own.begin;
        const int64_t end = last < t->own.end ? last : t->own.end;
        if (p->share > 0 || begin >= end) continue;
        char *at = (char *)t->sum + (begin - t->own.begin) * each;
        FTH_TRY(t->device->backend->zero(t->device, at, (end - begin) * each));
    }
    return FTH_OK;
}

fth_err fth_pipeline_sum(fth_trainer *t, const fth_batch *const *batches, int n, fth_step *step,
                         double *losses) {
    fth_pipeline *p = t->pipeline;
    const passage w = {p, t, batches, n, step, losses};
    const int rounds = (n + p->groups - 1) / p->groups;
    const int mine = (n - p->group + p->groups - 1) / p->groups; /* micro-batches */
    const int ahead = p->stages.n - 1 - p->stage;
    count_rows(p, batches, n, step);
    for (int k = 0; k < ahead && k < mine; k++) FTH_TRY(forward(&w, k));
    for (int k = 0; k < rounds; k++) {
        const int left = n - k * p->groups;
        if (k + ahead < mine) FTH_TRY(forward(&w, k + ahead));
        if (k < mine) FTH_TRY(backward(&w, k));
        FTH_TRY(fth_pipeline_add(p, t->arenas.grad, left < p->groups ? left : p->groups, k == 0));
    }
    FTH_TRY(settle_all(p));
    FTH_TRY(fth_pipeline_deal(p, t->arenas.n, t->sum));
    return forget_frozen(t);
}
