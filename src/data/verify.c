/* verify.c: one thread that asks every data set for its check sums, block by block, and keeps the
 * first fault. */
#include "data/verify.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SETS = 3 };

struct fth_verify {
    const fth_dataset *sets[MOST_SETS];
    int n;
    pthread_t thread;
    bool joined;
    atomic_bool stop, damaged; /* damaged: err and message are there */
    fth_err err;
    char *message;
};

static void *read_all(void *argument) {
    fth_verify *v = argument;
    for (int i = 0; i < v->n && v->err == FTH_OK; i++)
        v->err = fth_dataset_verify(v->sets[i], &v->stop);
    if (v->err != FTH_OK) {
        v->message = strdup(fth_error_message());
        atomic_store(&v->damaged, true);
    }
    return NULL;
}

fth_err fth_verify_start(const fth_dataset *const *sets, int n, fth_verify **out) {
    fth_verify *v = calloc(1, sizeof *v);
    if (!v) return fth_fail(FTH_NO_MEMORY, "no memory to verify a data set");
    for (int i = 0; i < n && v->n < MOST_SETS; i++)
        if (sets[i]) v->sets[v->n++] = sets[i];
    const int result = pthread_create(&v->thread, NULL, read_all, v);
    if (result) {
        free(v);
        return fth_fail(FTH_FAILED, "cannot start a thread: %s", strerror(result));
    }
    *out = v;
    return FTH_OK;
}

fth_err fth_verify_found(fth_verify *v) {
    if (!v || !atomic_load(&v->damaged)) return FTH_OK;
    return fth_fail(v->err, "%s", v->message ? v->message : "a damaged data set");
}

static void join(fth_verify *v) {
    if (!v->joined) pthread_join(v->thread, NULL);
    v->joined = true;
}

fth_err fth_verify_wait(fth_verify *v) {
    if (v) join(v);
    return fth_verify_found(v);
}

void fth_verify_free(fth_verify *v) {
    if (!v) return;
    atomic_store(&v->stop, true);
    join(v);
    free(v->message);
    free(v);
}
