/* prefetch.h: a thread that makes batches ahead of those who use them.
 *
 * It takes a batcher over: until the prefetcher is freed nobody else may use that batcher. The
 * batches come in the batcher's own order, so a run does not depend on how fast they are used. */
#ifndef FTH_DATA_PREFETCH_H
#define FTH_DATA_PREFETCH_H

#include "base/error.h"
#include "data/batcher.h"

typedef struct fth_prefetch fth_prefetch;

/* Takes what it needs of a batch into slot k of the user's, on the thread that makes batches. */
typedef fth_err fth_prefetch_fill(void *context, int k, const fth_packed *packed);

/* What a prefetcher is told. */
typedef struct fth_prefetch_spec {
    int32_t max_tokens; /* the batcher's */
    int ahead;          /* batches that are kept ready, >= 1 */
    int held;           /* newest batches that the user still works with, >= 1 */
    fth_prefetch_fill *fill;
    void *context;
    int64_t group;          /* batches that belong together; 0: each stands alone */
    fth_batch_count *count; /* of groups: what of a batch is added up before its group begins */
} fth_prefetch_spec;

/* Slots 0 .. ahead + held - 1 are filled in turn. */
fth_err fth_prefetch_new(fth_batcher *b, const fth_prefetch_spec *spec, fth_prefetch **out);
void fth_prefetch_free(fth_prefetch *p);

/* Where the next batch is. */
typedef struct fth_prefetched {
    int slot;
    int32_t n_sent;    /* 0: the end of a pass in order, from then on always */
    fth_position next; /* of the batch after it */
    int64_t counted;   /* over all batches of its group */
} fth_prefetched;

/* An error of the batcher or of `fill` comes when its batch would have come. */
fth_err fth_prefetch_next(fth_prefetch *p, fth_prefetched *out);

/* Seconds spent waiting in fth_prefetch_next so far. */
double fth_prefetch_waited(const fth_prefetch *p);

#endif
