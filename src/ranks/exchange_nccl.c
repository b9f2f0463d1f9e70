/* exchange_nccl.c: exchange.h by NCCL, between GPUs, on the stream of the device: nothing here
 * waits. Parts of an arena go all-to-all by send and receive, and a kernel adds them in the order
 * of the ranks. */
#include <stdio.h>
#include <stdlib.h>

#include "backend/stream.h"
#include "ranks/exchange.h"
#include "ranks/nccl.h"

/* Elements of the chunks of all ranks together: 64 MB. */
enum { CHUNKS = 1 << 24, LEAST_CHUNK = 1 << 14 };

typedef struct nccl_exchange {
    fth_exchange base;
    fth_nccl nccl;
    void *comm, *stream;
    int rank, count;
    int64_t chunk;
    float *come; /* [count, chunk] */
} nccl_exchange;

static fth_err failed(const nccl_exchange *x, int code, const char *what) {
    return fth_fail(FTH_FAILED, "NCCL: %s: %s", what, x->nccl.error_string(code));
}

#define NCCL_TRY(call, what)                                                                       \
    do {                                                                                           \
        const int nccl_code_ = (call);                                                             \
        if (nccl_code_) return failed(x, nccl_code_, what);                                        \
    } while (0)

/* An error of a connection that no call has returned. */
static fth_err check_connection(const nccl_exchange *x) {
    int code = 0;
    NCCL_TRY(x->nccl.async_error(x->comm, &code), "asking for errors");
    return code ? failed(x, code, "the connection between the ranks") : FTH_OK;
}

/* Chunk k of a rank's slice; empty at its end and after. */
static fth_slice chunk_of(const nccl_exchange *x, int rank, int64_t k) {
    fth_slice s = fth_slice_of(x->base.n, rank, x->count);
    s.begin += k * x->chunk;
    if (s.begin > s.end) s.begin = s.end;
    if (s.end - s.begin > x->chunk) s.end = s.begin + x->chunk;
    return s;
}

static int64_t chunks_of(const nccl_exchange *x) {
    int64_t longest = 0;
    for (int r = 0; r < x->count; r++) {
        const fth_slice s = fth_slice_of(x->base.n, r, x->count);
        if (s.end - s.begin > longest) longest = s.end - s.begin;
    }
    return (longest + x->chunk - 1) / x->chunk;
}

/* Chunk k of all slices to their ranks. */
static fth_err trade(nccl_exchange *x, const float *grad, int addends, int64_t k) {
    const fth_slice mine = chunk_of(x, x->rank, k);
    NCCL_TRY(x->nccl.group_start(), "beginning an exchange");
    for (int r = 0; r < x->count; r++) {
        const fth_slice theirs = chunk_of(x, r, k);
        if (x->rank < addends && r != x->rank)
            x->base.sent += (theirs.end - theirs.begin) * (int64_t)sizeof *grad;
        if (x->rank < addends && theirs.end > theirs.begin)
            NCCL_TRY(x->nccl.send(grad + theirs.begin, (size_t)(theirs.end - theirs.begin),
                                  FTH_NCCL_FLOAT, r, x->comm, x->stream),
                     "sending");
        if (r < addends && mine.end > mine.begin)
            NCCL_TRY(x->nccl.recv(x->come + r * x->chunk, (size_t)(mine.end - mine.begin),
                                  FTH_NCCL_FLOAT, r, x->comm, x->stream),
                     "receiving");
    }
    NCCL_TRY(x->nccl.group_end(), "exchanging");
    return check_connection(x);
}

static fth_err reduce(fth_exchange *base, const void *grad, int addends, bool fresh, void *sum) {
    nccl_exchange *x = (nccl_exchange *)base;
    const int64_t begin = chunk_of(x, x->rank, 0).begin;
    const fth_addends from = {.data = x->come, .stride = x->chunk, .many = addends, .fresh = fresh};
    for (int64_t k = 0; k < chunks_of(x); k++) {
        FTH_TRY(trade(x, grad, addends, k));
        const fth_slice mine = chunk_of(x, x->rank, k);
        FTH_TRY(base->device->backend->add_up(base->device, (float *)sum + (mine.begin - begin),
                                              &from, mine.end - mine.begin));
    }
    return FTH_OK;
}

static fth_err gather(fth_exchange *base, void *arena) {
    nccl_exchange *x = (nccl_exchange *)base;
    const fth_slice mine = fth_slice_of(base->n, x->rank, x->count);
    NCCL_TRY(x->nccl.group_start(), "beginning an exchange");
    for (int r = 0; r < x->count; r++) {
        const fth_slice theirs = fth_slice_of(base->n, r, x->count);
        if (r == x->rank) continue;
        base->sent += (mine.end - mine.begin) * (int64_t)sizeof(float);
        if (mine.end > mine.begin)
            NCCL_TRY(x->nccl.send((float *)arena + mine.begin, (size_t)(mine.end - mine.begin),
                                  FTH_NCCL_FLOAT, r, x->comm, x->stream),
                     "sending");
        if (theirs.end > theirs.begin)
            NCCL_TRY(x->nccl.recv((float *)arena + theirs.begin,
                                  (size_t)(theirs.end - theirs.begin), FTH_NCCL_FLOAT, r, x->comm,
                                  x->stream),
                     "receiving");
    }
    NCCL_TRY(x->nccl.group_end(), "exchanging");
    return check_connection(x);
}

static void free_nccl(fth_exchange *base) {
    nccl_exchange *x = (nccl_exchange *)base;
    if (x->come) base->device->backend->release(base->device, x->come);
    if (x->comm) x->nccl.comm_abort(x->comm);
    free(x);
}

/* ---- making ---- */

static fth_err connect(nccl_exchange *x) {
    fth_nccl_id id = {{0}};
    if (x->rank == 0) NCCL_TRY(x->nccl.get_unique_id(&id), "beginning");
    FTH_TRY(fth_ranks_broadcast(x->base.ranks, &id, sizeof id));
    NCCL_TRY(x->nccl.comm_init_rank(&x->comm, x->count, id, x->rank), "connecting the ranks");
    return FTH_OK;
}

static fth_err make_room(nccl_exchange *x) {
    int64_t slice = 0;
    for (int r = 0; r < x->count; r++) {
        const fth_slice s = fth_slice_of(x->base.n, r, x->count);
        if (s.end - s.begin > slice) slice = s.end - s.begin;
    }
    x->chunk = CHUNKS / x->count < LEAST_CHUNK ? LEAST_CHUNK : CHUNKS / x->count;
    if (x->chunk > slice) x->chunk = slice;
    x->chunk = (x->chunk + FTH_PIECE_ALIGNMENT - 1) / FTH_PIECE_ALIGNMENT * FTH_PIECE_ALIGNMENT;
    x->base.bytes = x->count * x->chunk * (int64_t)sizeof(float);
    void *come = NULL;
    FTH_TRY(x->base.device->backend->alloc(x->base.device, x->base.bytes, &come));
    x->come = come;
    return FTH_OK;
}

/* ---- a trial ---- */

enum { TRIAL = 64 }; /* numbers that a rank sends to each other and to itself */

/* What rank `from` sends to rank `to`. */
static float trial_number(int from, int to, int i) {
    return (float)(1 + from * 10007 + to * 101 + i);
}

/* Sends the trial's numbers and says whether the right ones have come. */
static fth_err trade_trial(nccl_exchange *x, float *device, float *host, bool *right) {
    fth_device *dev = x->base.device;
    const int64_t bytes = TRIAL * (int64_t)sizeof *host;
    for (int i = 0; i < x->count * TRIAL; i++)
        host[i] = trial_number(x->rank, i / TRIAL, i % TRIAL);
    FTH_TRY(dev->backend->upload(dev, device, host, bytes * x->count));
    NCCL_TRY(x->nccl.group_start(), "beginning a trial");
    for (int r = 0; r < x->count; r++) {
        NCCL_TRY(x->nccl.send(device + r * TRIAL, TRIAL, FTH_NCCL_FLOAT, r, x->comm, x->stream),
                 "sending a trial");
        NCCL_TRY(x->nccl.recv(x->come + r * TRIAL, TRIAL, FTH_NCCL_FLOAT, r, x->comm, x->stream),
                 "receiving a trial");
    }
    NCCL_TRY(x->nccl.group_end(), "exchanging a trial");
    FTH_TRY(dev->backend->download(dev, host, x->come, bytes * x->count));
    *right = true;
    for (int i = 0; i < x->count * TRIAL; i++)
        *right &= host[i] == trial_number(i / TRIAL, x->rank, i % TRIAL);
    return FTH_OK;
}

static fth_err try_out(nccl_exchange *x, bool *right) {
    fth_device *dev = x->base.device;
    void *device = NULL;
    const size_t n = (size_t)x->count * TRIAL;
    float *host = malloc(sizeof *host * n);
    fth_err err = host ? dev->backend->alloc(dev, (int64_t)(sizeof *host * n), &device)
                       : fth_fail(FTH_NO_MEMORY, "no memory for an exchange");
    if (err == FTH_OK) err = trade_trial(x, device, host, right);
    if (device) dev->backend->release(dev, device);
    free(host);
    return err;
}

/* Do all ranks say yes? */
static fth_err all_say(const nccl_exchange *x, bool mine, bool *result) {
    char said = mine, *all = calloc((size_t)x->count, 1);
    if (!all) return fth_fail(FTH_NO_MEMORY, "no memory for an exchange");
    fth_err err = fth_ranks_gather(x->base.ranks, &said, 1, all);
    *result = err == FTH_OK;
    for (int r = 0; r < x->count; r++) *result &= all[r];
    free(all);
    return err;
}

/* A library that was built without a function reports no error when it is called, and brings
 * nothing: gradients would be zero. So a few numbers go first, and all look at what has come. */
static fth_err brings(nccl_exchange *x, bool *result) {
    bool right = false;
    FTH_TRY(fth_ranks_agree(x->base.ranks, try_out(x, &right)));
    return all_say(x, right, result);
}

static void explain(const nccl_exchange *x, bool opened, char why[FTH_EXCHANGE_NOTE]) {
    int version = 0;
    if (!opened) {
        snprintf(why, FTH_EXCHANGE_NOTE,
                 "GPUs exchange through the host, which is slow: a rank has no NCCL "
                 "(libnccl.so.2, or what FATHOM_NCCL names)");
    } else {
        (void)x->nccl.get_version(&version);
        snprintf(why, FTH_EXCHANGE_NOTE,
                 "GPUs exchange through the host, which is slow: NCCL %d brings other numbers than "
                 "were sent",
                 version);
    }
}

fth_err fth_exchange_nccl(fth_ranks *ranks, fth_device *dev, int64_t n, char why[FTH_EXCHANGE_NOTE],
                          fth_exchange **out) {
    bool there = false;
    *out = NULL;
    nccl_exchange *x = calloc(1, sizeof *x);
    if (!x) return fth_fail(FTH_NO_MEMORY, "no memory for an exchange");
    x->base = (fth_exchange){.name = "nccl",
                             .ranks = ranks,
                             .device = dev,
                             .n = n,
                             .reduce = reduce,
                             .gather = gather,
                             .free = free_nccl};
    x->rank = fth_rank(ranks);
    x->count = fth_rank_count(ranks);
    x->stream = fth_gpu_stream(dev);
    fth_err err = all_say(x, fth_nccl_open(&x->nccl) == FTH_OK, &there);
    const bool opened = there;
    if (err == FTH_OK && there) err = fth_ranks_agree(ranks, connect(x));
    if (err == FTH_OK && there) err = make_room(x);
    if (err == FTH_OK && there) err = brings(x, &there);
    if (err != FTH_OK || !there) {
        if (err == FTH_OK) explain(x, opened, why);
        free_nccl(&x->base);
        return err;
    }
    *out = &x->base;
    return FTH_OK;
}
