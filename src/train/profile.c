/* profile.c: runs the forward of the first batch and, before each join with a learned residual,
 * measures the variance of its branch. */
#include "train/profile.h"

#include <math.h>
#include <stdlib.h>

#include "graph/dropout.h"
#include "graph/op.h"

typedef struct profile {
    fth_trainer *t;
    fth_program *program;
    fth_step step;
    fth_stack stack; /* of the newest sub-layer */
    double r;
} profile;

bool fth_profile_wanted(const fth_model *model) {
    const fth_method_state *s = &model->method;
    return s->method->profiled && s->method->profiled(s, FTH_SELF);
}

/* Population variance of scale * D(v) over all entries. */
static fth_err variance(profile *p, fth_val v, double scale, fth_drop drop, double *out) {
    const fth_graph *g = fth_program_graph(p->program);
    int64_t rows = fth_program_rows(p->program, v), width = g->value[v].width, n = rows * width;
    double *x = malloc(sizeof *x * (size_t)(n + 1)), sum = 0, squares = 0;
    if (!x) return fth_fail(FTH_NO_MEMORY, "no memory for a profile of %lld numbers", (long long)n);
    fth_err err = fth_program_read(p->program, v, x);
    double kept = drop.p > 0 ? fth_drop_scale(drop.p) : 1;
    for (int64_t i = 0; i < n && err == FTH_OK; i++) {
        bool keeps = drop.p <= 0 ||
                     fth_drop_keeps(p->step.seed, p->step.update, drop.site, drop.p, (uint64_t)i);
        x[i] = keeps ? x[i] * scale * kept : 0;
        sum += x[i];
    }
    for (int64_t i = 0; i < n && err == FTH_OK; i++)
        squares += (x[i] - sum / (double)n) * (x[i] - sum / (double)n);
    free(x);
    *out = squares / (double)n;
    return err;
}

/* Writes one number into every entry of a parameter. */
static fth_err set_parameter(profile *p, const fth_value *param, double value) {
    fth_device *dev = p->t->device;
    float *row = malloc(sizeof *row * (size_t)param->width);
    if (!row) return fth_fail(FTH_NO_MEMORY, "no memory for a profile");
    for (int32_t i = 0; i < param->width; i++) row[i] = (float)value;
    char *at = (char *)p->t->arenas.master + (size_t)param->offset * fth_dtype_size(dev->full);
    fth_err err = fth_arena_put(dev, at, param->width, row);
    free(row);
    return err;
}

/* Called before each operation: a join with a learned residual is a sub-layer to be profiled. */
static fth_err before(void *context, const fth_op *op) {
    profile *p = context;
    bool joins = op->kind == FTH_KIND_join || op->kind == FTH_KIND_join_norm;
    if (!joins || !op->in[JOIN_R]) return FTH_OK;
    if (op->stack != p->stack) p->r = 1;
    p->stack = op->stack;
    const fth_graph *g = fth_program_graph(p->program);
    FTH_TRY(set_parameter(p, &g->value[op->in[JOIN_R]], p->r));
    double in, out;
    FTH_TRY(variance(p, op->in[JOIN_X], p->r, (fth_drop){0}, &in));
    FTH_TRY(variance(p, op->in[JOIN_F], 1, op->u.join.drop, &out));
    p->r = sqrt(in + out);
    return FTH_OK;
}

fth_err fth_profile(fth_trainer *t, const fth_batch *batch, const int64_t capacity[FTH_N_EXTENTS]) {
    fth_graph graph;
    fth_outputs outputs;
    fth_graph_spec what = {.dropout = true};
    fth_program_spec how = {.arenas = &t->arenas};
    for (int e = 0; e < FTH_N_EXTENTS; e++) how.capacity[e] = capacity[e];
    /* update 0 is never trained, so its masks are the profile's alone */
    profile p = {.t = t, .step = {.seed = t->recipe.seed}, .stack = FTH_NO_STACK, .r = 1};
    fth_err err = fth_model_graph(t->model, &what, &graph, &outputs);
    if (err != FTH_OK) {
        fth_graph_fini(&graph);
        return err;
    }
    FTH_TRY(fth_program_new(t->device, &graph, &how, &p.program));
    fth_method_step(&t->model->method, 1, p.step.slots);
    err = fth_program_walk(p.program, batch, &p.step, before, NULL, &p);
    if (err == FTH_OK) err = t->device->backend->refresh_weights(t->device, &t->arenas);
    fth_program_free(p.program);
    return err;
}
