/* set_encoder.h: a probe set of an encoder: sentences or pictures of a data set with what its head
 * is to say of them. */
#ifndef FTH_PROBE_SET_ENCODER_H
#define FTH_PROBE_SET_ENCODER_H

#include "data/folder.h"
#include "probe/set.h"

/* Writes n chosen samples as a batch file (doc/formats.md#batches-and-traces). What is hidden
 * follows from the seed, as in validation. */
fth_err fth_probe_set_encoder(const fth_folder *folder, const fth_dataset *data,
                              const fth_config *c, const int64_t *chosen, int64_t n, uint64_t seed,
                              const char *path);

#endif
