/* stages.c: borders where the largest stage is smallest, by bisection over its cost; then one walk
 * over the operations for what crosses them. */
#include "graph/stages.h"

#include <stdlib.h>
#include <string.h>

#include "graph/flops.h"
#include "graph/plan.h"

void fth_stages_fini(fth_stages *s) {
    free(s->first);
    free(s->cost);
    free(s->of);
    free(s->crossing);
    free(s->handover);
    free(s->run);
    *s = (fth_stages){0};
}

/* ---- to which layer an operation belongs ---- */

/* What lies before the first layer of a stack belongs to it, what comes after the last to that; a
 * head to the last of all. seen: stacks of which a layer has come already, in forward order. */
static int32_t layer_of(const fth_op *op, const int32_t layers[2], bool seen[2]) {
    if (op->stack == FTH_NO_STACK) return layers[0] + layers[1] - 1;
    const int32_t before = op->stack == FTH_DECODER ? layers[0] : 0;
    if (op->layer >= 0) {
        seen[op->stack] = true;
        return before + op->layer;
    }
    return seen[op->stack] ? before + layers[op->stack] - 1 : before;
}

/* layer [n_ops]. The backward goes through the layers the other way round. */
static void find_layers(const fth_graph *g, const int32_t layers[2], int32_t *layer) {
    bool seen[2] = {false, false};
    int32_t end = 0;
    for (; end < g->n_ops && !g->op[end].backward; end++)
        layer[end] = layer_of(&g->op[end], layers, seen);
    seen[0] = seen[1] = false;
    for (int32_t i = g->n_ops - 1; i >= end; i--) layer[i] = layer_of(&g->op[i], layers, seen);
}

/* ---- borders ---- */

/* Takes layers for each stage while they cost no more than `most`, as long as the stages after it
 * have one each. Returns whether that is all of them; first: NULL, or what to fill. */
static bool fits(const double *cost, int32_t layers, int32_t stages, double most, int32_t *first) {
    int32_t at = 0;
    for (int32_t s = 0; s < stages; s++) {
        const int32_t last = layers - (stages - s - 1); /* the others need the rest */
        double sum = cost[at];
        if (first) first[s] = at;
        at++;
        while (at < last && sum + cost[at] <= most) sum += cost[at++];
    }
    if (first) first[stages] = layers;
    return at == layers;
}

static double largest(const fth_stages *s, const double *cost) {
    double most = 0;
    for (int32_t k = 0; k < s->n; k++) {
        s->cost[k] = 0;
        for (int32_t l = s->first[k]; l < s->first[k + 1]; l++) s->cost[k] += cost[l];
        if (s->cost[k] > most) most = s->cost[k];
    }
    return most;
}

/* cost [layers], sums to 1. */
static void balance(fth_stages *s, const double *cost, int32_t layers) {
    double low = 0, high = 1;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (fits(cost, layers, s->n, middle, NULL))
            high = middle;
        else
            low = middle;
    }
    (void)fits(cost, layers, s->n, high, s->first);
    s->first[s->n] = layers;
    (void)largest(s, cost);
}

static fth_err find_borders(const fth_graph *g, const int32_t *layer, int32_t layers,
                            const int64_t rows[FTH_N_EXTENTS], fth_stages *s) {
    double *cost = calloc((size_t)layers, sizeof *cost), sum = 0;
    s->first = calloc((size_t)s->n + 1, sizeof *s->first);
    s->cost = calloc((size_t)s->n, sizeof *s->cost);
    if (!cost || !s->first || !s->cost) {
        free(cost);
        return fth_no_memory("the stages of a graph");
    }
    for (int32_t l = 0; l < layers; l++) sum += cost[l] = 1; /* what is no product counts too */
    for (int32_t i = 0; i < g->n_ops; i++) {
        const double flops = fth_op_flops(g, &g->op[i], rows);
        cost[layer[i]] += flops;
        sum += flops;
    }
    for (int32_t l = 0; l < layers; l++) cost[l] /= sum;
    balance(s, cost, layers);
    free(cost);
    return FTH_OK;
}

static int32_t stage_of(const fth_stages *s, int32_t layer) {
    int32_t stage = 0;
    while (layer >= s->first[stage + 1]) stage++;
    return stage;
}

/* ---- what crosses them ---- */

static fth_err add_crossing(fth_stages *s, fth_crossing c) {
    for (int32_t i = s->n_crossings - 1; i >= 0; i--)
        if (s->crossing[i].value == c.value && s->crossing[i].to == c.to) return FTH_OK;
    fth_crossing *more = realloc(s->crossing, sizeof *more * (size_t)(s->n_crossings + 1));
    if (!more) return fth_no_memory("the stages of a graph");
    s->crossing = more;
    s->crossing[s->n_crossings++] = c;
    return FTH_OK;
}

static int by_maker(const void *a, const void *b) {
    const fth_crossing *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

/* made [n_values]: 1 + the stage that makes a value, negative in the backward. */
static fth_err find_makers(const fth_graph *g, const fth_stages *s, int32_t *made) {
    for (int32_t i = 0; i < g->n_ops; i++)
        for (int k = 0; k < g->op[i].n_out; k++) {
            const fth_val v = g->op[i].out[k] ? fth_owner(g, g->op[i].out[k]) : 0;
            if (!v || g->value[v].storage != FTH_IN_ARENA) continue;
            const int32_t here = g->op[i].backward ? -1 - s->of[i] : 1 + s->of[i];
            if (made[v] && made[v] != here)
                return fth_fail(FTH_FAILED, "two stages make one value of operation %s",
                                fth_kind_name(g->op[i].kind));
            made[v] = here;
        }
    return FTH_OK;
}

static fth_err find_crossings(const fth_graph *g, fth_stages *s) {
    int32_t *made = calloc((size_t)g->n_values, sizeof *made);
    if (!made) return fth_no_memory("the stages of a graph");
    fth_err err = find_makers(g, s, made);
    for (int32_t i = 0; i < g->n_ops && err == FTH_OK; i++)
        for (int k = 0; k < g->op[i].n_in && err == FTH_OK; k++) {
            const fth_val v = g->op[i].in[k] ? fth_owner(g, g->op[i].in[k]) : 0;
            if (!v || !made[v]) continue;
            const int32_t from = abs(made[v]) - 1;
            if (from != s->of[i])
                err = add_crossing(s, (fth_crossing){v, from, s->of[i], made[v] < 0});
        }
    free(made);
    if (s->n_crossings) qsort(s->crossing, (size_t)s->n_crossings, sizeof *s->crossing, by_maker);
    return err;
}

/* ---- gradients of parameters ---- */

typedef struct touch {
    int64_t begin, end;
    int32_t stage;
} touch;

static int by_place(const void *a, const void *b) {
    const touch *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return x->stage < y->stage ? -1 : x->stage > y->stage;
}

/* Every range that an operation adds to, with its stage. */
static touch *find_touches(const fth_graph *g, const fth_stages *s, size_t *n) {
    size_t count = 0;
    for (int32_t i = 0; i < g->n_ops; i++) count += (size_t)g->op[i].n_out;
    touch *t = malloc(sizeof *t * (count + 1));
    *n = 0;
    for (int32_t i = 0; t && i < g->n_ops; i++)
        for (int k = 0; k < g->op[i].n_out; k++) {
            const fth_value *v = &g->value[g->op[i].out[k]];
            if (!g->op[i].out[k] || v->storage != FTH_IN_GRAD) continue;
            t[(*n)++] = (touch){v->offset, v->offset + v->rows * v->width, s->of[i]};
        }
    if (t) qsort(t, *n, sizeof *t, by_place);
    return t;
}

enum { PADDING = 64 }; /* at most so many elements lie between parameters that are neighbours */

/* A range that stages add to: the lowest one has it last. */
static void take_range(fth_stages *s, const touch *t, size_t n) {
    fth_stage_run *before = s->n_runs ? &s->run[s->n_runs - 1] : NULL;
    if (before && before->stage == t[0].stage && t[0].begin - before->end < PADDING)
        before->end = t[0].end;
    else
        s->run[s->n_runs++] = (fth_stage_run){t[0].begin, t[0].end, t[0].stage};
    for (size_t i = n - 1; i > 0; i--)
        if (t[i].stage != t[i - 1].stage)
            s->handover[s->n_handovers++] =
                (fth_handover){t[0].begin, t[0].end, t[i].stage, t[i - 1].stage};
}

/* Ranges are the same, or apart, or those of one stage, which become one. */
static fth_err find_runs(const fth_graph *g, fth_stages *s) {
    size_t n = 0, at = 0;
    touch *t = find_touches(g, s, &n);
    s->run = malloc(sizeof *s->run * (n + 1));
    s->handover = malloc(sizeof *s->handover * (n + 1));
    fth_err err = t && s->run && s->handover ? FTH_OK : fth_no_memory("the stages of a graph");
    while (at < n && err == FTH_OK) {
        size_t end = at + 1;
        bool same = true, one = true;
        int64_t reach = t[at].end;
        for (; end < n && t[end].begin < reach; end++) {
            same &= t[end].begin == t[at].begin && t[end].end == t[at].end;
            one &= t[end].stage == t[at].stage;
            if (t[end].end > reach) reach = t[end].end;
        }
        t[at].end = reach;
        if (!same && !one)
            err = fth_fail(FTH_FAILED, "stages share a part of a parameter at %lld",
                           (long long)t[at].begin);
        else
            take_range(s, t + at, one ? 1 : end - at);
        at = end;
    }
    free(t);
    return err;
}

/* ---- all of it ---- */

fth_err fth_stages_find(const fth_graph *g, const int32_t layers[2],
                        const int64_t rows[FTH_N_EXTENTS], int32_t n, fth_stages *out) {
    const int32_t all = layers[0] + layers[1];
    *out = (fth_stages){.n = n};
    if (n < 1 || n > all)
        return fth_fail(FTH_USAGE, "--pipeline %d: must be from 1 to the number of layers, %d", n,
                        all);
    out->of = malloc(sizeof *out->of * (size_t)(g->n_ops + 1));
    fth_err err = out->of ? FTH_OK : fth_no_memory("the stages of a graph");
    if (err == FTH_OK) find_layers(g, layers, out->of);
    if (err == FTH_OK) err = find_borders(g, out->of, all, rows, out);
    for (int32_t i = 0; i < g->n_ops && err == FTH_OK; i++) out->of[i] = stage_of(out, out->of[i]);
    if (err == FTH_OK) err = find_crossings(g, out);
    if (err == FTH_OK) err = find_runs(g, out);
    if (err != FTH_OK) fth_stages_fini(out);
    return err;
}

int32_t fth_stages_keep(const fth_stages *s, int32_t stage, fth_graph *g) {
    int32_t n = 0, forward = 0;
    for (int32_t i = 0; i < g->n_ops; i++) {
        if (s->of[i] != stage) continue;
        forward += !g->op[i].backward;
        g->op[n++] = g->op[i];
    }
    g->n_ops = n;
    for (fth_val v = 1; v < g->n_values; v++) g->value[v].producer = -1;
    for (int32_t i = 0; i < s->n_crossings; i++) {
        const fth_crossing *c = &s->crossing[i];
        if (c->to == stage) g->value[c->value].storage = FTH_IN_STATE;
        if (c->from == stage) g->value[c->value].keep = true;
    }
    fth_graph_find_producers(g);
    return forward;
}
