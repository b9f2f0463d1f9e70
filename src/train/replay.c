/* replay.c: a clock for each stage; an operation begins when its stage is free and what it reads
 * has come. */
#include "train/replay.h"

#include <math.h>
#include <stdlib.h>

/* ---- exchanges ---- */

/* Seconds of an exchange in which every rank sends `bytes` to each of `others` ranks, of which
 * `near` are on its host. */
static double trade(const fth_topology *t, double bytes, int others, int near) {
    const double inside = bytes * near / t->link;
    const int host = t->ranks_per_host < t->ranks ? t->ranks_per_host : t->ranks;
    const double outside = bytes * (others - near) * host / t->net;
    return others ? t->latency + fmax(inside, outside) : 0;
}

static int groups_of(const fth_topology *t) {
    return t->ranks / t->stages;
}

/* Ranks of this host that run the same stage, beside this one. */
static int near_of(const fth_topology *t) {
    const int groups = groups_of(t), here = t->ranks_per_host / t->stages;
    const int most = here > 1 ? here : 1;
    return (groups < most ? groups : most) - 1;
}

/* Gradients of a round: each rank sends the others of its stage their shares. */
static double reduce_time(const fth_topology *t, const fth_workload *w, double *sent) {
    const int groups = groups_of(t);
    const double share = 4.0 * (double)w->parameters / t->stages / groups;
    *sent += share * (groups - 1);
    return trade(t, share, groups - 1, near_of(t));
}

/* Updated weights: each rank sends its slice to all. */
static double gather_time(const fth_topology *t, const fth_workload *w, double *sent) {
    const double slice = 4.0 * (double)w->parameters / t->ranks;
    const int here = t->ranks_per_host < t->ranks ? t->ranks_per_host : t->ranks;
    *sent += slice * (t->ranks - 1);
    return trade(t, slice, t->ranks - 1, here - 1);
}

/* ---- the stages of a group ---- */

/* What a stage does next: train/pipeline.c's order. */
typedef struct stage {
    double clock, busy, exchange;
    int forward, backward; /* rounds done */
} stage;

typedef struct play {
    const fth_topology *t;
    const fth_workload *w;
    stage *stage;    /* [stages] */
    double *come[2]; /* [stages, rounds] when a batch's forward, backward input is there */
    int rounds;
    double sent;
} play;

static double hop_time(const play *p, int border) {
    const fth_topology *t = p->t;
    const bool near = t->ranks_per_host >= t->stages; /* a pipeline lies on one host */
    const double rate = near ? t->link : t->net;
    return t->latency + (double)p->w->hop[border] / rate;
}

/* Makes the next operation of a stage if its input is there. */
static bool step(play *p, int s) {
    stage *me = &p->stage[s];
    const int stages = p->t->stages, ahead = stages - 1 - s;
    const bool goes_forward = me->forward < p->rounds && me->forward <= me->backward + ahead;
    if (!goes_forward && me->backward == p->rounds) return false;
    const int way = goes_forward ? 0 : 1, round = goes_forward ? me->forward : me->backward;
    const double come = p->come[way][s * p->rounds + round];
    if (come < 0) return false;
    const double share = goes_forward ? FTH_FORWARD_SHARE : 1 - FTH_FORWARD_SHARE;
    const double work = p->w->batch * p->w->cost[s] * share;
    me->clock = fmax(me->clock, come) + work;
    me->busy += work;
    if (goes_forward) {
        me->forward++;
        if (s + 1 < stages) p->come[0][(s + 1) * p->rounds + round] = me->clock + hop_time(p, s);
        if (s + 1 == stages) p->come[1][s * p->rounds + round] = me->clock;
        return true;
    }
    me->backward++;
    if (s > 0) p->come[1][(s - 1) * p->rounds + round] = me->clock + hop_time(p, s - 1);
    if (p->w->own_first && round < p->rounds - 1) return true;
    double sent = 0;
    const double exchange = reduce_time(p->t, p->w, &sent);
    me->clock += exchange;
    me->exchange += exchange;
    if (s == 0) p->sent += sent;
    return true;
}

static fth_err open_play(play *p) {
    const size_t n = (size_t)p->t->stages * (size_t)p->rounds;
    p->stage = calloc((size_t)p->t->stages, sizeof *p->stage);
    p->come[0] = malloc(sizeof *p->come[0] * n);
    p->come[1] = malloc(sizeof *p->come[1] * n);
    if (!p->stage || !p->come[0] || !p->come[1])
        return fth_fail(FTH_NO_MEMORY, "no memory for a replay");
    for (size_t i = 0; i < n; i++)
        p->come[0][i] = i < (size_t)p->rounds ? 0 : -1, p->come[1][i] = -1;
    return FTH_OK;
}

static void close_play(play *p) {
    free(p->stage);
    free(p->come[0]);
    free(p->come[1]);
}

static void sum_up(play *p, fth_replay *out) {
    double last = 0, busy = 0, exchange = 0;
    for (int s = 0; s < p->t->stages; s++) {
        last = fmax(last, p->stage[s].clock);
        busy += p->stage[s].busy / p->t->stages;
        exchange += p->stage[s].exchange / p->t->stages;
    }
    const double own = p->w->update / p->t->ranks;
    const double gather = gather_time(p->t, p->w, &p->sent);
    out->seconds = last + own + gather;
    out->computed = (busy + own) / out->seconds;
    out->exchange = (exchange + gather) / out->seconds;
    out->sent = p->sent;
    for (int s = 0; s + 1 < p->t->stages && s < 2; s++) /* a stage in the middle sends both ways */
        out->sent += (double)p->w->hop[s] * p->rounds;
}

fth_err fth_replay_update(const fth_topology *t, const fth_workload *w, fth_replay *out) {
    const int groups = groups_of(t);
    play p = {.t = t, .w = w, .rounds = (w->batches + groups - 1) / groups};
    fth_err err = open_play(&p);
    for (bool on = true; err == FTH_OK && on;) {
        on = false;
        for (int s = 0; s < t->stages; s++)
            while (step(&p, s)) on = true;
    }
    if (err == FTH_OK) sum_up(&p, out);
    close_play(&p);
    return err;
}
