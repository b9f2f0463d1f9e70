/* ranks.c: finds the launcher by its environment, lets the ranks say who they are, and waits for
 * transfers asleep. */
#include "ranks/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/launcher.h"
#include "ranks/slice.h"
#include "ranks/transfers.h"

/* ---- opening and closing ---- */

/* Waits, asleep for moments that grow a little: the thread that computes next may need this
 * core. */
fth_err fth_ranks_wait(fth_ranks *r, fth_transfer *t, int n) {
    const double began = fth_now();
    bool over = false;
    fth_err err = FTH_OK;
    for (int looks = 0; !over && err == FTH_OK; looks++) {
        err = fth_wire_look(r->wire, t, n, &over);
        if (over || looks < 100) continue;
        if (looks == 100 && r->watch) fth_lost_rank_waiting(r->watch, true);
        nanosleep(&(struct timespec){.tv_nsec = looks < 1000 ? 20000 : 100000}, NULL);
    }
    if (r->watch) fth_lost_rank_waiting(r->watch, false);
    r->waited += fth_now() - began;
    return err;
}

static void read_host(char name[FTH_HOST_NAME]) {
    if (gethostname(name, FTH_HOST_NAME - 1) != 0) snprintf(name, FTH_HOST_NAME, "?");
    name[FTH_HOST_NAME - 1] = '\0';
}

static fth_err exchange_cards(fth_ranks *r, double timeout) {
    fth_rank_card own = {.pid = getpid()};
    read_host(own.host);
    r->cards = calloc((size_t)r->count, sizeof *r->cards);
    if (!r->cards) return fth_fail(FTH_NO_MEMORY, "no memory for %d ranks", r->count);
    FTH_TRY(fth_ranks_gather(r, &own, sizeof own, r->cards));
    return fth_lost_rank_new(r->wire, r->cards, timeout, &r->watch);
}

fth_err fth_ranks_open(double timeout, fth_ranks **out) {
    *out = NULL;
    if (!fth_launched()) return FTH_OK;
    fth_wire *wire = NULL;
    FTH_TRY(fth_wire_open(&wire));
    if (!wire) return FTH_OK;
    fth_ranks *r = calloc(1, sizeof *r);
    if (!r) return fth_fail(FTH_NO_MEMORY, "no memory for ranks");
    *r = (fth_ranks){.wire = wire, .rank = fth_wire_rank(wire), .count = fth_wire_count(wire)};
    fth_err err = exchange_cards(r, timeout);
    if (err != FTH_OK) {
        free(r->cards);
        free(r);
        return err;
    }
    *out = r;
    return FTH_OK;
}

/* All together, so that nobody takes another's end for a loss. */
static void part(fth_ranks *r) {
    if (fth_ranks_agree(r, FTH_OK) != FTH_OK) return;
    fth_lost_rank_rest(r->watch);
    fth_transfer t = {0};
    char mine = 0;
    char *all = malloc((size_t)r->count);
    if (all && fth_wire_gather(r->wire, &mine, 1, all, &t) == FTH_OK)
        (void)fth_ranks_wait(r, &t, 1);
    free(all);
    fth_lost_rank_free(r->watch);
    r->watch = NULL;
    fth_wire_close(r->wire);
}

/* Rank 0 says it, and first: a launcher that sees a rank end with an error ends the others. */
static void let_first_speak(fth_err err) {
    nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    (void)fth_fail(err, "%s", "");
}

void fth_ranks_close(fth_ranks *r, fth_err err) {
    if (!r) return;
    /* ends that all ranks come to by the same numbers, or by what they have agreed on */
    const bool together = r->agreed || err == FTH_OK || err == FTH_DIVERGED || err == FTH_STOPPED ||
                          err == FTH_TERMINATED;
    if (together) {
        part(r);
        if (err != FTH_OK && r->rank != 0) let_first_speak(err);
    } else {
        fth_lost_rank_fail(r->watch);
        (void)fth_fail_in(err, "rank %d on %s", r->rank, r->cards[r->rank].host);
        fth_lost_rank_free(r->watch);
    }
    free(r->cards);
    free(r);
}

int fth_rank(const fth_ranks *r) {
    return r ? r->rank : 0;
}

int fth_rank_count(const fth_ranks *r) {
    return r ? r->count : 1;
}

const char *fth_rank_host(const fth_ranks *r, int rank) {
    static _Thread_local char own[FTH_HOST_NAME];
    if (r) return r->cards[rank].host;
    read_host(own);
    return own;
}

void fth_ranks_doing(fth_ranks *r, int64_t update, const char *what) {
    if (r) fth_lost_rank_doing(r->watch, update, what);
}

double fth_ranks_waited(const fth_ranks *r) {
    return r ? r->waited : 0;
}

int64_t fth_ranks_sent(const fth_ranks *r) {
    return r ? fth_wire_sent(r->wire) : 0;
}

/* ---- small exchanges ---- */

fth_err fth_ranks_gather(fth_ranks *r, const void *mine, size_t bytes, void *all) {
    if (!r) {
        memcpy(all, mine, bytes);
        return FTH_OK;
    }
    fth_transfer t = {0};
    FTH_TRY(fth_wire_gather(r->wire, mine, (int64_t)bytes, all, &t));
    return fth_ranks_wait(r, &t, 1);
}

fth_err fth_ranks_add(fth_ranks *r, double *numbers, int64_t n) {
    if (!r) return FTH_OK;
    double *all = malloc(sizeof *all * (size_t)(n * r->count));
    if (!all) return fth_fail(FTH_NO_MEMORY, "no memory for %d ranks", r->count);
    fth_err err = fth_ranks_gather(r, numbers, sizeof *all * (size_t)n, all);
    for (int64_t i = 0; i < n && err == FTH_OK; i++) {
        numbers[i] = 0;
        for (int k = 0; k < r->count; k++) numbers[i] += all[k * n + i];
    }
    free(all);
    return err;
}

enum { BROADCAST = 1 << 24 };

fth_err fth_ranks_broadcast(fth_ranks *r, void *data, size_t bytes) {
    for (size_t at = 0; r && at < bytes; at += BROADCAST) {
        fth_transfer t = {0};
        const size_t n = bytes - at < BROADCAST ? bytes - at : BROADCAST;
        FTH_TRY(fth_wire_broadcast(r->wire, (char *)data + at, (int64_t)n, &t));
        FTH_TRY(fth_ranks_wait(r, &t, 1));
    }
    return FTH_OK;
}

enum { COLLECTED = 1 << 22 };

/* In turn, piece by piece, so that what waits stays small. */
fth_err fth_ranks_collect(fth_ranks *r, float *whole, int64_t n) {
    for (int from = 1; r && from < r->count; from++) {
        const fth_slice s = fth_slice_of(n, from, r->count);
        if (r->rank != 0 && r->rank != from) continue;
        for (int64_t at = s.begin; at < s.end; at += COLLECTED) {
            const int64_t some = s.end - at < COLLECTED ? s.end - at : COLLECTED;
            fth_transfer t = {0};
            if (r->rank == 0)
                FTH_TRY(fth_wire_receive(r->wire, from, whole + at, some, sizeof *whole, &t));
            else
                FTH_TRY(fth_wire_send(r->wire, 0, whole + at, some, sizeof *whole, &t));
            FTH_TRY(fth_ranks_wait(r, &t, 1));
        }
    }
    return FTH_OK;
}

/* ---- agreement ---- */

typedef struct verdict {
    int32_t err;
    char text[1020];
} verdict;

/* Errors that all ranks have are said as one process would; others with the rank that has them. */
static fth_err judge(fth_ranks *r, const verdict *all) {
    int first = 0, failed = 0;
    bool same = true;
    for (int i = r->count - 1; i >= 0; i--) {
        if (all[i].err == FTH_OK) continue;
        same &=
            failed == 0 || (all[i].err == all[first].err && !strcmp(all[i].text, all[first].text));
        first = i;
        failed++;
    }
    if (failed == 0) return FTH_OK;
    r->agreed = true;
    if (same && failed == r->count) return fth_fail((fth_err)all[first].err, "%s", all[first].text);
    return fth_fail(FTH_FAILED, "rank %d on %s: %s", first, r->cards[first].host, all[first].text);
}

fth_err fth_ranks_agree(fth_ranks *r, fth_err err) {
    if (!r) return err;
    verdict mine = {.err = (int32_t)err};
    if (err != FTH_OK) snprintf(mine.text, sizeof mine.text, "%s", fth_error_message());
    verdict *all = malloc(sizeof *all * (size_t)r->count);
    if (!all) return fth_fail(FTH_NO_MEMORY, "no memory for %d ranks", r->count);
    fth_err result = fth_ranks_gather(r, &mine, sizeof mine, all);
    if (result == FTH_OK) result = judge(r, all);
    free(all);
    return result;
}

/* The first line in which two texts differ; they do. */
static fth_err differ(const char *what, const char *here, const char *there, const char *host) {
    while (*here || *there) {
        const size_t n = strcspn(here, "\n"), m = strcspn(there, "\n");
        if (n != m || memcmp(here, there, n) != 0)
            return fth_fail(FTH_FAILED, "disagrees with rank 0 on %s about %s: %.*s, not %.*s",
                            host, what, (int)(n < 200 ? n : 200), here, (int)(m < 200 ? m : 200),
                            there);
        here += n + (here[n] == '\n');
        there += m + (there[m] == '\n');
    }
    return FTH_OK;
}

fth_err fth_ranks_same(fth_ranks *r, const char *what, const char *text) {
    if (!r) return FTH_OK;
    uint64_t length = strlen(text) + 1;
    FTH_TRY(fth_ranks_broadcast(r, &length, sizeof length));
    char *first = calloc(1, length);
    fth_err err = FTH_OK;
    if (!first) return fth_fail(FTH_NO_MEMORY, "no memory for ranks");
    if (r->rank == 0) memcpy(first, text, length);
    err = fth_ranks_broadcast(r, first, length);
    if (err == FTH_OK) err = differ(what, text, first, r->cards[0].host);
    free(first);
    return fth_ranks_agree(r, err);
}
