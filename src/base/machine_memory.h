/* machine_memory.h: how much of the machine's memory this process may take. */
#ifndef FTH_BASE_MACHINE_MEMORY_H
#define FTH_BASE_MACHINE_MEMORY_H

#include <stdint.h>

#include "base/error.h"

/* What is free and what there is in all, of the machine or of the container, job or service that
 * the process is in. What the kernel keeps of files counts as free. root: "", or a made-up tree
 * with /proc and /sys. */
fth_err fth_machine_memory_under(const char *root, int64_t *free_bytes, int64_t *total_bytes);

#endif
