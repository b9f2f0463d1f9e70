/* wire_none.c: wire.h in a build without MPI: there are no other ranks. */
#include <stdio.h>

#include "ranks/wire.h"

static fth_err none(void) {
    return fth_fail(FTH_USAGE,
                    "this fathom was built without MPI: it cannot be one of several "
                    "ranks; install Open MPI or MPICH and build again (doc/clusters.md)");
}

fth_err fth_wire_open(fth_wire **out) {
    *out = NULL;
    return none();
}

void fth_wire_close(fth_wire *w) {
    (void)w;
}

int fth_wire_rank(const fth_wire *w) {
    (void)w;
    return 0;
}

int fth_wire_count(const fth_wire *w) {
    (void)w;
    return 1;
}

int64_t fth_wire_sent(const fth_wire *w) {
    (void)w;
    return 0;
}

void fth_wire_about(char *text, size_t size) {
    snprintf(text, size, "none");
}

fth_err fth_wire_send(fth_wire *w, int to, const void *data, int64_t n, size_t size,
                      fth_transfer *t) {
    (void)w, (void)to, (void)data, (void)n, (void)size, (void)t;
    return none();
}

fth_err fth_wire_receive(fth_wire *w, int from, void *data, int64_t n, size_t size,
                         fth_transfer *t) {
    (void)w, (void)from, (void)data, (void)n, (void)size, (void)t;
    return none();
}

fth_err fth_wire_gather(fth_wire *w, const void *mine, int64_t n, void *all, fth_transfer *t) {
    (void)w, (void)mine, (void)n, (void)all, (void)t;
    return none();
}

fth_err fth_wire_broadcast(fth_wire *w, void *data, int64_t n, fth_transfer *t) {
    (void)w, (void)data, (void)n, (void)t;
    return none();
}

fth_err fth_wire_look(fth_wire *w, fth_transfer *t, int n, bool *over) {
    (void)w, (void)t, (void)n, (void)over;
    return none();
}

fth_err fth_wire_tell(fth_wire *w, int to, const void *message, size_t bytes, fth_transfer *t) {
    (void)w, (void)to, (void)message, (void)bytes, (void)t;
    return none();
}

fth_err fth_wire_hear(fth_wire *w, void *message, size_t bytes, int *from) {
    (void)w, (void)message, (void)bytes, (void)from;
    return none();
}
