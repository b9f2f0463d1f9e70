/* map.h: a file that is mapped for reading, not read. */
#ifndef FTH_DATA_MAP_H
#define FTH_DATA_MAP_H

#include <stddef.h>

#include "base/error.h"

/* A regular file of at least `least` bytes. A pipe is refused, not waited for. On failure *map is
 * NULL. */
fth_err fth_map_file(const char *path, size_t least, void **map, size_t *size);

/* NULL is fine. */
void fth_unmap_file(void *map, size_t size);

#endif
