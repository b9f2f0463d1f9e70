/* child_process.h: work that may end its process: it is done in a child, which only gives bytes
 * back.
 *
 * For libraries that abort or exit where they should return. The child is a copy (fork), so
 * whatever the work reads needs no copying; what it changes in memory is lost. */
#ifndef FTH_BASE_CHILD_PROCESS_H
#define FTH_BASE_CHILD_PROCESS_H

#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes *bytes, malloc'd, or fails. */
typedef fth_err (*fth_child_work)(void *state, char **bytes, size_t *size);

/* Gives back what work gives: its bytes, or its error with its message. FTH_FAILED when the child
 * ended in any other way; `what` begins the message. The child's standard error is closed: what a
 * dying library prints there says less than the message. */
fth_err fth_in_child(const char *what, fth_child_work work, void *state, char **bytes,
                     size_t *size);

#ifdef __cplusplus
}
#endif
#endif
