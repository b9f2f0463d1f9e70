/* machine_memory.c: reads /proc/meminfo, then takes the smallest limit that a control group sets
 * less what it uses. */
#include "base/machine_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup.h"

/* The number after a name in a file of lines "name number"; -1: not there. */
static int64_t number_after(const char *folder, const char *file, const char *name) {
    char path[4096 + 64], line[256];
    int64_t found = -1;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "r");
    while (f && found < 0 && fgets(line, sizeof line, f)) {
        const size_t n = strlen(name);
        if (strncmp(line, name, n) == 0 && line[n] == ' ') found = strtoll(line + n, NULL, 10);
    }
    if (f) fclose(f);
    return found;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

typedef struct amounts {
    int64_t free, total;
} amounts;

/* A group's limit, less what its processes hold: files that were read and can be dropped are not
 * theirs. */
static void visit_group(void *context, const char *folder, bool newer) {
    amounts *least = context;
    const int64_t limit = fth_cgroup_number(folder, newer ? "memory.max" : "memory.limit_in_bytes");
    const int64_t used =
        fth_cgroup_number(folder, newer ? "memory.current" : "memory.usage_in_bytes");
    const int64_t files =
        number_after(folder, "memory.stat", newer ? "inactive_file" : "total_inactive_file");
    if (limit < 0) return;
    least->total = smaller(limit, least->total);
    if (used < 0) return;
    const int64_t held = used - smaller(larger(files, 0), used);
    least->free = smaller(least->free, larger(limit - held, 0));
}

fth_err fth_machine_memory_under(const char *root, int64_t *free_bytes, int64_t *total_bytes) {
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/proc", root);
    const int64_t available = number_after(folder, "meminfo", "MemAvailable:");
    const int64_t total = number_after(folder, "meminfo", "MemTotal:");
    if (available < 0 || total < 0)
        return fth_fail(FTH_FAILED, "%s/meminfo does not say how much memory there is", folder);
    amounts least = {available * 1024, total * 1024};
    fth_cgroup_walk(root, "memory", visit_group, &least);
    *free_bytes = least.free;
    *total_bytes = least.total;
    return FTH_OK;
}
