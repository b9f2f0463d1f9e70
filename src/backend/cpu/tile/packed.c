/* packed.c: finds the linear maps of a program, decides how each is packed, and packs all of them
 * with every thread. */
#include "backend/cpu/tile/packed.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/bf16.h"

/* The weights of a linear map: NULL when the operation has none. */
static const fth_tensor *weights_of(const fth_exec *ex, const fth_op *op) {
    if (op->kind != FTH_KIND_linear) return NULL;
    const fth_val w = op->in[LINEAR_W];
    return ex->graph->value[w].storage == FTH_IN_PARAM ? &ex->tensor[w] : NULL;
}

static fth_err take_memory(fth_exec *ex, fth_cpu_packed *q, int64_t bytes) {
    FTH_TRY(fth_cpu_alloc(ex->device, bytes, &q->data));
    ex->own_bytes = bytes;
    return FTH_OK;
}

/* ---- 8 bits, and digits of 8 bits ---- */

typedef struct packing {
    const fth_int8_path *path;
    const fth_tensor *from;
    fth_int8 *to;
    float *rows;        /* [threads][width] */
    atomic_bool *fails; /* becomes true where a row cannot be held well */
} packing;

static float number(const fth_tensor *t, int64_t row, int64_t column) {
    const int64_t i = row * t->ld + column;
    if (t->dtype == FTH_F32) return ((const float *)t->data)[i];
    return fth_float_of_bf16(((const uint16_t *)t->data)[i]);
}

static void pack_part(const fth_team *team, void *context) {
    const packing *p = context;
    const int64_t k = p->to->k;
    float *row = p->rows + team->thread * k;
    const fth_cpu_share mine = fth_team_share(team, p->to->n, FTH_INT8_COLUMNS);
    for (int64_t j = mine.begin; j < mine.end; j++) {
        for (int64_t l = 0; l < k; l++) row[l] = number(p->from, j, l);
        if (!p->path->pack_row(p->to, j, row)) atomic_store(p->fails, true);
    }
}

/* Notes the sizes of all maps; returns the bytes of all of them. */
static int64_t find_maps(const fth_exec *ex, fth_cpu_packed *q, int64_t *widest) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < ex->graph->n_ops; i++) {
        const fth_tensor *w = weights_of(ex, &ex->graph->op[i]);
        if (!w) continue;
        fth_int8 *map = &q->map[ex->graph->op[i].in[LINEAR_W]];
        if (map->n || w->width > FTH_INT8_DEEPEST) continue; /* a second reader; too deep */
        map->n = w->rows;
        bytes += fth_int8_bytes(q->path, w->rows, w->width);
        if (w->width > *widest) *widest = w->width;
    }
    return bytes;
}

/* The maps that find_maps has found, one behind the other. False: not all can be held well. */
static fth_err pack_maps(fth_exec *ex, fth_cpu_packed *q, int64_t widest, bool *well) {
    fth_cpu *cpu = (fth_cpu *)ex->device;
    float *rows = malloc(sizeof *rows * (size_t)(widest * ex->device->threads + 1));
    if (!rows) return fth_no_memory("packed weights");
    atomic_bool fails = false;
    char *at = q->data;
    for (fth_val v = 1; v < ex->graph->n_values && !fails; v++) {
        if (!q->map[v].n) continue;
        const fth_tensor *w = &ex->tensor[v];
        fth_int8_place(q->path, &q->map[v], w->rows, w->width, at);
        at += fth_int8_bytes(q->path, w->rows, w->width);
        fth_pool_run(cpu->pool, pack_part, &(packing){q->path, w, &q->map[v], rows, &fails});
    }
    free(rows);
    *well = !fails;
    return FTH_OK;
}

/* Joins every map with the one that the program reads next; after the last comes the first. */
static void join_maps(const fth_exec *ex, fth_cpu_packed *q) {
    const fth_int8 *next = NULL;
    for (int twice = 0; twice < 2; twice++)
        for (int32_t i = ex->graph->n_ops - 1; i >= 0; i--) {
            if (!weights_of(ex, &ex->graph->op[i])) continue;
            fth_int8 *map = &q->map[ex->graph->op[i].in[LINEAR_W]];
            if (!map->n) continue;
            map->after = next;
            next = map;
        }
}

/* All maps in whole numbers. */
static fth_err quantize(fth_exec *ex, const fth_int8_path *path, bool *well) {
    fth_cpu_packed *q = ex->own = calloc(1, sizeof *q);
    if (q) q->map = calloc((size_t)ex->graph->n_values, sizeof *q->map);
    if (!q || !q->map) return fth_no_memory("packed weights");
    q->path = path;
    int64_t widest = 0;
    const int64_t bytes = find_maps(ex, q, &widest);
    *well = true;
    if (bytes == 0) return FTH_OK;
    FTH_TRY(take_memory(ex, q, bytes));
    FTH_TRY(pack_maps(ex, q, widest, well));
    join_maps(ex, q);
    return FTH_OK;
}

/* ---- panels ---- */

/* How the panels of a program look: those of its device's kernels, or those of a unit that
 * multiplies pairs. */
typedef struct shape {
    const fth_cpu_table *table;
    const fth_cpu_pairs_path *unit; /* NULL: the kernels' */
} shape;

/* The panels of one map. */
typedef struct paneling {
    shape shape;
    fth_tensor from;
    void *parameters; /* that from's data is first made of (backend.h, rounds_weights), or NULL */
    void *to;
} paneling;

static int64_t panels_of(const shape *s, const fth_tensor *w) {
    const int64_t columns = s->unit ? FTH_PAIRS_COLUMNS : s->table->panel_columns;
    return (w->rows + columns - 1) / columns;
}

static int64_t panels_bytes(const fth_device *dev, const shape *s, const fth_tensor *w) {
    const int64_t n = panels_of(s, w);
    if (!s->unit)
        return n * s->table->panel_columns * w->width * (int64_t)fth_dtype_size(dev->real);
    return n * fth_cpu_pairs_panel(s->unit, w->width) * (int64_t)sizeof(uint16_t);
}

/* Panels for vectors of pairs (pairs.h); what no weight fills is 0 already. */
static void pack_pairs(const fth_cpu_pairs_path *path, const fth_tensor *w, fth_cpu_share panels,
                       uint16_t *to) {
    const int64_t size = fth_cpu_pairs_panel(path, w->width);
    const int64_t begin = panels.begin * FTH_PAIRS_COLUMNS, end = panels.end * FTH_PAIRS_COLUMNS;
    for (int64_t j = begin; j < end && j < w->rows; j++) {
        const uint16_t *from = (const uint16_t *)w->data + j * w->ld;
        uint16_t *pair = to + j / FTH_PAIRS_COLUMNS * size + j % FTH_PAIRS_COLUMNS * 2;
        for (int64_t l = 0; l < w->width; l++)
            pair[l / 2 * 2 * FTH_PAIRS_COLUMNS + l % 2] = from[l];
    }
}

static void panels_part(const fth_team *team, void *context) {
    paneling *p = context;
    const fth_cpu_share mine = fth_team_share(team, panels_of(&p->shape, &p->from), 1);
    if (p->parameters) {
        const fth_arenas all = {
            .n = p->from.rows * p->from.width, .master = p->parameters, .weights = p->from.data};
        p->shape.table->refresh(&all, team);
        fth_team_wait(team);
    }
    if (!p->shape.unit)
        p->shape.table->pack_panels(&p->from, mine, p->to);
    else if (fth_cpu_pairs_on_tiles(p->shape.unit))
        p->shape.table->pack_tiles(&p->from, mine, p->to);
    else
        pack_pairs(p->shape.unit, &p->from, mine, p->to);
}

/* Bytes of the panels of all maps, those that two operations read counted once. */
static int64_t all_panels_bytes(const fth_exec *ex, const shape *s, fth_cpu_packed *q) {
    const fth_graph *g = ex->graph;
    int64_t bytes = 0;
    for (int32_t i = 0; i < g->n_ops; i++) {
        const fth_tensor *w = weights_of(ex, &g->op[i]);
        void **panels = w ? &q->panels[g->op[i].in[LINEAR_W]] : NULL;
        if (!w || *panels) continue;
        bytes += panels_bytes(ex->device, s, w);
        *panels = q; /* seen */
    }
    memset(q->panels, 0, sizeof *q->panels * (size_t)g->n_values);
    return bytes;
}

/* Packs a map, whose numbers may first have to be brought to the type of activations. */
static fth_err pack_map(fth_cpu *cpu, const shape *s, const fth_tensor *w, void *to) {
    paneling p = {*s, *w, NULL, to};
    if (w->dtype != cpu->base.real) {
        p.from.dtype = cpu->base.real;
        p.from.data = malloc((size_t)(w->rows * w->width) * fth_dtype_size(p.from.dtype));
        p.parameters = w->data;
        if (!p.from.data) return fth_no_memory("packed weights");
    }
    fth_pool_run(cpu->pool, panels_part, &p);
    if (p.parameters) free(p.from.data);
    return FTH_OK;
}

/* Maps lie in the order in which they are read. */
static fth_err pack_panels(fth_exec *ex) {
    fth_cpu *cpu = (fth_cpu *)ex->device;
    const fth_graph *g = ex->graph;
    fth_cpu_packed *q = ex->own = calloc(1, sizeof *q);
    if (q) q->panels = calloc((size_t)g->n_values, sizeof *q->panels);
    if (!q || !q->panels) return fth_no_memory("packed weights");
    q->unit = cpu->pairs;
    const shape shape_ = {cpu->table, q->unit};
    const int64_t bytes = all_panels_bytes(ex, &shape_, q);
    if (bytes == 0) return FTH_OK;
    FTH_TRY(take_memory(ex, q, bytes));
    char *at = q->data;
    for (int32_t i = 0; i < g->n_ops; i++) {
        const fth_tensor *w = weights_of(ex, &g->op[i]);
        const fth_val v = w ? g->op[i].in[LINEAR_W] : 0;
        if (!w || q->panels[v]) continue;
        q->panels[v] = at;
        at += panels_bytes(ex->device, &shape_, w);
        FTH_TRY(pack_map(cpu, &shape_, w, q->panels[v]));
    }
    return FTH_OK;
}

/* ---- choosing ---- */

/* Whether a program advances hypotheses by a token. */
static bool generates(const fth_graph *g) {
    for (int32_t i = 0; i < g->n_ops; i++)
        if (g->op[i].kind == FTH_KIND_attention_cached) return true;
    return false;
}

/* Whether a map of the program can have so many rows. */
static bool has_rows(const fth_exec *ex, int64_t n) {
    for (int32_t i = 0; i < ex->graph->n_ops; i++) {
        const fth_op *op = &ex->graph->op[i];
        if (weights_of(ex, op) && fth_arg(ex, op->in[LINEAR_X])->rows >= n) return true;
    }
    return false;
}

/* Floats in fixed point, where there are tiles for it and rows enough to fill them. */
static fth_err pack_digits(fth_exec *ex, bool *done) {
    const fth_cpu_pairs_path *tiles = ((const fth_cpu *)ex->device)->parts;
    const fth_digits_path *digits = tiles ? fth_digits_path_named(tiles->name) : NULL;
    *done = false;
    if (!digits || !has_rows(ex, FTH_DIGITS_ROWS)) return FTH_OK;
    FTH_TRY(quantize(ex, &digits->weights, done));
    ((fth_cpu_packed *)ex->own)->digits = digits;
    if (!*done) fth_cpu_unpack(ex);
    return FTH_OK;
}

fth_err fth_cpu_pack_whole(fth_exec *ex, bool few_rows) {
    bool done;
    FTH_TRY(pack_digits(ex, &done));
    return done || !few_rows ? FTH_OK : pack_panels(ex);
}

fth_err fth_cpu_pack(fth_exec *ex) {
    const fth_int8_path *int8 = ((const fth_cpu *)ex->device)->int8;
    bool well;
    if (int8) {
        FTH_TRY(quantize(ex, int8, &well));
        return well ? FTH_OK
                    : fth_fail(FTH_FAILED, "weights that are not finite cannot be held in 8 bits");
    }
    return ex->frozen ? fth_cpu_pack_whole(ex, generates(ex->graph)) : FTH_OK;
}

void fth_cpu_unpack(fth_exec *ex) {
    fth_cpu_packed *q = ex->own;
    if (!q) return;
    if (q->data) fth_cpu_release(ex->device, q->data);
    free(q->map);
    free(q->panels);
    free(q);
    ex->own = NULL;
    ex->own_bytes = 0;
}
