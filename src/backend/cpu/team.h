/* team.h: the threads that work on an operation together, how they share rows and how they wait for
 * each other. Shares depend only on the sizes and the number of threads: runs repeat bit by bit. */
#ifndef FTH_BACKEND_CPU_TEAM_H
#define FTH_BACKEND_CPU_TEAM_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct fth_barrier {
    _Alignas(64) atomic_int arrived;
    _Alignas(64) atomic_uint phase;
    _Alignas(64) atomic_int asleep; /* threads that wait in the kernel */
    int spins;                      /* how often a waiting thread looks before it goes to sleep */
} fth_barrier;

typedef struct fth_team {
    int thread, n_threads;
    fth_barrier *barrier;
} fth_team;

/* One look of a waiting thread. No `pause` here: on a virtual machine a loop of them makes the host
 * take the core away (pause-loop exiting), 25 to 45 microseconds for every operation. */
static inline void fth_look_again(void) {
    __asm__ volatile("" ::: "memory");
}

/* Sleeps until the phase is another; wakes those who sleep (pool.c). */
void fth_barrier_sleep(fth_barrier *b, unsigned phase);
void fth_barrier_wake(fth_barrier *b);

/* Waits until every thread of the team has come here. Looks for longer than a balanced operation
 * makes anyone wait; then sleeps, so that a machine with other work to do gets on with it. */
static inline void fth_team_wait(const fth_team *team) {
    if (team->n_threads == 1) return;
    fth_barrier *b = team->barrier;
    const unsigned phase = atomic_load_explicit(&b->phase, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&b->arrived, 1, memory_order_acq_rel) == team->n_threads - 1) {
        atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
        atomic_store(&b->phase, phase + 1);
        if (atomic_load(&b->asleep) > 0) fth_barrier_wake(b);
        return;
    }
    for (int spin = 0; spin < b->spins; spin++) {
        if (atomic_load_explicit(&b->phase, memory_order_acquire) != phase) return;
        fth_look_again();
    }
    fth_barrier_sleep(b, phase);
}

typedef struct fth_cpu_share {
    int64_t begin, end;
} fth_cpu_share;

/* A thread's share of n things that are handed out in groups of `grain`. */
static inline fth_cpu_share fth_team_share(const fth_team *team, int64_t n, int64_t grain) {
    const int64_t groups = (n + grain - 1) / grain;
    const int64_t begin = groups * team->thread / team->n_threads * grain;
    const int64_t end = groups * (team->thread + 1) / team->n_threads * grain;
    return (fth_cpu_share){begin < n ? begin : n, end < n ? end : n};
}

#endif
