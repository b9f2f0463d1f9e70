/* post.h: numbers from one rank to another. What is sent leaves while the sender goes on; it stays
 * where it is until fth_post_settle. Two ranks' letters arrive in the order in which they were
 * sent. */
#ifndef FTH_RANKS_POST_H
#define FTH_RANKS_POST_H

#include "ranks/ranks.h"
#include "ranks/wire.h"

/* size: bytes of an element, n of them; letter: zeroed, or one that has been settled. */
fth_err fth_post_send(fth_ranks *r, int to, const void *data, int64_t n, size_t size,
                      fth_transfer *letter);
/* Waits until n letters have left. */
fth_err fth_post_settle(fth_ranks *r, fth_transfer *letter, int n);
/* Waits for what another rank sends. */
fth_err fth_post_receive(fth_ranks *r, int from, void *data, int64_t n, size_t size);

#endif
