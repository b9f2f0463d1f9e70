/* exchange_mpi.c: exchange.h by MPI, through the host's memory. An arena goes in chunks: while
 * those that have come are added up, the next ones are under way. Each rank sends and receives
 * (count - 1) / count of an arena. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/exchange.h"
#include "ranks/transfers.h"

/* Elements of the chunks of all ranks together: 16 MB of floats, in each of two slots. */
enum { CHUNKS = 1 << 22, LEAST_CHUNK = 1 << 12 };

typedef struct slot {
    void *come;             /* [count, chunk] on the device */
    char *staged;           /* the same on the host; NULL: the device's memory is the host's */
    char *going;            /* [count, chunk] what others get, likewise */
    fth_transfer *transfer; /* [2 count] */
} slot;

typedef struct mpi_exchange {
    fth_exchange base;
    int64_t chunk;
    size_t size; /* bytes of an element */
    slot slot[2];
    char *whole; /* [n] on the host, for devices with memory of their own; made when it is needed */
} mpi_exchange;

static fth_slice slice_of(const mpi_exchange *x, int rank) {
    return fth_slice_of(x->base.n, rank, x->base.ranks->count);
}

/* Chunk k of a slice; empty at its end and after. */
static fth_slice chunk_of(const mpi_exchange *x, int rank, int64_t k) {
    fth_slice s = slice_of(x, rank);
    s.begin += k * x->chunk;
    if (s.begin > s.end) s.begin = s.end;
    if (s.end - s.begin > x->chunk) s.end = s.begin + x->chunk;
    return s;
}

/* ---- sums ---- */

/* What a rank gets of this one's arena. */
static fth_err send_chunk(mpi_exchange *x, slot *s, const char *grad, int to, fth_slice c) {
    const fth_device *dev = x->base.device;
    const void *data = grad + (size_t)c.begin * x->size;
    if (s->going) {
        char *host = s->going + (size_t)to * (size_t)x->chunk * x->size;
        FTH_TRY(dev->backend->download(x->base.device, host, data,
                                       (c.end - c.begin) * (int64_t)x->size));
        data = host;
    }
    return fth_wire_send(x->base.ranks->wire, to, data, c.end - c.begin, x->size, &s->transfer[to]);
}

/* Chunk k of all slices goes on its way: this rank's to the others, the others' to this rank. */
static fth_err start_chunk(mpi_exchange *x, const char *grad, int addends, int64_t k) {
    const fth_ranks *ranks = x->base.ranks;
    slot *s = &x->slot[k % 2];
    const fth_slice mine = chunk_of(x, ranks->rank, k);
    char *come = s->staged ? s->staged : s->come;
    for (int r = 0; r < addends && mine.end > mine.begin; r++)
        if (r != ranks->rank)
            FTH_TRY(fth_wire_receive(ranks->wire, r, come + (size_t)r * (size_t)x->chunk * x->size,
                                     mine.end - mine.begin, x->size,
                                     &s->transfer[ranks->count + r]));
    for (int i = 1; i < ranks->count && ranks->rank < addends; i++) {
        const int to = (ranks->rank + i) % ranks->count;
        const fth_slice theirs = chunk_of(x, to, k);
        if (theirs.end > theirs.begin) FTH_TRY(send_chunk(x, s, grad, to, theirs));
    }
    return FTH_OK;
}

/* What has come, and this rank's own, to the device. */
static fth_err land(mpi_exchange *x, slot *s, const char *grad, int addends, fth_slice c) {
    fth_device *dev = x->base.device;
    const int64_t bytes = (c.end - c.begin) * (int64_t)x->size;
    for (int r = 0; r < addends; r++) {
        const size_t at = (size_t)r * (size_t)x->chunk * x->size;
        const bool own = r == x->base.ranks->rank;
        if (own && !s->staged)
            memcpy((char *)s->come + at, grad + (size_t)c.begin * x->size, bytes);
        if (!s->staged) continue;
        if (own)
            FTH_TRY(dev->backend->add_up(
                dev, (char *)s->come + at,
                &(fth_addends){.data = grad + (size_t)c.begin * x->size, .many = 1, .fresh = true},
                c.end - c.begin));
        else
            FTH_TRY(dev->backend->upload(dev, (char *)s->come + at, s->staged + at, bytes));
    }
    return FTH_OK;
}

static fth_err finish_chunk(mpi_exchange *x, const char *grad, int addends, bool fresh, int64_t k,
                            char *sum) {
    fth_ranks *ranks = x->base.ranks;
    slot *s = &x->slot[k % 2];
    FTH_TRY(fth_ranks_wait(ranks, s->transfer, 2 * ranks->count));
    const fth_slice c = chunk_of(x, ranks->rank, k);
    if (c.end == c.begin) return FTH_OK;
    FTH_TRY(land(x, s, grad, addends, c));
    const fth_addends from = {.data = s->come, .stride = x->chunk, .many = addends, .fresh = fresh};
    return x->base.device->backend->add_up(
        x->base.device, sum + (size_t)(c.begin - slice_of(x, ranks->rank).begin) * x->size, &from,
        c.end - c.begin);
}

static fth_err reduce(fth_exchange *base, const void *grad, int addends, bool fresh, void *sum) {
    mpi_exchange *x = (mpi_exchange *)base;
    int64_t longest = 0;
    for (int r = 0; r < base->ranks->count; r++) {
        const fth_slice s = slice_of(x, r);
        if (s.end - s.begin > longest) longest = s.end - s.begin;
    }
    const int64_t chunks = (longest + x->chunk - 1) / x->chunk;
    for (int64_t k = 0; k <= chunks; k++) {
        if (k < chunks) FTH_TRY(start_chunk(x, grad, addends, k));
        if (k > 0) FTH_TRY(finish_chunk(x, grad, addends, fresh, k - 1, sum));
    }
    return FTH_OK;
}

/* ---- gathering ---- */

/* Each rank sends its slice to all, piece by piece. */
static fth_err gather_on_host(mpi_exchange *x, char *arena) {
    const size_t element = x->size;
    fth_ranks *ranks = x->base.ranks;
    const int count = ranks->count;
    const int64_t piece = x->chunk * count;
    fth_transfer *t = x->slot[0].transfer;
    const fth_slice mine = slice_of(x, ranks->rank);
    const fth_slice longest = slice_of(x, count - 1);
    const int64_t most = longest.end - longest.begin + fth_piece_size(x->base.n);
    for (int64_t at = 0; at < most; at += piece) {
        for (int i = 1; i < count; i++) {
            const int from = (ranks->rank + count - i) % count, to = (ranks->rank + i) % count;
            const fth_slice theirs = slice_of(x, from);
            int64_t n = theirs.end - theirs.begin - at;
            if (n > 0)
                FTH_TRY(fth_wire_receive(ranks->wire, from,
                                         arena + (size_t)(theirs.begin + at) * element,
                                         n < piece ? n : piece, element, &t[count + from]));
            n = mine.end - mine.begin - at;
            if (n > 0)
                FTH_TRY(fth_wire_send(ranks->wire, to, arena + (size_t)(mine.begin + at) * element,
                                      n < piece ? n : piece, element, &t[to]));
        }
        FTH_TRY(fth_ranks_wait(ranks, t, 2 * count));
    }
    return FTH_OK;
}

static fth_err gather(fth_exchange *base, void *arena) {
    mpi_exchange *x = (mpi_exchange *)base;
    fth_device *dev = base->device;
    if (dev->backend->on_host) return gather_on_host(x, arena);
    if (!x->whole) x->whole = malloc((size_t)base->n * x->size);
    if (!x->whole) return fth_fail(FTH_NO_MEMORY, "no memory for an exchange");
    const fth_slice mine = slice_of(x, base->ranks->rank);
    const size_t at = (size_t)mine.begin * x->size;
    FTH_TRY(dev->backend->download(dev, x->whole + at, (char *)arena + at,
                                   (mine.end - mine.begin) * (int64_t)x->size));
    FTH_TRY(gather_on_host(x, x->whole));
    return dev->backend->upload(dev, arena, x->whole, base->n * (int64_t)x->size);
}

/* ---- making ---- */

static void free_mpi(fth_exchange *base) {
    mpi_exchange *x = (mpi_exchange *)base;
    for (int i = 0; i < 2; i++) {
        if (x->slot[i].come) base->device->backend->release(base->device, x->slot[i].come);
        free(x->slot[i].staged);
        free(x->slot[i].going);
        free(x->slot[i].transfer);
    }
    free(x->whole);
    free(x);
}

static fth_err make_slot(mpi_exchange *x, slot *s) {
    const fth_device *dev = x->base.device;
    const size_t count = (size_t)x->base.ranks->count;
    const size_t bytes = count * (size_t)x->chunk * x->size;
    s->transfer = calloc(2 * count, sizeof *s->transfer);
    if (!dev->backend->on_host) {
        s->staged = malloc(bytes);
        s->going = malloc(bytes);
    }
    if (!s->transfer || (!dev->backend->on_host && (!s->staged || !s->going)))
        return fth_fail(FTH_NO_MEMORY, "no memory for an exchange");
    x->base.bytes += (int64_t)bytes;
    return dev->backend->alloc(x->base.device, (int64_t)bytes, &s->come);
}

fth_err fth_exchange_mpi(fth_ranks *ranks, fth_device *dev, int64_t n, fth_exchange **out) {
    mpi_exchange *x = calloc(1, sizeof *x);
    if (!x) return fth_fail(FTH_NO_MEMORY, "no memory for an exchange");
    x->base = (fth_exchange){.name = "mpi",
                             .ranks = ranks,
                             .device = dev,
                             .n = n,
                             .reduce = reduce,
                             .gather = gather,
                             .free = free_mpi};
    x->size = fth_dtype_size(dev->full);
    const fth_slice last = slice_of(x, ranks->count - 1);
    const int64_t slice = last.end - last.begin + fth_piece_size(n);
    x->chunk = CHUNKS / ranks->count < LEAST_CHUNK ? LEAST_CHUNK : CHUNKS / ranks->count;
    if (x->chunk > slice) x->chunk = slice;
    x->chunk = (x->chunk + FTH_PIECE_ALIGNMENT - 1) / FTH_PIECE_ALIGNMENT * FTH_PIECE_ALIGNMENT;
    fth_err err = make_slot(x, &x->slot[0]);
    if (err == FTH_OK) err = make_slot(x, &x->slot[1]);
    if (err != FTH_OK) {
        free_mpi(&x->base);
        return err;
    }
    *out = &x->base;
    return FTH_OK;
}
