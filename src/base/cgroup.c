/* cgroup.c: reads /proc/self/cgroup and visits the folders of the groups, version 1 and 2, from the
 * process's own up to the root. */
#include "base/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 4096 };

bool fth_system_line(const char *folder, const char *name, char line[FTH_SYSTEM_LINE]) {
    char path[PATH + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    if (!f) return false;
    const bool read = fgets(line, FTH_SYSTEM_LINE, f) != NULL;
    fclose(f);
    return read;
}

int64_t fth_cgroup_number(const char *folder, const char *name) {
    char line[FTH_SYSTEM_LINE], *end;
    if (!fth_system_line(folder, name, line)) return -1;
    const int64_t n = strtoll(line, &end, 10);
    return end == line ? -1 : n;
}

static void visit_upwards(const char *top, char *group, bool newer, fth_cgroup_visit *visit,
                          void *context) {
    for (;;) {
        char folder[PATH], *last = strrchr(group, '/');
        snprintf(folder, sizeof folder, "%s%s", top, group);
        visit(context, folder, newer);
        if (!last) return;
        *last = 0;
    }
}

/* Whether a name is among those of an older group, "cpu,cpuacct" say. */
static bool is_among(char *controllers, const char *name) {
    char *rest = NULL;
    for (char *c = strtok_r(controllers, ",", &rest); c; c = strtok_r(NULL, ",", &rest))
        if (strcmp(c, name) == 0) return true;
    return false;
}

/* A line of /proc/self/cgroup, NUMBER:CONTROLLERS:GROUP, without controllers for the newer kind. */
static void walk_line(const char *root, char *line, const char *controller, fth_cgroup_visit *visit,
                      void *context) {
    char top[PATH], *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) return;
    *group++ = 0;
    group[strcspn(group, "\n")] = 0;
    if (strcmp(group, "/") == 0) *group = 0;
    const bool newer = controllers[1] == 0;
    if (!newer && !is_among(controllers + 1, controller)) return;
    snprintf(top, sizeof top, "%s/sys/fs/cgroup%s%s", root, newer ? "" : "/",
             newer ? "" : controller);
    visit_upwards(top, group, newer, visit, context);
}

void fth_cgroup_walk(const char *root, const char *controller, fth_cgroup_visit *visit,
                     void *context) {
    char path[PATH], line[FTH_SYSTEM_LINE];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) walk_line(root, line, controller, visit, context);
    if (f) fclose(f);
}
