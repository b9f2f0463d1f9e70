/* cgroup.h: the control groups that hold this process: what a container, a job or a service may
 * use. */
#ifndef FTH_BASE_CGROUP_H
#define FTH_BASE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* Sees the folder of a group, which may not exist. newer: groups of the second kind. */
typedef void fth_cgroup_visit(void *context, const char *folder, bool newer);

/* The process's own group and those above it, of the newer kind and of the older one that has this
 * controller ("cpu", "memory"). root: "", or a made-up tree. Inside of a container the upper part
 * of a group's name may not exist, and the top is the container's own group. */
void fth_cgroup_walk(const char *root, const char *controller, fth_cgroup_visit *visit,
                     void *context);

enum { FTH_SYSTEM_LINE = 1024 };

/* The first line of folder/name, a file of /proc or /sys; false: there is none. */
bool fth_system_line(const char *folder, const char *name, char line[FTH_SYSTEM_LINE]);

/* The number there; -1: no such file, or "max". */
int64_t fth_cgroup_number(const char *folder, const char *name);

#endif
