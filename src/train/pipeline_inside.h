/* pipeline_inside.h: what the files of the pipeline share. */
#ifndef FTH_TRAIN_PIPELINE_INSIDE_H
#define FTH_TRAIN_PIPELINE_INSIDE_H

#include "graph/stages.h"
#include "ranks/post.h"
#include "train/pipeline.h"

/* A micro-batch on its way through the stage, between its forward and its backward. */
typedef struct lane {
    fth_program *program;
    void **come;          /* [n_crossings] what other stages have made; NULL: nothing comes */
    fth_transfer *letter; /* [n_crossings] what goes to other stages */
} lane;

struct fth_pipeline {
    fth_device *device;
    fth_ranks *ranks;
    fth_stages stages;
    int groups, group, stage;
    int64_t capacity[FTH_N_EXTENTS];
    int32_t forward; /* operations of it, which come first */
    lane *lane;      /* [n_lanes] */
    int n_lanes;
    fth_transfer *handed; /* [n_handovers] */
    void *sum;            /* [n] of the newest update: this rank's share of its stage's gradients */
    void *others;         /* [longest share of a run] another group's addend */
    fth_transfer *letter; /* [n_runs, ranks] */
    int64_t (*base)[FTH_ROW_EXTENTS]; /* [batches] rows of earlier micro-batches */
    int64_t bytes;                    /* on the device, beside the first lane's program */
};

static inline int fth_stage_rank(const fth_pipeline *p, int group, int stage) {
    return group * p->stages.n + stage;
}

static inline size_t fth_grad_size(const fth_pipeline *p) {
    return fth_dtype_size(p->device->full);
}

/* Zeroes the gradients that this stage adds to. */
fth_err fth_pipeline_zero(fth_pipeline *p, char *grad);

/* The gradients of a round, one batch of each of the first `addends` groups, go to the shares of
 * the groups. fresh: it is the first round. */
fth_err fth_pipeline_add(fth_pipeline *p, const char *grad, int addends, bool fresh);

/* What the ranks have summed up goes to the ranks that update it: sum [own slice of n]. */
fth_err fth_pipeline_deal(fth_pipeline *p, int64_t n, char *sum);

#endif
