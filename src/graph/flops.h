/* flops.h: floating-point operations of a graph, for the figures of bench. */
#ifndef FTH_GRAPH_FLOPS_H
#define FTH_GRAPH_FLOPS_H

#include "graph/batch.h"
#include "graph/graph.h"

/* Multiplications and additions of all products and attentions over one batch. What is recomputed
 * to save memory is not counted: it is no useful work. */
double fth_graph_flops(const fth_graph *g, const fth_batch *batch);

/* Those of one operation, by the rows of a batch. */
double fth_op_flops(const fth_graph *g, const fth_op *op, const int64_t rows[FTH_N_EXTENTS]);

#endif
