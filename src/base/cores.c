/* cores.c: counts one hardware thread for each core that the process may run on, then takes the
 * smallest limit of time of its control groups. */
#include "base/cores.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup.h"

/* ---- cores ---- */

/* Whether a thread is the first one of its core that the process may run on. list: the threads of
 * that core, as in "0,8" or "0-3". */
static bool is_first(const char *list, const bool *may_run, int n, int thread) {
    for (char *end; *list; list = *end == ',' ? end + 1 : "") {
        const long from = strtol(list, &end, 10);
        if (end == list) break;
        const long to = *end == '-' ? strtol(end + 1, &end, 10) : from;
        for (long i = from < 0 ? 0 : from; i <= to && i < n && i < thread; i++)
            if (may_run[i]) return false;
    }
    return true;
}

static int count_cores(const char *root, const bool *may_run, int n) {
    int cores = 0;
    for (int i = 0; i < n; i++) {
        char folder[4096], list[FTH_SYSTEM_LINE];
        if (!may_run[i]) continue;
        snprintf(folder, sizeof folder, "%s/sys/devices/system/cpu/cpu%d/topology", root, i);
        cores +=
            !fth_system_line(folder, "thread_siblings_list", list) || is_first(list, may_run, n, i);
    }
    return cores;
}

/* ---- the container's time ---- */

enum { NO_LIMIT = INT32_MAX };

/* Processors that so much time of each period is worth, a part of one counted whole. */
static int worth(int64_t quota, int64_t period) {
    if (quota <= 0 || period <= 0 || quota / period >= NO_LIMIT) return NO_LIMIT;
    return (int)((quota + period - 1) / period);
}

/* A group's own limit: of the newer kind of groups "QUOTA PERIOD" or "max PERIOD" in one file, of
 * the older kind two files, and a quota of -1. context: the least so far, an int. */
static void visit_group(void *context, const char *folder, bool newer) {
    char line[FTH_SYSTEM_LINE], *end;
    int64_t quota = -1, period = 0;
    if (!newer) {
        quota = fth_cgroup_number(folder, "cpu.cfs_quota_us");
        period = fth_cgroup_number(folder, "cpu.cfs_period_us");
    } else if (fth_system_line(folder, "cpu.max", line)) {
        quota = strtoll(line, &end, 10);
        period = strtoll(end, NULL, 10);
    }
    const int limit = worth(quota, period);
    int *least = context;
    if (limit < *least) *least = limit;
}

static int time_limit(const char *root) {
    int least = NO_LIMIT;
    fth_cgroup_walk(root, "cpu", visit_group, &least);
    return least;
}

/* ---- both ---- */

static int between_one_and(int most, int n) {
    return n > most ? most : n < 1 ? 1 : n;
}

fth_cores fth_cores_under(const char *root, const bool *may_run, int n) {
    const int limit = time_limit(root);
    int threads = 0;
    for (int i = 0; i < n; i++) threads += may_run[i];
    return (fth_cores){between_one_and(limit, threads),
                       between_one_and(limit, count_cores(root, may_run, n))};
}

fth_cores fth_cores_usable(void) {
    cpu_set_t set;
    bool may_run[CPU_SETSIZE] = {false};
    if (sched_getaffinity(0, sizeof set, &set) != 0) return (fth_cores){1, 1};
    for (int i = 0; i < CPU_SETSIZE; i++) may_run[i] = CPU_ISSET(i, &set);
    return fth_cores_under("", may_run, CPU_SETSIZE);
}
