/* wire_mpi.c: wire.h by MPI. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/wire.h"

struct fth_wire {
    int rank, count;
    MPI_Comm training, watch;
    int64_t sent;         /* bytes */
    pthread_mutex_t lock; /* MPI is asked for no more than one thread at a time */
};

_Static_assert(sizeof(MPI_Request) <= sizeof(int64_t), "a request fits a transfer");

enum { TAG = 1, MOST = 1 << 28 /* elements of one message */ };

static fth_err failed(int code, const char *what) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
    return fth_fail(FTH_FAILED, "MPI: %s: %.*s", what, length, text);
}

#define MPI_TRY(call, what)                                                                        \
    do {                                                                                           \
        const int mpi_code_ = (call);                                                              \
        if (mpi_code_ != MPI_SUCCESS) return failed(mpi_code_, what);                              \
    } while (0)

static void keep(fth_transfer *t, MPI_Request request) {
    *t = (fth_transfer){.open = true};
    memcpy(&t->handle, &request, sizeof request);
}

/* ---- opening ---- */

static fth_err split_channels(fth_wire *w) {
    MPI_TRY(MPI_Comm_rank(MPI_COMM_WORLD, &w->rank), "asking for the rank");
    MPI_TRY(MPI_Comm_size(MPI_COMM_WORLD, &w->count), "asking for the number of ranks");
    MPI_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &w->training), "making a channel");
    MPI_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &w->watch), "making a channel");
    MPI_TRY(MPI_Comm_set_errhandler(w->training, MPI_ERRORS_RETURN), "setting up errors");
    MPI_TRY(MPI_Comm_set_errhandler(w->watch, MPI_ERRORS_RETURN), "setting up errors");
    return FTH_OK;
}

fth_err fth_wire_open(fth_wire **out) {
    *out = NULL;
    int level = MPI_THREAD_SINGLE;
    MPI_TRY(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level), "starting");
    if (level < MPI_THREAD_SERIALIZED)
        return fth_fail(FTH_FAILED, "MPI: this library cannot be used by two threads");
    fth_wire *w = calloc(1, sizeof *w);
    if (!w) return fth_fail(FTH_NO_MEMORY, "no memory for ranks");
    pthread_mutex_init(&w->lock, NULL);
    fth_err err = split_channels(w);
    if (err == FTH_OK && w->count == 1) MPI_Finalize();
    if (err != FTH_OK || w->count == 1) {
        pthread_mutex_destroy(&w->lock);
        free(w);
        return err;
    }
    *out = w;
    return FTH_OK;
}

void fth_wire_close(fth_wire *w) {
    if (!w) return;
    MPI_Comm_free(&w->training);
    MPI_Comm_free(&w->watch);
    MPI_Finalize();
    pthread_mutex_destroy(&w->lock);
    free(w);
}

int fth_wire_rank(const fth_wire *w) {
    return w->rank;
}

int fth_wire_count(const fth_wire *w) {
    return w->count;
}

int64_t fth_wire_sent(const fth_wire *w) {
    return w->sent;
}

void fth_wire_about(char *text, size_t size) {
    char name[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    if (MPI_Get_library_version(name, &length) != MPI_SUCCESS) length = 0;
    snprintf(text, size, "%.*s", (int)strcspn(name, ",\n"), name);
}

/* ---- transfers ---- */

static fth_err started(fth_wire *w, int code, MPI_Request request, const char *what,
                       fth_transfer *t) {
    pthread_mutex_unlock(&w->lock);
    if (code != MPI_SUCCESS) return failed(code, what);
    keep(t, request);
    return FTH_OK;
}

static MPI_Datatype type_of(size_t size) {
    return size == 8 ? MPI_DOUBLE : size == 4 ? MPI_FLOAT : size == 2 ? MPI_UINT16_T : MPI_BYTE;
}

static fth_err too_long(int64_t n) {
    return fth_fail(FTH_FAILED, "a message of %lld elements; at most %d", (long long)n, (int)MOST);
}

fth_err fth_wire_send(fth_wire *w, int to, const void *data, int64_t n, size_t size,
                      fth_transfer *t) {
    if (n > MOST) return too_long(n);
    MPI_Request request;
    pthread_mutex_lock(&w->lock);
    w->sent += n * (int64_t)size;
    const int code = MPI_Isend(data, (int)n, type_of(size), to, TAG, w->training, &request);
    return started(w, code, request, "sending", t);
}

fth_err fth_wire_receive(fth_wire *w, int from, void *data, int64_t n, size_t size,
                         fth_transfer *t) {
    if (n > MOST) return too_long(n);
    MPI_Request request;
    pthread_mutex_lock(&w->lock);
    const int code = MPI_Irecv(data, (int)n, type_of(size), from, TAG, w->training, &request);
    return started(w, code, request, "receiving", t);
}

fth_err fth_wire_gather(fth_wire *w, const void *mine, int64_t n, void *all, fth_transfer *t) {
    if (n > MOST) return too_long(n);
    MPI_Request request;
    pthread_mutex_lock(&w->lock);
    const int code =
        MPI_Iallgather(mine, (int)n, MPI_BYTE, all, (int)n, MPI_BYTE, w->training, &request);
    return started(w, code, request, "gathering", t);
}

fth_err fth_wire_broadcast(fth_wire *w, void *data, int64_t n, fth_transfer *t) {
    if (n > MOST) return too_long(n);
    MPI_Request request;
    pthread_mutex_lock(&w->lock);
    const int code = MPI_Ibcast(data, (int)n, MPI_BYTE, 0, w->training, &request);
    return started(w, code, request, "broadcasting", t);
}

fth_err fth_wire_look(fth_wire *w, fth_transfer *t, int n, bool *over) {
    *over = true;
    int code = MPI_SUCCESS;
    pthread_mutex_lock(&w->lock);
    for (int i = 0; i < n && code == MPI_SUCCESS; i++) {
        if (!t[i].open) continue;
        MPI_Request request;
        int done = 0;
        memcpy(&request, &t[i].handle, sizeof request);
        code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        memcpy(&t[i].handle, &request, sizeof request);
        t[i].open = !done;
        *over &= done;
    }
    pthread_mutex_unlock(&w->lock);
    return code == MPI_SUCCESS ? FTH_OK : failed(code, "a transfer");
}

/* ---- the small channel ---- */

fth_err fth_wire_tell(fth_wire *w, int to, const void *message, size_t bytes, fth_transfer *t) {
    MPI_Request request;
    pthread_mutex_lock(&w->lock);
    const int code = MPI_Isend(message, (int)bytes, MPI_BYTE, to, TAG, w->watch, &request);
    return started(w, code, request, "telling", t);
}

fth_err fth_wire_hear(fth_wire *w, void *message, size_t bytes, int *from) {
    int there = 0;
    MPI_Status status;
    *from = -1;
    pthread_mutex_lock(&w->lock);
    int code = MPI_Iprobe(MPI_ANY_SOURCE, TAG, w->watch, &there, &status);
    if (code == MPI_SUCCESS && there) {
        code = MPI_Recv(message, (int)bytes, MPI_BYTE, status.MPI_SOURCE, TAG, w->watch,
                        MPI_STATUS_IGNORE);
        *from = status.MPI_SOURCE;
    }
    pthread_mutex_unlock(&w->lock);
    return code == MPI_SUCCESS ? FTH_OK : failed(code, "hearing");
}
