/* post.c: letters go over the channel of the training. */
#include "ranks/post.h"

#include "ranks/transfers.h"

fth_err fth_post_send(fth_ranks *r, int to, const void *data, int64_t n, size_t size,
                      fth_transfer *letter) {
    return n > 0 ? fth_wire_send(r->wire, to, data, n, size, letter) : FTH_OK;
}

fth_err fth_post_settle(fth_ranks *r, fth_transfer *letter, int n) {
    return fth_ranks_wait(r, letter, n);
}

fth_err fth_post_receive(fth_ranks *r, int from, void *data, int64_t n, size_t size) {
    fth_transfer t = {0};
    if (n == 0) return FTH_OK;
    FTH_TRY(fth_wire_receive(r->wire, from, data, n, size, &t));
    return fth_ranks_wait(r, &t, 1);
}
