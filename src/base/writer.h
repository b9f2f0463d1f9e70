/* writer.h: writes a file piece by piece.
 *
 * The bytes go to a temporary name in the same folder; commit syncs it and renames it, so that a
 * reader sees the old file or the whole new one. A device or a pipe is written to directly. The
 * check sum is taken on the way, which saves reading a file of many gigabytes again. */
#ifndef FTH_BASE_WRITER_H
#define FTH_BASE_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct fth_writer {
    int fd;        /* valid while path is not NULL */
    char *path;    /* what the file will be called; NULL: nothing is open */
    char *temp;    /* what it is called until commit; NULL when path is written directly */
    uint64_t size; /* bytes written so far */
    uint32_t crc;  /* fth_crc32 of them */
    size_t n_held; /* bytes in held */
    char *held;    /* [64 KiB] small pieces are gathered here */
} fth_writer;

/* Begins the file. A zeroed writer, or one whose open failed, may be given to fini. */
fth_err fth_writer_open(fth_writer *w, const char *path);

fth_err fth_writer_put(fth_writer *w, const void *data, size_t size);

/* Makes the file appear under its name, on the disk. size and crc stay readable until fini. */
fth_err fth_writer_commit(fth_writer *w);

/* Frees everything; a file that was not committed is removed. */
void fth_writer_fini(fth_writer *w);

#endif
