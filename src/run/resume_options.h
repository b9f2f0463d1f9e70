/* resume_options.h: the options that a run was begun with, and those that it goes on with. */
#ifndef FTH_RUN_RESUME_OPTIONS_H
#define FTH_RUN_RESUME_OPTIONS_H

#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

/* Compares lines "key: value" of a checkpoint with those of the call. FTH_BAD_CONFIG with both
 * values where one differs that must be equal; *changed gets the others, "--lr 0.001 (was 0.01),
 * ...", none: stays empty. */
fth_err fth_run_options_compare(const char *run, const char *before, const char *now,
                                fth_str *changed);

/* Writes RUN/config.yaml. */
fth_err fth_run_options_keep(const char *run, const char *yaml);

/* What a run that has begun has for an option that is a whole number; -1: it has not begun. */
fth_err fth_run_options_stored(const char *run, const char *key, int64_t *value);

#endif
