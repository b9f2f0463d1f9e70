/* resume_options.h: RUN/config.yaml, the options that a run was begun with and goes on with. */
#ifndef FTH_RUN_RESUME_OPTIONS_H
#define FTH_RUN_RESUME_OPTIONS_H

#include "base/error.h"

/* Writes the options of a run. Fails where the run has a checkpoint and was begun with others, unless they are
 * ones that may change on the way. */
fth_err fth_run_options_keep(const char *run, const char *checkpoints, const char *yaml);

#endif
