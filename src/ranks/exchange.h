/* exchange.h: what the ranks of a training exchange of their arenas: one table of functions, whose
 * makers are MPI (through the host's memory) and NCCL (between GPUs). Nothing else knows which one
 * it is.
 *
 * Rank r owns the slice fth_slice_of(n, r, count). Sums are made in the order of the ranks, so that
 * they do not depend on who computes them. */
#ifndef FTH_RANKS_EXCHANGE_H
#define FTH_RANKS_EXCHANGE_H

#include "backend/backend.h"
#include "ranks/ranks.h"
#include "ranks/slice.h"

enum { FTH_EXCHANGE_NOTE = 160 };

typedef struct fth_exchange fth_exchange;
struct fth_exchange {
    const char *name;
    char note[FTH_EXCHANGE_NOTE]; /* why it is not the fastest one; empty: it is */
    fth_ranks *ranks;
    fth_device *device;
    int64_t n; /* elements of an arena */
    /* Adds the arenas `grad` [n] of the first `addends` ranks, in their order, to `sum` [own
     * slice]; fresh: the sum begins with the first of them. Every rank calls it, those without an
     * addend too. */
    fth_err (*reduce)(fth_exchange *x, const void *grad, int addends, bool fresh, void *sum);
    /* Every rank's slice of an arena [n] comes to all. */
    fth_err (*gather)(fth_exchange *x, void *arena);
    int64_t bytes; /* on the device */
    int64_t sent;  /* bytes so far, but for those that went by MPI (fth_ranks_sent) */
    void (*free)(fth_exchange *x);
};

/* The best one that there is for arenas of n elements of class full on a device. */
fth_err fth_exchange_new(fth_ranks *ranks, fth_device *dev, int64_t n, fth_exchange **out);
fth_err fth_exchange_mpi(fth_ranks *ranks, fth_device *dev, int64_t n, fth_exchange **out);
/* *out is NULL where not all ranks have NCCL, or it does not work: why says so. */
fth_err fth_exchange_nccl(fth_ranks *ranks, fth_device *dev, int64_t n, char why[FTH_EXCHANGE_NOTE],
                          fth_exchange **out);
void fth_exchange_free(fth_exchange *x);

#endif
