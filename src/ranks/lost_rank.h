/* lost_rank.h: a thread on every rank that finds out when another one is lost, and then ends this
 * process with a message and exit status 1: whoever waits for a rank that is gone would wait for
 * ever.
 *
 * Every rank tells rank 0 each second what it does, and rank 0 answers; who says nothing for
 * `timeout` seconds, or neither computes nor waits for that long, is lost. The processes on this
 * host are looked at ten times a second: a launcher ends the others soon after one has died. A rank
 * that fails tells the others why before it ends. */
#ifndef FTH_RANKS_LOST_RANK_H
#define FTH_RANKS_LOST_RANK_H

#include "ranks/wire.h"

enum { FTH_HOST_NAME = 64, FTH_DOING = 96 };

/* What ranks know of each other from the start. */
typedef struct fth_rank_card {
    char host[FTH_HOST_NAME];
    int64_t pid;
} fth_rank_card;

typedef struct fth_lost_rank fth_lost_rank;

/* The wire and the cards [count] are borrowed. */
fth_err fth_lost_rank_new(fth_wire *wire, const fth_rank_card *cards, double timeout,
                          fth_lost_rank **out);
/* Stops looking; the others may go now. */
void fth_lost_rank_rest(fth_lost_rank *w);
void fth_lost_rank_free(fth_lost_rank *w);

/* What this rank does; waiting: for others. Any thread. */
void fth_lost_rank_doing(fth_lost_rank *w, int64_t update, const char *what);
void fth_lost_rank_waiting(fth_lost_rank *w, bool waiting);

/* Tells all that this rank ends with the error at hand, and puts its name before the message. */
void fth_lost_rank_fail(fth_lost_rank *w);

#endif
