/* stages.h: a training graph cut at layer borders into stages, each of which another rank runs.
 * A stage has the operations of its layers, forward and backward; what crosses a border is found by
 * looking who makes a value and who reads it, so it holds for every method. */
#ifndef FTH_GRAPH_STAGES_H
#define FTH_GRAPH_STAGES_H

#include "graph/graph.h"

/* A value that one stage makes and another reads. */
typedef struct fth_crossing {
    fth_val value;    /* owns its storage */
    int32_t from, to; /* stages */
    bool backward;    /* made in the backward */
} fth_crossing;

/* Gradients of parameters to which a stage adds last: those of lower stages and its own. */
typedef struct fth_stage_run {
    int64_t begin, end; /* elements of the flat arena */
    int32_t stage;
} fth_stage_run;

/* Gradients to which two stages add, the upper one first; they go on to the lower one. */
typedef struct fth_handover {
    int64_t begin, end;
    int32_t from, to;
} fth_handover;

typedef struct fth_stages {
    int32_t n;
    int32_t *first; /* [n + 1] first layer of each, those of the encoder counted first; last: all */
    double *cost;   /* [n] share of the work, sums to 1 */
    int32_t *of;    /* [n_ops] stage of every operation */
    fth_crossing *crossing; /* [n_crossings] in the order in which they are made */
    fth_handover *handover; /* [n_handovers] */
    fth_stage_run *run;     /* [n_runs] ascending */
    int32_t n_crossings, n_handovers, n_runs;
} fth_stages;

/* Cuts a graph into n stages whose largest share of the work is as small as can be; rows: of a
 * batch, by extent. layers: of the encoder and of the decoder. */
fth_err fth_stages_find(const fth_graph *g, const int32_t layers[2],
                        const int64_t rows[FTH_N_EXTENTS], int32_t n, fth_stages *out);
void fth_stages_fini(fth_stages *s);

/* Leaves a graph the operations of one stage. What comes from others becomes a state, what others
 * read is kept. Returns the number of forward operations, which come first. */
int32_t fth_stages_keep(const fth_stages *s, int32_t stage, fth_graph *g);

#endif
