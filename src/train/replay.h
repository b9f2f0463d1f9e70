/* replay.h: how long an update would take on ranks that are not here: the schedule of sum.h and
 * pipeline.h played through with measured times and the rates of links. Nothing is computed and
 * nothing sent. */
#ifndef FTH_TRAIN_REPLAY_H
#define FTH_TRAIN_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* The machines. Bytes a second of one direction. */
typedef struct fth_topology {
    int ranks, ranks_per_host, stages;
    double link;    /* out of a rank, to others of its host */
    double net;     /* of a host to the others, its ranks share it */
    double latency; /* seconds until the first byte of a message comes */
} fth_topology;

/* What is computed and sent. */
typedef struct fth_workload {
    double batch;       /* seconds of the forward and backward of a batch, on one rank */
    double update;      /* and of the rest of an update */
    const double *cost; /* [stages] share of `batch` */
    const int64_t *hop; /* [stages - 1] bytes of a batch over each border, in each direction */
    int batches;        /* of an update */
    int64_t parameters;
    bool own_first; /* --reduce fast */
} fth_workload;

typedef struct fth_replay {
    double seconds;  /* of an update */
    double computed; /* share of it in which a rank computes, the mean of all */
    double exchange; /* share that exchanges of gradients and weights take */
    double sent;     /* bytes of a rank, the most */
} fth_replay;

/* Of forward and backward, the forward's share: one product of three. */
#define FTH_FORWARD_SHARE (1.0 / 3)

fth_err fth_replay_update(const fth_topology *t, const fth_workload *w, fth_replay *out);

#endif
