/* inline_update.h: matrices that are updated inside of the backward. As soon as a gradient is
 * complete and nobody reads the matrix any more, Adam takes it, and its place serves the next one:
 * gradients of these matrices need no arena, and they are read while a cache still holds them.
 * Possible where an update is one batch and nothing waits for the norm of the whole gradient (no
 * clipping). */
#ifndef FTH_GRAPH_INLINE_UPDATE_H
#define FTH_GRAPH_INLINE_UPDATE_H

#include "graph/param.h"

typedef struct fth_inline_range {
    int64_t begin, end; /* elements of the parameters */
    int32_t param;      /* whose learning rate it has */
    int64_t saved;      /* elements that gradients behind it need not leave room for */
} fth_inline_range;

typedef struct fth_inline_updates {
    fth_inline_range *range; /* [n] ascending */
    int32_t n;
    int64_t grads; /* elements that the gradients of all others take */
} fth_inline_updates;

typedef struct fth_inline_spec {
    const fth_params *params;
    fth_val loss; /* of xent */
    /* Do two parameters always have the same learning rate? */
    bool (*same_rate)(const void *context, const fth_param *a, const fth_param *b);
    const void *context;
    bool watched;     /* see fth_op.u.update */
    int64_t together; /* elements: so many are updated one right after the other (backend.h) */
} fth_inline_spec;

/* Adds the updates to a training graph and moves the gradients of the other parameters together.
 * *sums gets the value that holds what the updates sum up, [1, n * FTH_RANGE_SUMS] in the order of
 * the ranges. */
fth_err fth_graph_update_inline(fth_graph *g, const fth_inline_spec *spec, fth_inline_updates *out,
                                fth_val *sums);
void fth_inline_updates_fini(fth_inline_updates *e);

/* Where the gradient of a parameter's element lies among the gradients; -1: the backward itself
 * updates it. */
int64_t fth_inline_updates_grad(const fth_inline_updates *e, int64_t offset);

#endif
