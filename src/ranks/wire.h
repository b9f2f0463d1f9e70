/* wire.h: how bytes get from rank to rank: MPI, and the only file that knows it is wire_mpi.c.
 * Calls start and are looked at again, none blocks; any thread may make them, one is inside at a
 * time. There are two channels: that of the training, and a small one on which ranks tell each
 * other how they are (watch.h). */
#ifndef FTH_RANKS_WIRE_H
#define FTH_RANKS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct fth_wire fth_wire;

/* A transfer under way; zeroed: none. */
typedef struct fth_transfer {
    int64_t handle;
    bool open;
} fth_transfer;

/* Joins the other processes; *out is NULL when there is no other. */
fth_err fth_wire_open(fth_wire **out);
/* All ranks call it together. Without it the process ends without a word to the others. */
void fth_wire_close(fth_wire *w);
int fth_wire_rank(const fth_wire *w);
int fth_wire_count(const fth_wire *w);
/* Bytes of fth_wire_send so far. */
int64_t fth_wire_sent(const fth_wire *w);
/* The name of the MPI library, one line. */
void fth_wire_about(char *text, size_t size);

/* Floats (of 4 or 8 bytes), bytes: `size` is that of an element. */
fth_err fth_wire_send(fth_wire *w, int to, const void *data, int64_t n, size_t size,
                      fth_transfer *t);
fth_err fth_wire_receive(fth_wire *w, int from, void *data, int64_t n, size_t size,
                         fth_transfer *t);
/* Everybody's n bytes to all: [count, n]. */
fth_err fth_wire_gather(fth_wire *w, const void *mine, int64_t n, void *all, fth_transfer *t);
/* n bytes of rank 0 to all. */
fth_err fth_wire_broadcast(fth_wire *w, void *data, int64_t n, fth_transfer *t);

/* Whether all of n transfers are over; those that are not open count as over. */
fth_err fth_wire_look(fth_wire *w, fth_transfer *t, int n, bool *over);

/* The small channel: a message to a rank, and the next one that has come, of any rank (*from -1:
 * none has). */
fth_err fth_wire_tell(fth_wire *w, int to, const void *message, size_t bytes, fth_transfer *t);
fth_err fth_wire_hear(fth_wire *w, void *message, size_t bytes, int *from);

#endif
