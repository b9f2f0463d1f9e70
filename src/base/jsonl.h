/* jsonl.h: files of one JSON object a line, to which lines are appended. */
#ifndef FTH_BASE_JSONL_H
#define FTH_BASE_JSONL_H

#include <jansson.h>

#include "base/error.h"
#include "base/str.h"

typedef struct fth_jsonl {
    char *path; /* NULL: not open */
    int fd;
    fth_str line;
} fth_jsonl;

/* Opens or makes the file. The beginning of a line that a crash left at its end is cut off. */
fth_err fth_jsonl_open(fth_jsonl *j, const char *path);

/* Appends one line at once, so that a reader sees whole lines; a full disk is an error here. */
fth_err fth_jsonl_write(fth_jsonl *j, const json_t *object);

/* Closes the file; fine for one that is zeroed or was never opened. */
void fth_jsonl_close(fth_jsonl *j);

#endif
