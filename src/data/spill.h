/* spill.h: bytes that grow while others do, and are put behind each other in one file at the end:
 * each waits in a file without a name, which is gone whatever happens to the process. */
#ifndef FTH_DATA_SPILL_H
#define FTH_DATA_SPILL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

/* In the file to be, every part begins at a multiple of this. */
enum { FTH_SPILL_ALIGN = 64 };

/* A zeroed one may be freed. */
typedef struct fth_spill {
    const char *path; /* of the file to be, for messages; borrowed */
    FILE *file;       /* without a name */
    char *buffer;
    uint32_t crc; /* fth_crc32 of the bytes */
    uint64_t size;
} fth_spill;

/* The bytes wait beside path. */
fth_err fth_spill_open(fth_spill *s, const char *path);
fth_err fth_spill_put(fth_spill *s, const void *data, size_t size);

/* Gives the bytes in their order, and then zeros up to a multiple of FTH_SPILL_ALIGN. */
typedef fth_err fth_spill_take(void *state, const void *data, size_t size);
fth_err fth_spill_give(fth_spill *s, fth_spill_take *take, void *state);

void fth_spill_fini(fth_spill *s);

#endif
