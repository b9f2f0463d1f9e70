/* pool.h: the threads of a device. They are started once and sleep between runs, so that two
 * devices in a process do not meet, and a process that waits for something else burns no core. */
#ifndef FTH_BACKEND_CPU_POOL_H
#define FTH_BACKEND_CPU_POOL_H

#include "backend/cpu/team.h"
#include "base/error.h"

typedef struct fth_cpu_pool fth_cpu_pool;

/* Work that every thread of a team does its part of. */
typedef void fth_team_work(const fth_team *team, void *context);

/* A pool of n threads, the caller's own among them. */
fth_err fth_pool_new(int n_threads, fth_cpu_pool **out);
void fth_pool_free(fth_cpu_pool *pool);

/* Does the work with all threads; returns when each is done. One caller at a time. */
void fth_pool_run(fth_cpu_pool *pool, fth_team_work *work, void *context);

#endif
