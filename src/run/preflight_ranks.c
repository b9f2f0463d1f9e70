/* preflight_ranks.c: what a training would take on several ranks of this machine, for every number
 * of stages that divides theirs: memory by planning, time by playing the schedule through
 * (train/replay.h). */
#include <math.h>
#include <stdlib.h>

#include "graph/stages.h"
#include "run/flight.h"
#include "train/replay.h"

/* Ranks of one machine reach each other through its memory. */
static const double LINK = 4e9, LATENCY = 100e-6;

/* Bytes of activations of a stage, for as many batches as it keeps. */
static fth_err stage_bytes(const fth_flight *f, const fth_stages *s, int stage, int lanes,
                           int64_t *bytes) {
    fth_graph graph;
    fth_outputs outputs;
    fth_plan plan = {0};
    int64_t capacity[FTH_N_EXTENTS];
    fth_capacities(&f->size, capacity);
    const fth_plan_spec how = fth_program_plan_spec(f->device, capacity);
    FTH_TRY(fth_update_graph(&f->model, f->device, &f->spec->recipe, NULL, NULL, &graph, &outputs));
    (void)fth_stages_keep(s, stage, &graph);
    fth_err err = FTH_OK;
    if (how.recompute_norms) err = fth_graph_recompute_values(&graph, (fth_recompute_counts){0});
    if (err == FTH_OK) err = fth_plan_make(&graph, &how, &plan);
    int64_t one = plan.bytes + fth_program_bytes_beside(f->device, &graph, capacity);
    for (int32_t i = 0; i < s->n_crossings && err == FTH_OK; i++)
        if (s->crossing[i].to == stage) one += fth_value_bytes(&graph, &how, s->crossing[i].value);
    *bytes = lanes * one;
    fth_plan_fini(&plan);
    fth_graph_fini(&graph);
    return err;
}

/* Of the lowest stage, which keeps the most batches, and of the highest, which has the loss. */
static fth_err activations(const fth_flight *f, const fth_stages *s, int rounds, int64_t *bytes) {
    int64_t low = 0, high = 0;
    FTH_TRY(stage_bytes(f, s, 0, rounds < s->n ? rounds : s->n, &low));
    FTH_TRY(stage_bytes(f, s, s->n - 1, 1, &high));
    *bytes = low > high ? low : high;
    return FTH_OK;
}

static int64_t parameter_bytes(const fth_flight *f, int ranks, int stages) {
    const int64_t n = f->model.params.size, own = n / ranks + 1;
    const int64_t full = (int64_t)fth_dtype_size(f->device->full);
    return fth_arenas_bytes(f->device, n, n, own) + own * full + (stages > 1 ? n * full : 0);
}

static fth_err play(const fth_flight *f, const fth_stages *s, const int64_t *hop, int batches,
                    fth_rank_plan *plan) {
    const fth_topology t = {.ranks = f->how->ranks,
                            .ranks_per_host = f->how->ranks,
                            .stages = s->n,
                            .link = LINK,
                            .net = LINK,
                            .latency = LATENCY};
    const fth_workload w = {.batch = f->out->seconds_per_update / (double)f->spec->update_freq,
                            .cost = s->cost,
                            .hop = hop,
                            .batches = batches,
                            .parameters = f->out->parameters,
                            .own_first = f->spec->reduce_fast};
    fth_replay r;
    FTH_TRY(fth_replay_update(&t, &w, &r));
    plan->seconds = r.seconds;
    plan->sent = r.sent;
    plan->waiting = fmax(1 - r.computed, 0);
    plan->target_tokens_per_s =
        f->out->target_tokens / (double)f->spec->update_freq * batches / r.seconds;
    return FTH_OK;
}

static fth_err make_plan(const fth_flight *f, const fth_graph *g, int stages, fth_rank_plan *plan) {
    const fth_config *c = &f->model.config;
    const int32_t layers[2] = {fth_stack_layers(c, FTH_ENCODER), fth_stack_layers(c, FTH_DECODER)};
    const int groups = f->how->ranks / stages;
    const int asked = (int)f->spec->update_freq, batches = asked > groups ? asked : groups;
    int64_t capacity[FTH_N_EXTENTS], bytes = 0;
    fth_stages s = {0};
    fth_capacities(&f->size, capacity);
    const fth_plan_spec sizes = fth_program_plan_spec(f->device, capacity);
    *plan = (fth_rank_plan){.stages = stages, .batches = batches};
    int64_t *hop = calloc((size_t)stages, sizeof *hop);
    if (!hop) return fth_fail(FTH_NO_MEMORY, "no memory for a preflight");
    fth_err err = fth_stages_find(g, layers, capacity, stages, &s);
    for (int32_t i = 0; i < s.n_crossings && err == FTH_OK; i++)
        if (!s.crossing[i].backward)
            hop[s.crossing[i].from] += fth_value_bytes(g, &sizes, s.crossing[i].value);
    if (err == FTH_OK) err = activations(f, &s, (batches + groups - 1) / groups, &bytes);
    plan->bytes = bytes + parameter_bytes(f, f->how->ranks, stages);
    if (err == FTH_OK) err = play(f, &s, hop, batches, plan);
    fth_stages_fini(&s);
    free(hop);
    return err;
}

/* Whether all ranks of this machine have room; a GPU is a rank's own. */
static bool has_room(const fth_flight *f, const fth_rank_plan *plan) {
    const int64_t sharing = f->device->backend->on_host ? f->how->ranks : 1;
    return plan->bytes * sharing <= f->out->available_bytes;
}

fth_err fth_preflight_ranks(fth_flight *f) {
    fth_preflight *p = f->out;
    const fth_config *c = &f->model.config;
    const int layers = fth_stack_layers(c, FTH_ENCODER) + fth_stack_layers(c, FTH_DECODER);
    const int most = f->device->backend->on_host ? f->how->ranks : 1;
    fth_graph graph;
    fth_outputs outputs;
    p->best_plan = -1;
    if (f->how->ranks <= 1) return FTH_OK;
    FTH_TRY(fth_update_graph(&f->model, f->device, &f->spec->recipe, NULL, NULL, &graph, &outputs));
    fth_err err = FTH_OK;
    for (int n = 1; n <= most && n <= layers && p->n_plans < FTH_RANK_PLANS && err == FTH_OK; n++) {
        fth_rank_plan *plan = &p->plan[p->n_plans];
        if (f->how->ranks % n != 0) continue;
        err = make_plan(f, &graph, n, plan);
        plan->fits = has_room(f, plan);
        const fth_rank_plan *best = p->best_plan >= 0 ? &p->plan[p->best_plan] : NULL;
        if (plan->fits && (!best || plan->target_tokens_per_s > best->target_tokens_per_s))
            p->best_plan = p->n_plans;
        p->n_plans++;
    }
    fth_graph_fini(&graph);
    return err;
}
