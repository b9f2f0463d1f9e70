/* devices.c: reads the list and leaves a rank only the GPU that is its own
 * (CUDA_VISIBLE_DEVICES). */
#include "cli/devices.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *next_of(const char *item) {
    item += strcspn(item, ",");
    return item + (*item == ',');
}

/* cuda:N -> N, cpu -> -1; false: neither. */
static bool read_item(const char *item, int *gpu) {
    const size_t length = strcspn(item, ",");
    *gpu = -1;
    if (length == 3 && strncmp(item, "cpu", 3) == 0) return true;
    const bool digits = length > 5 && length < 10 && strspn(item + 5, "0123456789") == length - 5;
    if (strncmp(item, "cuda:", 5) != 0 || !digits) return false;
    *gpu = atoi(item + 5);
    return true;
}

fth_err fth_devices_count(const char *list, int *count) {
    *count = 0;
    for (const char *item = list; *item; item = next_of(item)) {
        int gpu;
        if (!read_item(item, &gpu))
            return fth_fail(FTH_USAGE, "--devices %.100s: must be a list of cpu and cuda:N", list);
        ++*count;
    }
    return FTH_OK;
}

/* The GPUs that this process may see are those that somebody has left to it. */
static void see_only(int gpu) {
    char text[256];
    const char *seen = getenv("CUDA_VISIBLE_DEVICES");
    for (int i = 0; seen && i < gpu && *seen; i++) seen = next_of(seen);
    if (seen && *seen)
        snprintf(text, sizeof text, "%.*s", (int)strcspn(seen, ","), seen);
    else
        snprintf(text, sizeof text, "%d", gpu);
    setenv("CUDA_VISIBLE_DEVICES", text, 1);
}

void fth_devices_choose(const char *list, int rank, const char **name) {
    int count = 0, gpu = -1;
    if (fth_devices_count(list, &count) != FTH_OK || count == 0) return;
    const char *item = list;
    for (int i = 0; i < rank % count; i++) item = next_of(item);
    (void)read_item(item, &gpu);
    if (gpu >= 0) see_only(gpu);
    *name = gpu >= 0 ? "cuda" : "cpu";
}
