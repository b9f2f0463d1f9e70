/* ranks.h: the processes that train one model together, started by mpirun, srun or the like. A rank
 * is one of them. NULL stands for a process that is alone: every function takes it.
 *
 * All calls but fth_ranks_doing are made by every rank in the same order. A rank that is lost ends
 * the process in the middle of them, with a message (watch.h). */
#ifndef FTH_RANKS_RANKS_H
#define FTH_RANKS_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct fth_ranks fth_ranks;

/* Joins the others. timeout: seconds after which a rank that is silent is lost. *out is NULL for a
 * process that is alone. */
fth_err fth_ranks_open(double timeout, fth_ranks **out);
/* err: how this rank ends. When it is an error that the others cannot know of, they are told of it
 * and end too. */
void fth_ranks_close(fth_ranks *r, fth_err err);

int fth_rank(const fth_ranks *r);       /* 0 when alone */
int fth_rank_count(const fth_ranks *r); /* 1 when alone */
/* The host of a rank, of this process when it is alone. */
const char *fth_rank_host(const fth_ranks *r, int rank);

/* What this rank does from now on, for messages: copied. `update` is the one at hand, 0: none
 * yet. */
void fth_ranks_doing(fth_ranks *r, int64_t update, const char *what);

/* Ends a stretch in which ranks may fail one by one: the error of the lowest rank that failed
 * becomes that of all. */
fth_err fth_ranks_agree(fth_ranks *r, fth_err err);
/* Fails when the text is not the same on all ranks. what: what it is, for the message. */
fth_err fth_ranks_same(fth_ranks *r, const char *what, const char *text);

/* Bytes of every rank, [count, bytes], come to all. */
fth_err fth_ranks_gather(fth_ranks *r, const void *mine, size_t bytes, void *all);
/* Sums of n numbers over all ranks, in their order. */
fth_err fth_ranks_add(fth_ranks *r, double *numbers, int64_t n);
/* Bytes of rank 0 come to all. */
fth_err fth_ranks_broadcast(fth_ranks *r, void *data, size_t bytes);
/* Each rank's slice of n floats comes to rank 0, into the whole array; others keep only theirs. */
fth_err fth_ranks_collect(fth_ranks *r, float *whole, int64_t n);

/* Seconds that this rank has waited for others so far, and the bytes that it has sent by MPI. */
double fth_ranks_waited(const fth_ranks *r);
int64_t fth_ranks_sent(const fth_ranks *r);

#endif
