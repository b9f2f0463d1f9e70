/* verify.h: a thread that reads data sets from end to end, by their check sums, while training
 * reads them.
 *
 * Reading all before the first update would take minutes with large data sets; without it a flipped
 * bit trains. Whoever saves what was trained waits for the end first. */
#ifndef FTH_DATA_VERIFY_H
#define FTH_DATA_VERIFY_H

#include "base/error.h"
#include "data/dataset.h"

typedef struct fth_verify fth_verify;

/* The data sets (NULL: none) must outlive it. */
fth_err fth_verify_start(const fth_dataset *const *sets, int n, fth_verify **out);

/* What has been found so far: FTH_BAD_INPUT with file and position, or FTH_OK. NULL is sound. */
fth_err fth_verify_found(fth_verify *v);

/* The same after all has been read. */
fth_err fth_verify_wait(fth_verify *v);

/* Stops it where it is. */
void fth_verify_free(fth_verify *v);

#endif
