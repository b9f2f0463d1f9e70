/* inflate.h: the bytes of one file, unpacked on the way when it is gzip or Zstandard. */
#ifndef FTH_TEXT_INFLATE_H
#define FTH_TEXT_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct fth_inflate fth_inflate;

/* path "-" is standard input. name is what messages call the file; both must outlive the reader. */
fth_err fth_inflate_new(const char *path, const char *name, fth_inflate **out);
void fth_inflate_free(fth_inflate *f);

/* Reads up to size bytes; *got = 0 at the end of the file. */
fth_err fth_inflate_read(fth_inflate *f, void *data, size_t size, size_t *got);

/* Reads all of a file; *data is malloc'd, its size may be 0. */
fth_err fth_inflate_all(const char *path, const char *name, char **data, size_t *size);

/* Bytes of the file itself read so far. */
int64_t fth_inflate_bytes(const fth_inflate *f);

/* Nothing can be read now without waiting for whoever writes into the pipe. */
bool fth_inflate_would_wait(const fth_inflate *f);

#endif
