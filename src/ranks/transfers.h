/* transfers.h: the inside of fth_ranks, for the files of this folder. */
#ifndef FTH_RANKS_TRANSFERS_H
#define FTH_RANKS_TRANSFERS_H

#include "ranks/ranks.h"
#include "ranks/lost_rank.h"
#include "ranks/wire.h"

struct fth_ranks {
    fth_wire *wire;
    int rank, count;
    fth_rank_card *cards; /* [count] */
    fth_lost_rank *watch;
    double waited; /* seconds */
    bool agreed;   /* on an error: all ranks end with it */
};

/* Until all of n transfers are over. */
fth_err fth_ranks_wait(fth_ranks *r, fth_transfer *t, int n);

#endif
