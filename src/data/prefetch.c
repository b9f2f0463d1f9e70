/* prefetch.c: a ring of batches between one thread that makes and one that takes, with the time
 * that the taker has waited. */
#include "data/prefetch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

typedef struct slot {
    fth_packed batch;
    fth_err err;
    char *message; /* of err */
} slot;

struct fth_prefetch {
    fth_batcher *batcher;
    slot *slots; /* [n] go round; one is with the user */
    int n;
    int64_t made, given; /* batches so far */
    int stop, started;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    double waited;
};

static void *make_batches(void *argument) {
    fth_prefetch *p = argument;
    pthread_mutex_lock(&p->lock);
    for (int last = 0; !last;) {
        /* the slot given last is in use until the next is asked for */
        while (!p->stop && p->made - p->given == p->n - 1) pthread_cond_wait(&p->changed, &p->lock);
        if (p->stop) break;
        slot *s = &p->slots[p->made % p->n];
        pthread_mutex_unlock(&p->lock);
        s->err = fth_batcher_next(p->batcher, &s->batch);
        s->message = s->err ? strdup(fth_error_message()) : NULL;
        last = s->err != FTH_OK || s->batch.n_sent == 0;
        pthread_mutex_lock(&p->lock);
        p->made++;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

fth_err fth_prefetch_new(fth_batcher *b, int32_t max_tokens, int depth, fth_prefetch **out) {
    fth_err err = FTH_OK;
    fth_prefetch *p = calloc(1, sizeof *p);
    if (!p) return fth_fail(FTH_NO_MEMORY, "no memory to make batches ahead");
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    p->batcher = b;
    p->n = depth + 1;
    p->slots = calloc((size_t)p->n, sizeof *p->slots);
    if (!p->slots) {
        err = fth_fail(FTH_NO_MEMORY, "no memory to make batches ahead");
        goto fail;
    }
    for (int i = 0; i < p->n; i++)
        FTH_TRY_OR(err, fth_packed_init(&p->slots[i].batch, max_tokens), fail);
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
    for (int i = 0; p->slots && i < p->n; i++) {
        fth_packed_fini(&p->slots[i].batch);
        free(p->slots[i].message);
    }
    free(p->slots);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

fth_err fth_prefetch_next(fth_prefetch *p, const fth_packed **batch) {
    slot *before = p->given ? &p->slots[(p->given - 1) % p->n] : NULL;
    if (before && (before->err != FTH_OK || before->batch.n_sent == 0)) { /* it has ended */
        *batch = &before->batch;
        return before->err ? fth_fail(before->err, "%s", before->message ? before->message : "")
                           : FTH_OK;
    }
    pthread_mutex_lock(&p->lock);
    if (p->made == p->given) {
        double start = fth_now();
        while (p->made == p->given) pthread_cond_wait(&p->changed, &p->lock);
        p->waited += fth_now() - start;
    }
    slot *s = &p->slots[p->given++ % p->n];
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    *batch = &s->batch;
    return s->err ? fth_fail(s->err, "%s", s->message ? s->message : "batches failed") : FTH_OK;
}

double fth_prefetch_waited(const fth_prefetch *p) {
    return p->waited;
}
