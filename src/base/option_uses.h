/* option_uses.h: an option that has no effect in a call is a mistake of the user, and is refused.
 *
 * Only the command line is looked at: a --config file may be a whole dump, with options for every
 * part of a verb. */
#ifndef FTH_BASE_OPTION_USES_H
#define FTH_BASE_OPTION_USES_H

#include "base/options.h"

/* Fails when one of the fields, which NULL ends, is on the command line: "--seed 7: RULE". */
fth_err fth_refuse_options(const fth_option_group *groups, size_t n, const char *const *fields,
                           const char *rule);

/* The same for one field, and for all options of a group. */
fth_err fth_refuse_option(const fth_option_group *groups, size_t n, const char *field,
                          const char *rule);
fth_err fth_refuse_group(const fth_option_group *group, const char *rule);

/* An option that only some parts of a verb use, each with a blank before and behind it: the metrics
 * " bleu chrf " of score. */
typedef struct fth_option_use {
    const char *field, *parts;
} fth_option_use;

/* Fails for an option that the part does not use: "--stem: chrf does not use it, only rouge". */
fth_err fth_check_uses(const fth_option_group *groups, size_t n, const fth_option_use *uses,
                       size_t n_uses, const char *part);

#endif
