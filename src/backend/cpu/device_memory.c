/* device_memory.c: the memory of the device, which is the process's own: aligned, from huge pages
 * where it is large, zeroed by the threads that will use it. */
#include "backend/cpu/cpu.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/machine_memory.h"

/* Large pieces begin at a huge page: walks over weights and activations then miss the translation
 * buffer far less often. */
enum { HUGE_PAGE = 1 << 21 };

typedef struct zeroing {
    char *data;
    int64_t bytes;
} zeroing;

static void zero_part(const fth_team *team, void *context) {
    const zeroing *z = context;
    const fth_cpu_share mine = fth_team_share(team, z->bytes, 4096);
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

fth_err fth_cpu_memory(fth_device *dev, int64_t *free_bytes, int64_t *total_bytes) {
    (void)dev;
    return fth_machine_memory_under("", free_bytes, total_bytes);
}
