/* help.h: fathom help and fathom version. */
#ifndef FTH_CLI_HELP_H
#define FTH_CLI_HELP_H

#include <stdio.h>

#include "base/error.h"

/* A verb of the program. */
typedef struct fth_cli_verb {
    const char *name, *about;
    fth_err (*run)(int argc, char **argv);
} fth_cli_verb;

/* All of them, ended by a NULL name. */
extern const fth_cli_verb fth_cli_verbs[];

const fth_cli_verb *fth_verb_find(const char *name);
fth_err fth_unknown_verb(const char *word);

void fth_print_help(FILE *out);

/* "fathom help train" is "fathom train --help"; --format man, bash, zsh or fish: a manual page or
 * the completion of a shell. */
fth_err fth_help(int argc, char **argv);

/* The version; --verbose: what the program was built with and what it finds on this machine. */
fth_err fth_version(int argc, char **argv);

#endif
