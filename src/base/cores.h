/* cores.h: how much of the machine's processor this process may use.
 *
 * Linear maps keep a core busy with one thread; a second one on the same core's other hardware
 * thread brings nothing and takes half of the caches. And where a container has time for two
 * processors of sixty-four, sixty-four threads that wait for each other would mostly wait. */
#ifndef FTH_BASE_CORES_H
#define FTH_BASE_CORES_H

#include <stdbool.h>

typedef struct fth_cores {
    int threads; /* of the hardware, that the process may run on */
    int cores;   /* that these belong to. Both are at least 1, and not more than the container, */
                 /* if it is in one, has time for */
} fth_cores;

fth_cores fth_cores_usable(void);

/* The same for a process that may run on the hardware threads whose entry of may_run is true, with
 * the machine's /proc and /sys in the folder root. */
fth_cores fth_cores_under(const char *root, const bool *may_run, int n);

#endif
