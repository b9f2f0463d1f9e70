/* verb.h: what main.c and the verbs share.
 *
 * A verb is src/cli/NAME.c with fth_verb_NAME and a line in verbs.def. It gets the words after its
 * name, writes results to standard output and everything else to standard error, and returns an
 * error for main to print. */
#ifndef FTH_CLI_VERB_H
#define FTH_CLI_VERB_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/options.h"

#define VERB(name, about) fth_err fth_verb_##name(int argc, char **argv);
#include "cli/verbs.def"
#undef VERB

/* Reads the options of a verb. For --help and --dump-config it prints what was asked for and sets
 * *done: the verb then has nothing more to do. parsed is to be freed in any case. */
fth_err fth_verb_options(const fth_usage *usage, fth_option_group *groups, size_t n, int argc,
                         char **argv, fth_parsed *parsed, bool *done);

#endif
