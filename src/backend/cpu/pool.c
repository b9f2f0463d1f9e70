/* pool.c: threads that sleep on a condition between runs and on a futex inside of them; work is
 * announced by a number that counts up. */
#include "backend/cpu/pool.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/cores.h"

struct fth_cpu_pool {
    fth_barrier barrier;
    int n_threads, n_started;
    pthread_t *threads; /* [n_threads - 1] */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_uint run; /* counts the runs; a change is the sign to work */
    bool stop;       /* under lock */
    fth_team_work *work;
    void *context;
    atomic_int next_number; /* threads take their numbers as they start */
};

/* A thread that is about to sleep counts itself first and the kernel looks at the phase once more:
 * either the one that ends the phase sees the sleeper, or the sleeper sees the new phase. */
void fth_barrier_sleep(fth_barrier *b, unsigned phase) {
    atomic_fetch_add(&b->asleep, 1);
    while (atomic_load(&b->phase) == phase) {
#ifdef __linux__
        syscall(SYS_futex, &b->phase, FUTEX_WAIT_PRIVATE, phase, NULL, NULL, 0);
#else
        sched_yield();
#endif
    }
    atomic_fetch_sub(&b->asleep, 1);
}

void fth_barrier_wake(fth_barrier *b) {
#ifdef __linux__
    syscall(SYS_futex, &b->phase, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
#else
    (void)b;
#endif
}

/* Waits for a run after `seen`: for a moment awake, since programs follow each other closely while
 * training, then asleep. False: the pool ends. */
static bool next_run(fth_cpu_pool *p, unsigned *seen) {
    for (int spin = 0; spin < p->barrier.spins; spin++) {
        const unsigned now = atomic_load_explicit(&p->run, memory_order_acquire);
        if (now != *seen) break;
        fth_look_again();
    }
    pthread_mutex_lock(&p->lock);
    while (atomic_load_explicit(&p->run, memory_order_acquire) == *seen && !p->stop)
        pthread_cond_wait(&p->wake, &p->lock);
    const bool stop = p->stop;
    *seen = atomic_load_explicit(&p->run, memory_order_acquire);
    pthread_mutex_unlock(&p->lock);
    return !stop;
}

static void *thread_main(void *arg) {
    fth_cpu_pool *p = arg;
    const fth_team team = {atomic_fetch_add(&p->next_number, 1), p->n_threads, &p->barrier};
    unsigned seen = 0;
    while (next_run(p, &seen)) {
        p->work(&team, p->context);
        fth_team_wait(&team);
    }
    return NULL;
}

void fth_pool_run(fth_cpu_pool *p, fth_team_work *work, void *context) {
    const fth_team team = {0, p->n_threads, &p->barrier};
    if (p->n_threads > 1) {
        pthread_mutex_lock(&p->lock);
        p->work = work;
        p->context = context;
        atomic_fetch_add_explicit(&p->run, 1, memory_order_release);
        pthread_cond_broadcast(&p->wake);
        pthread_mutex_unlock(&p->lock);
    }
    work(&team, context);
    fth_team_wait(&team);
}

fth_err fth_pool_new(int n_threads, fth_cpu_pool **out) {
    *out = NULL;
    fth_cpu_pool *p = aligned_alloc(_Alignof(fth_cpu_pool), sizeof *p);
    if (!p) return fth_fail(FTH_NO_MEMORY, "no memory for %d threads", n_threads);
    memset(p, 0, sizeof *p);
    p->n_threads = n_threads;
    /* about 100 microseconds; none when threads have to take turns anyway */
    p->barrier.spins = n_threads <= fth_cores_usable().threads ? 100000 : 0;
    atomic_store(&p->next_number, 1);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    p->threads = calloc((size_t)n_threads, sizeof *p->threads);
    int failed = p->threads ? 0 : 1;
    for (; !failed && p->n_started < n_threads - 1; p->n_started += !failed)
        failed = pthread_create(&p->threads[p->n_started], NULL, thread_main, p);
    if (failed) {
        fth_err err = fth_fail(FTH_FAILED, "thread %d of %d could not be started", p->n_started + 2,
                               n_threads);
        fth_pool_free(p);
        return err;
    }
    *out = p;
    return FTH_OK;
}

void fth_pool_free(fth_cpu_pool *p) {
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_started; i++) pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p->threads);
    free(p);
}
