/* prefetch.h: a thread that makes batches ahead of those who use them.
 *
 * It takes a batcher over: until the prefetcher is freed nobody else may use that batcher. The
 * batches come in the batcher's own order, so a run does not depend on how fast they are used. */
#ifndef FTH_DATA_PREFETCH_H
#define FTH_DATA_PREFETCH_H

#include "base/error.h"
#include "data/batcher.h"

typedef struct fth_prefetch fth_prefetch;

/* depth batches are kept ready, >= 1; max_tokens is the batcher's. */
fth_err fth_prefetch_new(fth_batcher *b, int32_t max_tokens, int depth, fth_prefetch **out);
void fth_prefetch_free(fth_prefetch *p);

/* The next batch, valid until the next call; n_sent = 0 at the end of a pass in order, from then on
 * always. An error of the batcher comes when its batch would have come. */
fth_err fth_prefetch_next(fth_prefetch *p, const fth_packed **batch);

/* Seconds spent waiting in fth_prefetch_next so far. */
double fth_prefetch_waited(const fth_prefetch *p);

#endif
