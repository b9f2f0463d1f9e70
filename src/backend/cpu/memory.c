#include "backend/cpu/cpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Large pieces begin at a huge page: walks over weights and activations then miss the translation
 * buffer far less often. */
enum { HUGE_PAGE = 1 << 21 };

typedef struct zeroing {
    char *data;
    int64_t bytes;
} zeroing;

static void zero_part(const fth_team *team, void *context) {
    const zeroing *z = context;
    const fth_share mine = fth_team_share(team, z->bytes, 4096);
    memset(z->data + mine.begin, 0, (size_t)(mine.end - mine.begin));
}

fth_err fth_cpu_zero(fth_device *dev, void *data, int64_t bytes) {
    if (bytes < 1 << 20)
        memset(data, 0, (size_t)bytes);
    else
        fth_pool_run(((fth_cpu *)dev)->pool, zero_part, &(zeroing){data, bytes});
    return FTH_OK;
}

fth_err fth_cpu_alloc(fth_device *dev, int64_t bytes, void **out) {
    const size_t align = bytes >= 4 * HUGE_PAGE ? HUGE_PAGE : 64;
    *out = NULL;
    if (posix_memalign(out, align, bytes > 0 ? (size_t)bytes : align) != 0)
        return fth_fail(FTH_NO_MEMORY, "no memory for %" PRId64 " bytes", bytes);
    if (align == HUGE_PAGE) /* a wish, not a need; whole pages only, so that no more is taken */
        (void)madvise(*out, (size_t)bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    return fth_cpu_zero(dev, *out, bytes);
}

void fth_cpu_release(fth_device *dev, void *data) {
    (void)dev;
    free(data);
}

fth_err fth_cpu_copy(fth_device *dev, void *to, const void *from, int64_t bytes) {
    (void)dev;
    memcpy(to, from, (size_t)bytes);
    return FTH_OK;
}

/* The number after a name in a file of "name: number kB" lines, in bytes; -1: not there. */
static int64_t kilobytes_of(const char *path, const char *name) {
    char line[256];
    int64_t found = -1;
    FILE *f = fopen(path, "r");
    while (f && found < 0 && fgets(line, sizeof line, f)) {
        if (strncmp(line, name, strlen(name)) != 0) continue;
        found = strtoll(line + strlen(name), NULL, 10) * 1024;
    }
    if (f) fclose(f);
    return found;
}

/* The number that a file holds; -1: no such file, or "max". */
static int64_t number_in(const char *path) {
    long long n = -1;
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%lld", &n) != 1) n = -1;
    if (f) fclose(f);
    return n;
}

fth_err fth_cpu_memory(fth_device *dev, int64_t *free_bytes, int64_t *total_bytes) {
    (void)dev;
    *free_bytes = kilobytes_of("/proc/meminfo", "MemAvailable:");
    *total_bytes = kilobytes_of("/proc/meminfo", "MemTotal:");
    if (*free_bytes < 0 || *total_bytes < 0)
        return fth_fail(FTH_FAILED, "/proc/meminfo does not say how much memory there is");
    /* a container may be allowed less than the machine has */
    const int64_t limit = number_in("/sys/fs/cgroup/memory.max");
    const int64_t used = number_in("/sys/fs/cgroup/memory.current");
    if (limit > 0 && limit < *total_bytes) *total_bytes = limit;
    if (limit > 0 && used >= 0 && limit - used < *free_bytes)
        *free_bytes = limit > used ? limit - used : 0;
    return FTH_OK;
}
