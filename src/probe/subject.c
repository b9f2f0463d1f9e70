/* subject.c: runs a program that calls back after every operation, so that a value is read while
 * it still has its place. */
#include "probe/subject.h"

#include <stdlib.h>
#include <string.h>

#include "train/weights.h"

fth_err fth_subject_open(fth_subject *s, const fth_probe_spec *spec, const char *folder) {
    *s = (fth_subject){.spec = spec};
    fth_err err = fth_weights_read(folder, &s->model, &s->flat);
    if (err == FTH_OK)
        err = fth_probe_set_read(&s->set, spec->batch, &s->model.config, spec->max_tokens);
    if (err == FTH_OK)
        err =
            fth_arenas_new(spec->device, s->model.params.size, s->model.params.size, 0, &s->arenas);
    if (err == FTH_OK) err = fth_subject_load(s, s->flat);
    if (err != FTH_OK) fth_subject_close(s);
    return err;
}

void fth_subject_close(fth_subject *s) {
    if (s->spec) fth_arenas_free(s->spec->device, &s->arenas);
    fth_probe_set_fini(&s->set);
    free(s->flat);
    fth_model_fini(&s->model);
    *s = (fth_subject){0};
}

fth_err fth_subject_load(fth_subject *s, const float *flat) {
    return fth_arenas_load(s->spec->device, &s->arenas, flat);
}

fth_err fth_subject_has_loss(const fth_subject *s) {
    if (s->set.targets > 0) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s: no position has a target, so there is no loss",
                    s->spec->batch);
}

int64_t fth_subject_update(const fth_subject *s, int64_t step) {
    if (s->spec->update > 0) return s->spec->update;
    return step > 1 ? step : 1; /* the step of the last update */
}

/* ---- looking ---- */

typedef struct fth_sight {
    int32_t maker; /* operation */
    fth_val value;
    int32_t id;
} sight;

fth_err fth_look_open(fth_look *l, fth_subject *s, fth_graph_spec what, unsigned gradients) {
    *l = (fth_look){.subject = s, .taps = {.gradients = gradients}};
    fth_graph graph;
    fth_program_spec how = {.arenas = &s->arenas};
    what.taps = &l->taps;
    what.smoothing = s->spec->smoothing;
    what.dropout = s->spec->dropout;
    fth_probe_set_capacity(&s->set, how.capacity);
    fth_err err = fth_model_graph(&s->model, &what, &graph, &l->outputs);
    if (err != FTH_OK)
        fth_graph_fini(&graph);
    else
        err = fth_program_new(s->spec->device, &graph, &how, &l->program);
    if (err != FTH_OK) fth_look_close(l);
    return err;
}

void fth_look_close(fth_look *l) {
    fth_program_free(l->program);
    fth_taps_fini(&l->taps);
    free(l->sight);
    *l = (fth_look){0};
}

fth_err fth_look_at(fth_look *l, fth_val v, int32_t id) {
    if (!v) return FTH_OK;
    if (l->n_sights == l->cap_sights) {
        int32_t capacity = l->cap_sights ? l->cap_sights * 2 : 64;
        sight *more = realloc(l->sight, sizeof *more * (size_t)capacity);
        if (!more) return fth_fail(FTH_NO_MEMORY, "no memory to look at %d values", capacity);
        l->sight = more;
        l->cap_sights = capacity;
    }
    int32_t maker = fth_program_graph(l->program)->value[v].producer;
    l->sight[l->n_sights++] = (sight){.maker = maker, .value = v, .id = id};
    return FTH_OK;
}

fth_err fth_see_squares(void *context, int32_t id, const double *x, int64_t rows, int64_t width) {
    double *sums = context, sum = 0;
    for (int64_t i = 0; i < rows * width; i++) sum += x[i] * x[i];
    sums[id] += sum;
    return FTH_OK;
}

/* One piece being run. */
typedef struct showing {
    fth_look *look;
    fth_see *see;
    void *context;
    int32_t at; /* next sight */
} showing;

static int by_maker(const void *a, const void *b) {
    const sight *x = a, *y = b;
    if (x->maker != y->maker) return x->maker < y->maker ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* A value can be read right behind the operation that makes it: its place is still its own. */
static fth_err show(void *context, const fth_op *op) {
    showing *s = context;
    fth_look *l = s->look;
    const fth_graph *g = fth_program_graph(l->program);
    int32_t made = (int32_t)(op - g->op);
    for (; s->at < l->n_sights && l->sight[s->at].maker <= made; s->at++) {
        fth_val v = l->sight[s->at].value;
        int64_t rows = fth_program_rows(l->program, v), width = g->value[v].width;
        double *x = malloc(sizeof *x * (size_t)(rows * width + 1));
        if (!x) return fth_fail(FTH_NO_MEMORY, "no memory to look at %lld rows", (long long)rows);
        fth_err err = fth_program_read(l->program, v, x);
        if (err == FTH_OK) err = s->see(s->context, l->sight[s->at].id, x, rows, width);
        free(x);
        if (err != FTH_OK) return err;
    }
    return FTH_OK;
}

fth_err fth_look_piece(fth_look *l, int64_t update, fth_see *see, void *context) {
    fth_subject *s = l->subject;
    fth_step step = {.seed = s->spec->seed,
                     .update = (uint32_t)update,
                     .loss_scale = s->set.targets ? 1.0 / (double)s->set.targets : 0};
    fth_method_step(&s->model.method, update, step.slots);
    for (int side = 0; side < 2; side++) /* dropout counts rows through all pieces */
        if (s->set.all.store.batch.side[side].offsets)
            step.row_base[side] =
                s->set.all.store.batch.side[side].offsets[s->set.next - s->set.part.batch.n_sent];
    showing all = {.look = l, .see = see, .context = context};
    if (see && l->n_sights) {
        qsort(l->sight, (size_t)l->n_sights, sizeof *l->sight, by_maker);
        FTH_TRY(fth_program_walk(l->program, &s->set.part.batch, &step, NULL, show, &all));
    } else {
        FTH_TRY(fth_program_run(l->program, &s->set.part.batch, &step));
    }
    double sums[2];
    FTH_TRY(fth_program_read(l->program, l->outputs.loss, sums));
    l->loss += sums[0] * step.loss_scale;
    l->nll += sums[1] * step.loss_scale;
    return FTH_OK;
}

fth_err fth_look_run(fth_look *l, int64_t update, fth_see *see, void *context) {
    fth_subject *s = l->subject;
    fth_device *dev = s->spec->device;
    int64_t bytes = s->arenas.n * (int64_t)fth_dtype_size(dev->full);
    FTH_TRY(dev->backend->zero(dev, s->arenas.grad, bytes));
    l->loss = l->nll = 0;
    fth_probe_set_rewind(&s->set);
    for (bool more = true;;) {
        FTH_TRY(fth_probe_set_next(&s->set, &more));
        if (!more) return FTH_OK;
        FTH_TRY(fth_look_piece(l, update, see, context));
    }
}
