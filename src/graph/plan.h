/* plan.h: where every value of a graph lies. Values of the arena are placed by lifetime, so that
 * the peak is known before anything runs; under a budget, layers are recomputed in the backward
 * instead of being kept (recompute_layers.c). */
#ifndef FTH_GRAPH_PLAN_H
#define FTH_GRAPH_PLAN_H

#include "graph/graph.h"

/* The value that a view is of, or v itself: who owns its storage. */
static inline fth_val fth_owner(const fth_graph *g, fth_val v) {
    return g->value[v].base ? g->value[v].base : v;
}

/* What the planner must know of a device and of the batches to come. */
typedef struct fth_plan_spec {
    int64_t capacity[FTH_N_EXTENTS]; /* most rows of each extent (FIXED: unused) */
    size_t real_size, full_size;     /* bytes of an element of each class; BITS: 1 */
    bool recompute_norms; /* fth_plan_within: outputs of layer norms are made again in any case */
    int32_t
        lag; /* operations by which those that are deferrable may end late: their operands stay */
    bool joined; /* joins make the products that they read (fth_joined_product): operands stay */
} fth_plan_spec;

typedef struct fth_plan {
    int64_t *offset; /* [n_values] byte offset in the arena; -1: not in the arena */
    int64_t bytes;   /* size of the arena */
} fth_plan;

/* Operations whose results nobody waits for, the gradients of weights, the updates that they make,
 * the norms that are taken again for them and telemetry: a device may run them beside the
 * others. */
bool fth_is_deferrable(const fth_op *op);
/* By how many operations it may end late: lag, or several times as much for updates, which are
 * large and come seldom; 0 where it is not deferrable. */
enum { FTH_UPDATE_LAGS = 4 };
int32_t fth_late_by(const fth_op *op, int32_t lag);

/* The product, linear or linear_dx, whose result operation j, join_norm or its backward, reads
 * before anybody else does: a device may make both at once, in the place of j. -1: there is
 * none. */
int32_t fth_joined_product(const fth_graph *g, int32_t j);

/* What is made again beside the outputs of layer norms, from the lowest on. */
typedef struct fth_recompute_counts {
    int32_t attention; /* outputs of so many attentions */
    int32_t products;  /* and of so many products */
} fth_recompute_counts;

/* Rewrites a training graph so that values are made again for the backward instead of being kept
 * (recompute_values.c). The values that come out are the same to the bit. */
fth_err fth_graph_recompute_values(fth_graph *g, fth_recompute_counts also);

/* How many attentions and products the forward of a graph has. */
fth_recompute_counts fth_graph_recomputable(const fth_graph *g);

/* Bytes of one value at capacity. */
int64_t fth_value_bytes(const fth_graph *g, const fth_plan_spec *spec, fth_val v);

fth_err fth_plan_make(const fth_graph *g, const fth_plan_spec *spec, fth_plan *out);
void fth_plan_fini(fth_plan *p);

/* Rewrites the operations of a training graph so that its plan takes at most `budget` bytes, with
 * the least recomputed work: norms first, then attention, products, whole layers. The values
 * that come out are the same to the last bit. FTH_NO_MEMORY names the smallest figure that is
 * possible; *layers gets how many layers are recomputed as a whole. */
fth_err fth_plan_within(fth_graph *g, const fth_plan_spec *spec, int64_t budget, fth_plan *out,
                        int32_t *layers);

#endif
