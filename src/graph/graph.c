/* graph.c: growing lists of values and operations in one arena; value 0 means "none". */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

const char *fth_kind_name(fth_kind kind) {
    static const char *const names[] = {
#define KIND(name, text) #name,
#include "graph/kinds.def"
#undef KIND
    };
    return (unsigned)kind < FTH_N_KINDS ? names[kind] : "?";
}

void fth_graph_init(fth_graph *g) {
    memset(g, 0, sizeof *g);
    fth_arena_init(&g->arena);
    fth_graph_value(g, (fth_value){.producer = -1}); /* value 0 stands for "none" */
}

void fth_graph_fini(fth_graph *g) {
    fth_arena_fini(&g->arena);
    free(g->value);
    free(g->op);
    memset(g, 0, sizeof *g);
}

/* Makes room for one more element; false (and a sticky error) when memory is out. */
static bool grow(fth_graph *g, void **array, int32_t n, int32_t *capacity, size_t size) {
    if (g->err != FTH_OK) return false;
    if (n < *capacity) return true;
    int32_t wanted = *capacity ? *capacity * 2 : 256;
    void *more = realloc(*array, (size_t)wanted * size);
    if (!more) {
        g->err = fth_fail(FTH_NO_MEMORY, "no memory for a graph of %d entries", wanted);
        return false;
    }
    *array = more;
    *capacity = wanted;
    return true;
}

fth_val fth_graph_value(fth_graph *g, fth_value v) {
    if (!grow(g, (void **)&g->value, g->n_values, &g->cap_values, sizeof *g->value)) return 0;
    g->value[g->n_values] = v;
    return g->n_values++;
}

fth_op *fth_graph_op(fth_graph *g, fth_kind kind, int n_in, int n_out) {
    if (!grow(g, (void **)&g->op, g->n_ops, &g->cap_ops, sizeof *g->op)) return NULL;
    fth_val *operands = fth_arena_alloc(&g->arena, sizeof *operands * (size_t)(n_in + n_out));
    if (!operands) {
        g->err = fth_fail(FTH_NO_MEMORY, "no memory for the operands of %s", fth_kind_name(kind));
        return NULL;
    }
    fth_op *op = &g->op[g->n_ops++];
    *op = (fth_op){.kind = kind,
                   .n_in = n_in,
                   .n_out = n_out,
                   .in = operands,
                   .out = operands + n_in,
                   .stack = FTH_NO_STACK,
                   .sub = FTH_NO_SUB,
                   .layer = -1};
    return op;
}

fth_val fth_graph_like(fth_graph *g, fth_val v) {
    const fth_value *old = &g->value[v];
    return fth_graph_value(g, (fth_value){.storage = FTH_IN_ARENA,
                                          .class = old->class,
                                          .extent = old->extent,
                                          .rows = old->rows,
                                          .width = old->width,
                                          .producer = -1});
}

fth_val fth_graph_columns(fth_graph *g, fth_val base, int column, int width) {
    fth_value view = g->value[base];
    view.base = base;
    view.column = column;
    view.width = width;
    view.producer = -1;
    return fth_graph_value(g, view);
}

void fth_graph_output(fth_graph *g, fth_op *op, int index, fth_val v) {
    op->out[index] = v;
    if (!v) return;
    fth_val owner = g->value[v].base ? g->value[v].base : v;
    g->value[owner].producer = (int32_t)(op - g->op);
    g->value[v].producer = (int32_t)(op - g->op);
}

void fth_graph_find_producers(fth_graph *g) {
    for (int32_t i = 0; i < g->n_ops; i++)
        for (int k = 0; k < g->op[i].n_out; k++) {
            const fth_val v = g->op[i].out[k];
            if (!v || g->value[v].storage != FTH_IN_ARENA) continue;
            g->value[g->value[v].base ? g->value[v].base : v].producer = i;
            g->value[v].producer = i;
        }
}
