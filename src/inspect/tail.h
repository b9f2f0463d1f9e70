/* tail.h: reads a file of lines that another program may still be writing.
 *
 * Each poll hands out the whole lines that came since the last one; the beginning of a line that
 * has no end yet waits for its rest. A file that was replaced or cut is read again from its start.
 * Memory is bounded: a line longer than FTH_TAIL_LINE is passed over and counted. */
#ifndef FTH_INSPECT_TAIL_H
#define FTH_INSPECT_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"

enum { FTH_TAIL_LINE = 16 << 20 }; /* bytes */

typedef struct fth_tail {
    char *path;
    dev_t device; /* which file it was, to see that it was replaced */
    ino_t inode;
    off_t offset;    /* of the next byte to read */
    fth_str rest;    /* of a line without an end */
    bool skipping;   /* inside a line that is too long */
    int64_t line;    /* number of the newest whole line, from 1 */
    int64_t skipped; /* lines that were too long */
    double modified; /* when the file was last written, seconds since 1970; 0: it is not there */
} fth_tail;

/* What is done with the lines. text has no end of line and a NUL after its length bytes. */
typedef struct fth_tail_reader {
    fth_err (*line)(void *context, char *text, size_t length);
    void (*restart)(void *context); /* what was read so far is void */
    void *context;
} fth_tail_reader;

fth_err fth_tail_init(fth_tail *t, const char *path);

/* Reads what is new. *changed says whether there was anything. FTH_NOT_FOUND without the file. */
fth_err fth_tail_poll(fth_tail *t, const fth_tail_reader *reader, bool *changed);

void fth_tail_fini(fth_tail *t);

#endif
