/* clock.h: seconds. */
#ifndef FTH_BASE_CLOCK_H
#define FTH_BASE_CLOCK_H

#include <time.h>

/* Seconds since some moment before the program began. */
double fth_now(void);

/* The same by another clock: CLOCK_THREAD_CPUTIME_ID, of what this thread has had of a core, or
 * CLOCK_PROCESS_CPUTIME_ID, of all threads; or by CLOCK_REALTIME, since 1970, which may be set. */
double fth_seconds(clockid_t clock);

#endif
