/* memory_check.h: is there memory for a run? Asked before anything is built.
 *
 * The loss of an update is divided by the tokens of all its batches. They are counted before the
 * first is run and then made one after the other, so --update-freq takes no memory; but in a
 * pipeline several of them are on their way, and there all are made first. */
#ifndef FTH_RUN_MEMORY_CHECK_H
#define FTH_RUN_MEMORY_CHECK_H

#include "run/run.h"

/* Batches that are made ahead, and those that an update has at a time. */
enum { FTH_BATCHES_AHEAD = 4 };
int64_t fth_batches_held(const fth_run_spec *spec);

/* Bytes of them, on the host whatever the device is. */
int64_t fth_batch_memory(const fth_run_spec *spec);

/* FTH_NO_MEMORY in words when the machine, or the group that the process is in, does not have
 * them. */
fth_err fth_batch_memory_check(const fth_run_spec *spec);

/* Whether there is memory for the least that this model takes. */
fth_err fth_run_size_check(const fth_run_spec *spec, fth_device *device, const fth_config *config);

#endif
