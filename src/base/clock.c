/* clock.c: clock_gettime, in seconds. */
#include "base/clock.h"

double fth_seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double fth_now(void) {
    return fth_seconds(CLOCK_MONOTONIC);
}
