/* spool.h: copies of what can be read only once, for text is read twice: for its vocabulary and for
 * its ids. */
#ifndef FTH_DATA_SPOOL_H
#define FTH_DATA_SPOOL_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "text/lines.h"

/* Replaces "-" (standard input) and pipes among files[0..n) by copies in folder; ordinary files
 * stay what they are, if they can be read. Paths come from the arena. *made counts the copies,
 * folder/copy-0 and so on. */
fth_err fth_spool(const char *folder, fth_text_file *files, size_t n, fth_arena *arena, int *made);

/* Removes the copies. */
fth_err fth_spool_remove(const char *folder, int made);

#endif
