/* command.h: a command line of the program itself, which grows word by word. */
#ifndef FTH_SWEEP_COMMAND_H
#define FTH_SWEEP_COMMAND_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

enum { FTH_COMMAND_WORDS = 256 };

/* A zeroed command is empty and may be freed. */
typedef struct fth_command {
    const char *word[FTH_COMMAND_WORDS]; /* NULL after the last; without the program's name */
    size_t n;
    const char *product; /* file that its standard output becomes when it succeeds; NULL: none */
    fth_arena arena;     /* owns the words */
} fth_command;

fth_err fth_command_add(fth_command *c, const char *word);
fth_err fth_command_addf(fth_command *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* "option=value" as --option=value, which serves switches as well. */
fth_err fth_command_add_options(fth_command *c, const char *const *pair, size_t n);

void fth_command_fini(fth_command *c);

#endif
