/* gauge.h: operations that look at values while a program runs (doc/telemetry.md). Each writes two
 * sums into two columns of a board, a small value that the host reads after the run; nothing else
 * reads them, so a graph with them computes what it computes without them, to the bit.
 *
 * The sums of several micro-batches can be added up (norms: as squares) before a mean is taken. */
#ifndef FTH_GRAPH_GAUGE_H
#define FTH_GRAPH_GAUGE_H

#include "graph/graph.h"

/* Where an operation belongs and where its sums go. */
typedef struct fth_gauge_at {
    fth_stack stack;
    fth_sub sub;
    int32_t layer; /* -1: outside of layers */
    bool backward; /* stands among the backward operations */
    fth_val board;
    int32_t column; /* of the board: this and the next one */
} fth_gauge_at;

/* A board of so many columns, [1, columns] full, kept from run to run. */
fth_val fth_gauge_board(fth_graph *g, int32_t columns);

void fth_gauge_norm(fth_graph *g, const fth_gauge_at *at, fth_val x);
void fth_gauge_nonzero(fth_graph *g, const fth_gauge_at *at, fth_val x);
void fth_gauge_cosine(fth_graph *g, const fth_gauge_at *at, fth_val x, fth_val f);
/* The branch against the residual of the sum that makes y, coefficients included and dropout left
 * out; with 1 for both where y is no such sum of x and f. */
void fth_gauge_ratio(fth_graph *g, const fth_gauge_at *at, fth_val x, fth_val f, fth_val y);
/* Mean cosine between the rows of each sentence of the side. */
void fth_gauge_positions(fth_graph *g, const fth_gauge_at *at, fth_val x, fth_side side);
/* Entropy of the attention that made `lse`. */
void fth_gauge_entropy(fth_graph *g, const fth_gauge_at *at, fth_val lse);

/* Lets none of these operations run beside the others (plan.h), where what they read would have to
 * stay a little longer than it does without them. */
void fth_gauge_in_line(fth_graph *g);

#endif
