/* prefetch.c: a ring of batches between one thread that makes and one that takes, with the time
 * that the taker has waited. */
#include "data/prefetch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

typedef struct slot {
    fth_prefetched batch;
    fth_err err;
    char *message; /* of err */
} slot;

struct fth_prefetch {
    fth_batcher *batcher;
    fth_prefetch_spec spec;
    fth_packed packed; /* the batch that is being made */
    slot *slots;       /* [n] go round; the last spec.held are with the user */
    int n;
    int64_t made, given; /* batches so far */
    int64_t counted;     /* of the group that is being made */
    int stop, started;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    double waited;
};

static void make_one(fth_prefetch *p, int k) {
    slot *s = &p->slots[k];
    const fth_prefetch_spec *spec = &p->spec;
    if (spec->group > 1 && p->made % spec->group == 0)
        p->counted =
            fth_batcher_count(p->batcher, spec->group, &p->packed, spec->count, spec->context);
    s->err = fth_batcher_next(p->batcher, &p->packed);
    const int32_t n_sent = s->err ? 0 : p->packed.n_sent;
    if (n_sent > 0) s->err = p->spec.fill(p->spec.context, k, &p->packed);
    s->message = s->err ? strdup(fth_error_message()) : NULL;
    s->batch = (fth_prefetched){k, n_sent, p->packed.next, p->counted};
}

static void *make_batches(void *argument) {
    fth_prefetch *p = argument;
    pthread_mutex_lock(&p->lock);
    for (int last = 0; !last;) {
        /* the slots given last are in use until others are asked for */
        while (!p->stop && p->made - p->given == p->spec.ahead)
            pthread_cond_wait(&p->changed, &p->lock);
        if (p->stop) break;
        slot *s = &p->slots[p->made % p->n];
        pthread_mutex_unlock(&p->lock);
        make_one(p, (int)(s - p->slots));
        last = s->err != FTH_OK || s->batch.n_sent == 0;
        pthread_mutex_lock(&p->lock);
        p->made++;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

fth_err fth_prefetch_new(fth_batcher *b, const fth_prefetch_spec *spec, fth_prefetch **out) {
    fth_err err = FTH_OK;
    fth_prefetch *p = calloc(1, sizeof *p);
    if (!p) return fth_no_memory("making batches ahead");
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    p->batcher = b;
    p->spec = *spec;
    p->n = spec->ahead + spec->held;
    p->slots = calloc((size_t)p->n, sizeof *p->slots);
    if (!p->slots) {
        err = fth_no_memory("making batches ahead");
        goto fail;
    }
    FTH_TRY_OR(err, fth_packed_init(&p->packed, spec->max_tokens), fail);
    int result = pthread_create(&p->thread, NULL, make_batches, p);
    if (result) {
        err = fth_fail(FTH_FAILED, "cannot start a thread: %s", strerror(result));
        goto fail;
    }
    p->started = 1;
    *out = p;
    return FTH_OK;
fail:
    fth_prefetch_free(p);
    return err;
}

void fth_prefetch_free(fth_prefetch *p) {
    if (!p) return;
    if (p->started) {
        pthread_mutex_lock(&p->lock);
        p->stop = 1;
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->lock);
        pthread_join(p->thread, NULL);
    }
    for (int i = 0; p->slots && i < p->n; i++) free(p->slots[i].message);
    free(p->slots);
    fth_packed_fini(&p->packed);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static fth_err give(const slot *s, fth_prefetched *out) {
    *out = s->batch;
    return s->err ? fth_fail(s->err, "%s", s->message ? s->message : "batches failed") : FTH_OK;
}

fth_err fth_prefetch_next(fth_prefetch *p, fth_prefetched *out) {
    const slot *before = p->given ? &p->slots[(p->given - 1) % p->n] : NULL;
    if (before && (before->err != FTH_OK || before->batch.n_sent == 0))
        return give(before, out); /* it has ended */
    pthread_mutex_lock(&p->lock);
    if (p->made == p->given) {
        double start = fth_now();
        while (p->made == p->given) pthread_cond_wait(&p->changed, &p->lock);
        p->waited += fth_now() - start;
    }
    const slot *s = &p->slots[p->given++ % p->n];
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return give(s, out);
}

double fth_prefetch_waited(const fth_prefetch *p) {
    return p->waited;
}
