/* inline_update.c: finds matrices whose gradient one operation completes, puts an update after the
 * last reader of each, and moves the other gradients together. */
#include "graph/inline_update.h"

#include <stdlib.h>
#include <string.h>

#include "graph/batch.h"
#include "graph/op.h"
#include "graph/plan.h"

/* A matrix whose gradient one linear_dw makes. */
typedef struct candidate {
    fth_inline_range range;
    fth_val grad;
    int32_t maker; /* operation that makes the gradient */
    int32_t last;  /* operation that makes it or reads the matrix last */
    bool refused;
} candidate;

typedef struct pass {
    fth_graph *g;
    const fth_inline_spec *spec;
    candidate *found; /* [n] by begin */
    int32_t n;
} pass;

static int64_t end_of(const fth_value *v) {
    return v->offset + v->rows * v->width;
}

static int by_begin(const void *a, const void *b) {
    const int64_t x = ((const candidate *)a)->range.begin, y = ((const candidate *)b)->range.begin;
    return x < y ? -1 : x > y;
}

/* Whether the range is made of whole parameters with one learning rate; *param: one of them. */
static bool is_whole(const pass *p, int64_t begin, int64_t end, int32_t *param) {
    const fth_params *params = p->spec->params;
    int32_t i = fth_params_from(params, begin);
    if (i == params->n || params->param[i].offset != begin) return false;
    *param = i;
    while (i < params->n && begin < end && params->param[i].offset == begin) {
        if (params->param[i].share == 0)
            return false; /* frozen: the trainer forgets its gradient */
        if (!p->spec->same_rate(p->spec->context, &params->param[*param], &params->param[i]))
            return false;
        begin += fth_param_size(&params->param[i++]);
    }
    return begin == end;
}

static void find_candidates(pass *p) {
    const fth_graph *g = p->g;
    for (int32_t i = 0; i < g->n_ops; i++) {
        const fth_op *op = &g->op[i];
        if (op->kind != FTH_KIND_linear_dw || !op->out[LINEAR_DW_DW]) continue;
        const fth_value *v = &g->value[op->out[LINEAR_DW_DW]];
        candidate c = {.range = {.begin = v->offset, .end = end_of(v)},
                       .grad = op->out[LINEAR_DW_DW],
                       .maker = i,
                       .last = i};
        c.refused =
            v->storage != FTH_IN_GRAD || !is_whole(p, c.range.begin, c.range.end, &c.range.param);
        p->found[p->n++] = c;
    }
    qsort(p->found, (size_t)p->n, sizeof *p->found, by_begin);
    for (int32_t k = 1; k < p->n; k++) /* two that write one matrix */
        if (p->found[k].range.begin < p->found[k - 1].range.end)
            p->found[k].refused = p->found[k - 1].refused = true;
}

/* The first candidate that ends behind an element; n: none. */
static int32_t candidate_from(const pass *p, int64_t offset) {
    int32_t low = 0, high = p->n;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (p->found[middle].range.end <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Operation i touches value v: a matrix stays until its last reader, a gradient has one writer. */
static void note_use(pass *p, int32_t i, fth_val v) {
    const fth_value *value = &p->g->value[v];
    const bool param = value->storage == FTH_IN_PARAM, grad = value->storage == FTH_IN_GRAD;
    if (!v || (!param && !grad)) return;
    for (int32_t k = candidate_from(p, value->offset);
         k < p->n && p->found[k].range.begin < end_of(value); k++) {
        if (param && i > p->found[k].last) p->found[k].last = i;
        if (grad && v != p->found[k].grad) p->found[k].refused = true;
    }
}

static void drop_refused(pass *p) {
    int32_t n = 0;
    for (int32_t k = 0; k < p->n; k++)
        if (!p->found[k].refused) p->found[n++] = p->found[k];
    p->n = n;
}

static int by_last(const void *a, const void *b) {
    const candidate *x = *(candidate *const *)a, *y = *(candidate *const *)b;
    if (x->last != y->last) return x->last < y->last ? -1 : 1;
    return by_begin(x, y);
}

/* Lets matrices wait for each other until enough of them have come, and then for the next ones, so
 * that gradients that are deferred are ready. */
static fth_err gather(pass *p) {
    if (p->spec->together == 0) return FTH_OK;
    candidate **order = malloc(sizeof *order * (size_t)(p->n + 1));
    if (!order) return fth_fail(FTH_NO_MEMORY, "no memory for a graph");
    for (int32_t k = 0; k < p->n; k++) order[k] = &p->found[k];
    qsort(order, (size_t)p->n, sizeof *order, by_last);
    int64_t elements = 0;
    int32_t moved = 0, group = 0; /* how many have their place; where this group begins */
    for (int32_t k = 0; k < p->n; k++) {
        elements += order[k]->range.end - order[k]->range.begin;
        if (elements < p->spec->together && k + 1 < p->n) continue;
        const int32_t end = k + 1 < p->n ? group : p->n, last = order[k]->last;
        while (moved < end) order[moved++]->last = last;
        group = k + 1;
        elements = 0;
    }
    free(order);
    return FTH_OK;
}

/* How far gradients behind each range move down: by whole lines, so that they stay aligned. */
static void lay_out(const pass *p, fth_inline_updates *out) {
    int64_t before = 0, run = 0; /* saved before the run of adjoining ranges at hand; its begin */
    for (int32_t k = 0; k < p->n; k++) {
        fth_inline_range *r = &out->range[k];
        *r = p->found[k].range;
        if (k == 0 || r[-1].end != r->begin) {
            before = k ? r[-1].saved : 0;
            run = r->begin;
        }
        r->saved = before + (r->end - run) / FTH_PARAM_ALIGNMENT * FTH_PARAM_ALIGNMENT;
    }
    out->n = p->n;
    out->grads = p->spec->params->size - (p->n ? out->range[p->n - 1].saved : 0);
}

static void move_gradients(const pass *p, const fth_inline_updates *e) {
    for (int32_t k = 0; k < p->n; k++) {
        p->g->value[p->found[k].grad].storage = FTH_IN_ARENA;
        p->g->value[p->found[k].grad].offset = 0;
    }
    for (fth_val v = 1; v < p->g->n_values; v++)
        if (p->g->value[v].storage == FTH_IN_GRAD)
            p->g->value[v].offset = fth_inline_updates_grad(e, p->g->value[v].offset);
}

static fth_val flat_value(fth_graph *g, fth_storage storage, fth_class class, const candidate *c) {
    return fth_graph_value(g, (fth_value){.storage = storage,
                                          .class = class,
                                          .extent = FTH_ROWS_FIXED,
                                          .rows = g->value[c->grad].rows,
                                          .width = g->value[c->grad].width,
                                          .offset = c->range.begin,
                                          .producer = -1});
}

/* The update of candidate k, at the end of the list for now. */
static fth_err add_update(pass *p, int32_t k, fth_val sums) {
    fth_graph *g = p->g;
    const candidate *c = &p->found[k];
    fth_op *op = fth_graph_op(g, FTH_KIND_update, UPDATE_N_IN, UPDATE_N_OUT);
    if (!op) return g->err;
    const fth_op *maker = &g->op[c->maker];
    op->backward = true;
    op->stack = maker->stack, op->sub = maker->sub, op->layer = maker->layer;
    const fth_param *param = &p->spec->params->param[c->range.param];
    op->u.update.rate = (int32_t)param->role;
    op->u.update.share = param->share;
    op->u.update.watched = p->spec->watched;
    op->in[UPDATE_GRAD] = c->grad;
    op->in[UPDATE_LOSS] = p->spec->loss;
    fth_graph_output(g, op, UPDATE_MASTER, flat_value(g, FTH_IN_PARAM, FTH_FULL, c));
    fth_graph_output(g, op, UPDATE_M, flat_value(g, FTH_IN_MOMENT1, FTH_FULL, c));
    fth_graph_output(g, op, UPDATE_V, flat_value(g, FTH_IN_MOMENT2, FTH_FULL, c));
    fth_graph_output(g, op, UPDATE_WEIGHTS, flat_value(g, FTH_IN_PARAM, FTH_REAL, c));
    fth_graph_output(g, op, UPDATE_SUMS,
                     fth_graph_columns(g, sums, k * FTH_RANGE_SUMS, FTH_RANGE_SUMS));
    return g->err;
}

/* Puts each of the updates, which stand at the end, right behind the last use of its matrix. */
static fth_err put_in_place(pass *p, int32_t n_before) {
    fth_graph *g = p->g;
    fth_op *ops = malloc(sizeof *ops * (size_t)g->n_ops);
    int32_t *next = malloc(sizeof *next * (size_t)(n_before + p->n)); /* lists by last use */
    if (!ops || !next) {
        free(ops);
        free(next);
        return fth_fail(FTH_NO_MEMORY, "no memory for a graph");
    }
    int32_t *first = next + p->n, n = 0;
    for (int32_t i = 0; i < n_before; i++) first[i] = -1;
    for (int32_t k = 0; k < p->n; k++) {
        next[k] = first[p->found[k].last];
        first[p->found[k].last] = k;
    }
    for (int32_t i = 0; i < n_before; i++) {
        ops[n++] = g->op[i];
        for (int32_t k = first[i]; k >= 0; k = next[k]) ops[n++] = g->op[n_before + k];
    }
    free(next);
    free(g->op);
    g->op = ops;
    g->cap_ops = g->n_ops;
    fth_graph_find_producers(g);
    return FTH_OK;
}

static fth_err rewrite(pass *p, fth_inline_updates *out, fth_val *sums) {
    fth_graph *g = p->g;
    find_candidates(p);
    for (int32_t i = 0; i < g->n_ops; i++) {
        for (int k = 0; k < g->op[i].n_in; k++) note_use(p, i, g->op[i].in[k]);
        for (int k = 0; k < g->op[i].n_out; k++) note_use(p, i, g->op[i].out[k]);
        const int32_t product = fth_joined_product(g, i); /* may be made here */
        for (int k = 0; product >= 0 && k < g->op[product].n_in; k++)
            note_use(p, i, g->op[product].in[k]);
    }
    drop_refused(p);
    FTH_TRY(gather(p));
    lay_out(p, out);
    move_gradients(p, out);
    if (p->n == 0) return FTH_OK;
    *sums = fth_graph_value(g, (fth_value){.class = FTH_FULL,
                                           .extent = FTH_ROWS_FIXED,
                                           .rows = 1,
                                           .width = p->n * FTH_RANGE_SUMS,
                                           .producer = -1,
                                           .keep = true});
    const int32_t n_before = g->n_ops;
    for (int32_t k = 0; k < p->n; k++) FTH_TRY(add_update(p, k, *sums));
    return put_in_place(p, n_before);
}

fth_err fth_graph_update_inline(fth_graph *g, const fth_inline_spec *spec, fth_inline_updates *out,
                                fth_val *sums) {
    const size_t most = (size_t)g->n_ops + 1;
    pass p = {.g = g, .spec = spec, .found = malloc(sizeof *p.found * most)};
    *sums = 0;
    *out = (fth_inline_updates){.range = malloc(sizeof *out->range * most)};
    fth_err err = FTH_OK;
    if (!p.found || !out->range)
        err = fth_fail(FTH_NO_MEMORY, "no memory for a graph");
    else
        err = rewrite(&p, out, sums);
    free(p.found);
    if (err != FTH_OK) fth_inline_updates_fini(out);
    return err;
}

void fth_inline_updates_fini(fth_inline_updates *e) {
    free(e->range);
    *e = (fth_inline_updates){0};
}

int64_t fth_inline_updates_grad(const fth_inline_updates *e, int64_t offset) {
    int32_t low = 0, high = e->n; /* ranges before `low` begin at or before the element */
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (e->range[middle].begin <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return offset;
    return offset < e->range[low - 1].end ? -1 : offset - e->range[low - 1].saved;
}
