/* run_ranks.h: what the ranks of a run tell each other beside gradients and weights. */
#ifndef FTH_RUN_RUN_RANKS_H
#define FTH_RUN_RUN_RANKS_H

#include "base/json.h"
#include "ranks/ranks.h"
#include "run/run.h"

/* Fails where ranks have other programs, options (but for those of the machine) or data. */
fth_err fth_ranks_same_run(const fth_run_spec *spec, uint64_t data_hash);

/* Number and hosts of the ranks, and the stages of their pipeline. */
void fth_ranks_log_start(json_t *line, const fth_ranks *ranks, int64_t pipeline);

/* Shares of `seconds` of training that ranks have waited for others; this one did for `waited`. The
 * mean of all, and the rank that the others wait for: -1, or the text says so. */
typedef struct fth_rank_waits {
    double mean;
    int slow;
    char text[160];
} fth_rank_waits;
fth_err fth_ranks_waits(fth_ranks *ranks, double waited, double seconds, fth_rank_waits *out);

/* A signal that any rank got is that of all; whether it is late, rank 0 says. */
fth_err fth_ranks_stop(fth_ranks *ranks, int *signal, bool *late);

#endif
