/* pipeline_sum.c: gradients of the stages: the ranks of one stage add up theirs, each a share of
 * every run; when an update is complete, the sums go to those who update. */
#include <string.h>

#include "train/pipeline_inside.h"

fth_err fth_pipeline_zero(fth_pipeline *p, char *grad) {
    const size_t size = fth_grad_size(p);
    const fth_backend *backend = p->device->backend;
    for (int32_t i = 0; i < p->stages.n_runs; i++) {
        const fth_stage_run *r = &p->stages.run[i];
        if (r->stage == p->stage)
            FTH_TRY(backend->zero(p->device, grad + (size_t)r->begin * size,
                                  (r->end - r->begin) * (int64_t)size));
    }
    for (int32_t i = 0; i < p->stages.n_handovers; i++) {
        const fth_handover *h = &p->stages.handover[i];
        if (h->from == p->stage)
            FTH_TRY(backend->zero(p->device, grad + (size_t)h->begin * size,
                                  (h->end - h->begin) * (int64_t)size));
    }
    return FTH_OK;
}

/* A group's share of a run. */
static fth_slice share_of(const fth_pipeline *p, const fth_stage_run *r, int group) {
    const int64_t n = r->end - r->begin;
    return (fth_slice){r->begin + n * group / p->groups, r->begin + n * (group + 1) / p->groups};
}

static fth_err add_run(fth_pipeline *p, int32_t run, const char *grad, int addends, bool fresh) {
    const size_t size = fth_grad_size(p);
    const fth_slice mine = share_of(p, &p->stages.run[run], p->group);
    const int64_t n = mine.end - mine.begin;
    for (int g = 0; g < addends; g++) {
        const char *addend = grad + (size_t)mine.begin * size;
        if (g != p->group) {
            FTH_TRY(fth_post_receive(p->ranks, fth_stage_rank(p, g, p->stage), p->others, n, size));
            addend = p->others;
        }
        const fth_addends one = {.data = addend, .many = 1, .fresh = fresh && g == 0};
        FTH_TRY(p->device->backend->add_up(p->device, (char *)p->sum + (size_t)mine.begin * size,
                                           &one, n));
    }
    return FTH_OK;
}

/* To the other groups what is of their shares. */
static fth_err send_run(fth_pipeline *p, int32_t run, const char *grad) {
    const size_t size = fth_grad_size(p);
    for (int g = 0; g < p->groups; g++) {
        const fth_slice theirs = share_of(p, &p->stages.run[run], g);
        if (g == p->group) continue;
        FTH_TRY(fth_post_send(p->ranks, fth_stage_rank(p, g, p->stage),
                              grad + (size_t)theirs.begin * size, theirs.end - theirs.begin, size,
                              &p->letter[run * p->groups + g]));
    }
    return FTH_OK;
}

fth_err fth_pipeline_add(fth_pipeline *p, const char *grad, int addends, bool fresh) {
    const fth_stages *s = &p->stages;
    for (int32_t i = 0; i < s->n_runs && p->group < addends; i++)
        if (s->run[i].stage == p->stage) FTH_TRY(send_run(p, i, grad));
    for (int32_t i = 0; i < s->n_runs; i++)
        if (s->run[i].stage == p->stage) FTH_TRY(add_run(p, i, grad, addends, fresh));
    return fth_post_settle(p->ranks, p->letter, s->n_runs * p->groups);
}

/* ---- to those who update ---- */

static fth_slice both(fth_slice a, fth_slice b) {
    fth_slice s = {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
    if (s.end < s.begin) s.end = s.begin;
    return s;
}

/* Shares of this rank to the others, and to its own slice. */
static fth_err send_shares(fth_pipeline *p, int64_t n, char *sum) {
    const size_t size = fth_grad_size(p);
    const int count = fth_rank_count(p->ranks), rank = fth_rank(p->ranks);
    for (int32_t i = 0; i < p->stages.n_runs; i++) {
        if (p->stages.run[i].stage != p->stage) continue;
        for (int r = 0; r < count; r++) {
            const fth_slice slice = fth_slice_of(n, r, count);
            const fth_slice part = both(share_of(p, &p->stages.run[i], p->group), slice);
            const char *from = (char *)p->sum + (size_t)part.begin * size;
            if (r == rank)
                memcpy(sum + (size_t)(part.begin - slice.begin) * size * (part.end > part.begin),
                       from, (size_t)(part.end - part.begin) * size);
            else
                FTH_TRY(fth_post_send(p->ranks, r, from, part.end - part.begin, size,
                                      &p->letter[i * count + r]));
        }
    }
    return FTH_OK;
}

static fth_err receive_shares(fth_pipeline *p, fth_slice mine, char *sum) {
    const size_t size = fth_grad_size(p);
    for (int32_t i = 0; i < p->stages.n_runs; i++)
        for (int g = 0; g < p->groups; g++) {
            const fth_stage_run *run = &p->stages.run[i];
            const int from = fth_stage_rank(p, g, run->stage);
            const fth_slice part = both(share_of(p, run, g), mine);
            if (from == fth_rank(p->ranks) || part.end == part.begin) continue;
            FTH_TRY(fth_post_receive(p->ranks, from, sum + (size_t)(part.begin - mine.begin) * size,
                                     part.end - part.begin, size));
        }
    return FTH_OK;
}

fth_err fth_pipeline_deal(fth_pipeline *p, int64_t n, char *sum) {
    const int count = fth_rank_count(p->ranks);
    const fth_slice mine = fth_slice_of(n, fth_rank(p->ranks), count);
    FTH_TRY(send_shares(p, n, sum));
    FTH_TRY(receive_shares(p, mine, sum));
    return fth_post_settle(p->ranks, p->letter, p->stages.n_runs * count);
}

fth_err fth_pipeline_gather(fth_trainer *t) {
    fth_pipeline *p = t->pipeline;
    const size_t size = fth_grad_size(p);
    const int count = fth_rank_count(p->ranks);
    fth_transfer letter = {0};
    if (fth_rank(p->ranks) != 0) {
        FTH_TRY(fth_post_send(p->ranks, 0, t->sum, t->own.end - t->own.begin, size, &letter));
        return fth_post_settle(p->ranks, &letter, 1);
    }
    memcpy(t->arenas.grad, t->sum, (size_t)(t->own.end - t->own.begin) * size);
    for (int r = 1; r < count; r++) {
        const fth_slice s = fth_slice_of(t->arenas.n, r, count);
        FTH_TRY(fth_post_receive(p->ranks, r, (char *)t->arenas.grad + (size_t)s.begin * size,
                                 s.end - s.begin, size));
    }
    return FTH_OK;
}
