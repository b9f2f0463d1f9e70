/* lost_rank.c: the thread: every second a message over a small channel, and a look at who was not
 * heard of. */
#include "ranks/lost_rank.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unfinished.h"

enum { TICK_MS = 100, TICKS_OF_A_MESSAGE = 10 };

typedef enum message_kind { ALIVE, LOST } message_kind;

/* What goes over the small channel. */
typedef struct message {
    int32_t kind;
    int32_t rank;   /* whom it is about */
    int64_t update; /* at which it is */
    double idle;    /* seconds in which it has neither computed nor waited */
    char doing[FTH_DOING];
    char reason[512]; /* LOST */
} message;

struct fth_lost_rank {
    fth_wire *wire;
    const fth_rank_card *card; /* [count] */
    int rank, count;
    double timeout;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* of what follows */
    bool stop, waiting;
    bool failing; /* `failure` is to be told */
    message failure;
    message own;
    double moved;           /* when this rank last showed that it is at work */
    double cpu;             /* seconds of its processor time at that moment */
    double *heard;          /* [count] when a rank was last heard of */
    bool *local;            /* [count] its process can be seen from here */
    fth_transfer *transfer; /* [count] */
    message *letter;        /* [count] under way */
};

static void nap(int ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

/* ---- telling ---- */

/* A message to a rank, unless the one before is still under way. */
static void tell(fth_lost_rank *w, int to, const message *m) {
    bool over = true;
    if (fth_wire_look(w->wire, &w->transfer[to], 1, &over) != FTH_OK || !over) return;
    w->letter[to] = *m;
    (void)fth_wire_tell(w->wire, to, &w->letter[to], sizeof *m, &w->transfer[to]);
}

static void tell_all(fth_lost_rank *w, const message *m) {
    for (int r = 0; r < w->count; r++)
        if (r != w->rank && r != m->rank) tell(w, r, m);
    bool over = false; /* a moment for the messages to leave */
    for (int i = 0; i < 50 && !over; i++) {
        nap(10);
        if (fth_wire_look(w->wire, w->transfer, w->count, &over) != FTH_OK) return;
    }
}

/* The end of this process, from the watching thread: the others may be anywhere. */
static void end(fth_lost_rank *w, const message *m) {
    char text[1024];
    pthread_mutex_lock(&w->lock);
    const int n = snprintf(text, sizeof text,
                           "fathom: rank %d on %s %s; rank %d on %s was at update %lld: %s\n",
                           m->rank, w->card[m->rank].host, m->reason, w->rank,
                           w->card[w->rank].host, (long long)w->own.update, w->own.doing);
    (void)!write(STDERR_FILENO, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
    fth_unfinished_lock();
    fth_unfinished_remove();
    _exit(1);
}

/* Rank 0 tells the others what it has found out, before it ends. */
static void lost(fth_lost_rank *w, const message *m) {
    if (w->rank == 0) tell_all(w, m);
    end(w, m);
}

/* ---- looking ---- */

/* A message that says that its rank does nothing. */
static void find_idle(fth_lost_rank *w, const message *m) {
    if (m->idle < w->timeout) return;
    message found = {.kind = LOST, .rank = m->rank};
    snprintf(found.reason, sizeof found.reason,
             "hangs: it has done nothing for %.0f s, at update %lld: %.80s", m->idle,
             (long long)m->update, m->doing);
    lost(w, &found);
}

static void hear(fth_lost_rank *w) {
    message m;
    int from = 0;
    while (fth_wire_hear(w->wire, &m, sizeof m, &from) == FTH_OK && from >= 0) {
        w->heard[from] = fth_now();
        if (m.kind == ALIVE) {
            find_idle(w, &m);
            continue;
        }
        lost(w, &m);
    }
}

static bool is_gone(const fth_lost_rank *w, int rank) {
    return w->local[rank] && kill((pid_t)w->card[rank].pid, 0) != 0 && errno == ESRCH;
}

/* Processes of this host are looked at by all of them: a launcher that sees one die ends the others
 * within a second. One that has failed has said why, and that comes first. */
static void find_gone(fth_lost_rank *w) {
    for (int r = 0; r < w->count; r++) {
        if (!is_gone(w, r)) continue;
        nap(TICK_MS);
        hear(w);
        message m = {.kind = LOST, .rank = r};
        snprintf(m.reason, sizeof m.reason, "is lost: its process has ended");
        lost(w, &m);
    }
}

static void find_silent(fth_lost_rank *w) {
    const double t = fth_now();
    for (int r = 0; r < w->count; r++) {
        const bool watched = w->rank == 0 ? r != 0 : r == 0;
        if (!watched || t - w->heard[r] < w->timeout) continue;
        message m = {.kind = LOST, .rank = r};
        snprintf(m.reason, sizeof m.reason, "is lost: nothing was heard of it for %.0f s",
                 t - w->heard[r]);
        lost(w, &m);
    }
}

/* How this rank is: at work while its processor time grows or it waits for others. */
static message how_it_is(fth_lost_rank *w) {
    const double t = fth_now(), cpu = fth_seconds(CLOCK_PROCESS_CPUTIME_ID);
    pthread_mutex_lock(&w->lock);
    if (w->waiting || cpu - w->cpu > 0.02 * (t - w->moved) + 0.005) {
        w->moved = t;
        w->cpu = cpu;
    }
    w->own.idle = t - w->moved;
    const message m = w->own;
    pthread_mutex_unlock(&w->lock);
    return m;
}

static void report(fth_lost_rank *w) {
    const message m = how_it_is(w);
    for (int r = 0; r < w->count; r++)
        if (r != w->rank && (w->rank == 0 || r == 0)) tell(w, r, &m);
}

/* What the training thread wants: an end, maybe with a failure. */
static bool is_over(fth_lost_rank *w, bool *failing) {
    pthread_mutex_lock(&w->lock);
    const bool over = w->stop;
    *failing = w->failing;
    pthread_mutex_unlock(&w->lock);
    return over;
}

/* This rank fails: rank 0 has a moment to tell the others, before a launcher ends them all. */
static void tell_failure(fth_lost_rank *w) {
    const message m = w->failure;
    if (w->rank == 0) {
        tell_all(w, &m);
        return;
    }
    bool over = false; /* after what was told last */
    for (int i = 0; i < 100 && !over; i++) {
        if (fth_wire_look(w->wire, &w->transfer[0], 1, &over) != FTH_OK) return;
        if (!over) nap(10);
    }
    tell(w, 0, &m);
    for (int i = 0; i < 5; i++) {
        nap(TICK_MS);
        if (fth_wire_look(w->wire, &w->transfer[0], 1, &over) != FTH_OK) return;
    }
}

/* A process that was stopped itself has heard nothing meanwhile; that is nobody else's fault. */
static void forgive(fth_lost_rank *w, double since) {
    for (int r = 0; r < w->count; r++) w->heard[r] += since;
}

static void *watch(void *argument) {
    fth_lost_rank *w = argument;
    double before = fth_now();
    bool failing = false;
    for (int tick = 0; !is_over(w, &failing); tick++) {
        if (tick % TICKS_OF_A_MESSAGE == 0) report(w);
        hear(w);
        find_gone(w);
        find_silent(w);
        nap(TICK_MS);
        const double t = fth_now();
        if (t - before > 2) forgive(w, t - before);
        before = t;
    }
    if (failing) tell_failure(w);
    return NULL;
}

/* ---- its life ---- */

static void find_local(fth_lost_rank *w) {
    for (int r = 0; r < w->count; r++) {
        const fth_rank_card *c = &w->card[r];
        const bool same = r != w->rank && strcmp(c->host, w->card[w->rank].host) == 0;
        w->local[r] = same && (kill((pid_t)c->pid, 0) == 0 || errno == EPERM);
        w->heard[r] = fth_now();
    }
}

fth_err fth_lost_rank_new(fth_wire *wire, const fth_rank_card *cards, double timeout,
                          fth_lost_rank **out) {
    fth_lost_rank *w = calloc(1, sizeof *w);
    if (!w) return fth_fail(FTH_NO_MEMORY, "no memory for ranks");
    const int count = fth_wire_count(wire);
    *w = (fth_lost_rank){.wire = wire,
                         .card = cards,
                         .rank = fth_wire_rank(wire),
                         .count = count,
                         .timeout = timeout,
                         .moved = fth_now(),
                         .heard = calloc((size_t)count, sizeof *w->heard),
                         .local = calloc((size_t)count, sizeof *w->local),
                         .transfer = calloc((size_t)count, sizeof *w->transfer),
                         .letter = calloc((size_t)count, sizeof *w->letter)};
    w->own = (message){.kind = ALIVE, .rank = w->rank, .doing = "starting"};
    pthread_mutex_init(&w->lock, NULL);
    fth_err err = FTH_OK;
    if (!w->heard || !w->local || !w->transfer || !w->letter) {
        err = fth_fail(FTH_NO_MEMORY, "no memory for ranks");
    } else {
        find_local(w);
        const int result = pthread_create(&w->thread, NULL, watch, w);
        w->started = result == 0;
        if (result) err = fth_fail(FTH_FAILED, "cannot start a thread: %s", strerror(result));
    }
    if (err != FTH_OK) {
        fth_lost_rank_free(w);
        return err;
    }
    *out = w;
    return FTH_OK;
}

void fth_lost_rank_rest(fth_lost_rank *w) {
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_mutex_unlock(&w->lock);
    if (w->started) pthread_join(w->thread, NULL);
    w->started = false;
}

void fth_lost_rank_free(fth_lost_rank *w) {
    if (!w) return;
    fth_lost_rank_rest(w);
    pthread_mutex_destroy(&w->lock);
    free(w->heard);
    free(w->local);
    free(w->transfer);
    free(w->letter);
    free(w);
}

void fth_lost_rank_doing(fth_lost_rank *w, int64_t update, const char *what) {
    pthread_mutex_lock(&w->lock);
    w->own.update = update;
    snprintf(w->own.doing, sizeof w->own.doing, "%s", what);
    w->moved = fth_now();
    pthread_mutex_unlock(&w->lock);
}

void fth_lost_rank_waiting(fth_lost_rank *w, bool waiting) {
    pthread_mutex_lock(&w->lock);
    w->waiting = waiting;
    w->moved = fth_now();
    pthread_mutex_unlock(&w->lock);
}

void fth_lost_rank_fail(fth_lost_rank *w) {
    pthread_mutex_lock(&w->lock);
    w->failure = w->own;
    w->failure.kind = LOST;
    snprintf(w->failure.reason, sizeof w->failure.reason, "failed at update %lld, %.80s: %.300s",
             (long long)w->own.update, w->own.doing, fth_error_message());
    w->failing = true;
    pthread_mutex_unlock(&w->lock);
    fth_lost_rank_rest(w);
}
