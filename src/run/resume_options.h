/* resume_options.h: the options that a run was begun with, and those that it goes on with. */
#ifndef FTH_RUN_RESUME_OPTIONS_H
#define FTH_RUN_RESUME_OPTIONS_H

#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "run/run.h"

/* Compares lines "key: value" of a checkpoint with those of the call, by what the tables of options
 * say of each. FTH_BAD_CONFIG with both values where one differs that must be equal; *changed gets
 * the others, "--lr 0.001 (was 0.01), ...", none: stays empty. */
fth_err fth_run_options_compare(const fth_run_spec *spec, const char *before, fth_str *changed);

/* Writes RUN/config.yaml. FTH_FAILED when there is an option that no table says this of. */
fth_err fth_run_options_keep(const fth_run_spec *spec);

/* What a run that has begun has for an option that is a whole number; -1: it has not begun. */
fth_err fth_run_options_stored(const char *run, const char *key, int64_t *value);

#endif
