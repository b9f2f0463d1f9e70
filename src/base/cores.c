#include "base/cores.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1024, PATH = 4096 };

/* The first line of a file; false: there is none. */
static bool read_line(const char *path, char line[LINE]) {
    FILE *f = fopen(path, "r");
    if (!f) return false;
    const bool read = fgets(line, LINE, f) != NULL;
    fclose(f);
    return read;
}

/* ---- cores ---- */

/* Whether a thread is the first one of its core that the process may run on. list: the threads of that core,
 * as in "0,8" or "0-3". */
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
        char path[PATH], list[LINE];
        if (!may_run[i]) continue;
        snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 root, i);
        cores += !read_line(path, list) || is_first(list, may_run, n, i);
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

/* A group's own limit: of the newer kind of groups "QUOTA PERIOD" or "max PERIOD" in one file, of the older
 * kind two files, and a quota of -1. */
static int limit_of_group(const char *folder) {
    char path[PATH + 32], quota[LINE], period[LINE];
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (read_line(path, quota)) {
        char *end;
        const int64_t time = strtoll(quota, &end, 10);
        return worth(time, strtoll(end, NULL, 10));
    }
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_line(path, quota)) return NO_LIMIT;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!read_line(path, period)) return NO_LIMIT;
    return worth(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

/* The least limit of a group and those above it. Inside of a container the upper part of the name may not
 * exist, and the top is the container's own group. */
static int limit_of_groups(const char *top, char *group) {
    for (int least = NO_LIMIT;;) {
        char folder[PATH], *last = strrchr(group, '/');
        snprintf(folder, sizeof folder, "%s%s", top, group);
        const int limit = limit_of_group(folder);
        if (limit < least) least = limit;
        if (!last) return least;
        *last = 0;
    }
}

/* Whether the controllers of an older group, "cpu,cpuacct" say, are those of time. */
static bool has_cpu(char *controllers) {
    char *rest = NULL;
    for (char *c = strtok_r(controllers, ",", &rest); c; c = strtok_r(NULL, ",", &rest))
        if (strcmp(c, "cpu") == 0) return true;
    return false;
}

/* A line of /proc/self/cgroup, NUMBER:CONTROLLERS:GROUP, without controllers for the newer kind. */
static int limit_of_line(const char *root, char *line) {
    char top[LINE], *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) return NO_LIMIT;
    *group++ = 0;
    group[strcspn(group, "\n")] = 0;
    if (strcmp(group, "/") == 0) *group = 0;
    const bool newer = controllers[1] == 0;
    if (!newer && !has_cpu(controllers + 1)) return NO_LIMIT;
    snprintf(top, sizeof top, "%s/sys/fs/cgroup%s", root, newer ? "" : "/cpu");
    return limit_of_groups(top, group);
}

static int time_limit(const char *root) {
    char path[PATH], line[LINE];
    int least = NO_LIMIT;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        const int limit = limit_of_line(root, line);
        if (limit < least) least = limit;
    }
    if (f) fclose(f);
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
