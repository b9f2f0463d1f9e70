/* batch_memory.h: what the batches of an update take of the machine's memory.
 *
 * The loss of an update is divided by the tokens of all its batches, so all of them are there
 * before the first is run: --update-freq times one batch, on the host whatever the device is. */
#ifndef FTH_RUN_BATCH_MEMORY_H
#define FTH_RUN_BATCH_MEMORY_H

#include "run/run.h"

/* Bytes of n batches. */
int64_t fth_batch_memory(const fth_run_spec *spec, int64_t n);

/* FTH_NO_MEMORY in words when the machine, or the group that the process is in, does not have
 * them. */
fth_err fth_batch_memory_check(const fth_run_spec *spec, int64_t n);

#endif
