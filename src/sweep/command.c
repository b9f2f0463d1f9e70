/* command.c: words in an arena, with a bound that no sensible command reaches. */
#include "sweep/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fth_err fth_command_add(fth_command *c, const char *word) {
    if (c->n + 1 >= FTH_COMMAND_WORDS)
        return fth_fail(FTH_BAD_INPUT, "%s: more than %d words of options", c->word[0],
                        FTH_COMMAND_WORDS - 1);
    c->word[c->n] = fth_arena_strdup(&c->arena, word);
    if (!c->word[c->n]) return fth_fail(FTH_NO_MEMORY, "no memory for a command line");
    c->n++;
    return FTH_OK;
}

fth_err fth_command_addf(fth_command *c, const char *format, ...) {
    char *word = NULL;
    va_list list;
    va_start(list, format);
    const int n = vasprintf(&word, format, list);
    va_end(list);
    if (n < 0) return fth_fail(FTH_NO_MEMORY, "no memory for a command line");
    fth_err err = fth_command_add(c, word);
    free(word);
    return err;
}

fth_err fth_command_add_options(fth_command *c, const char *const *pair, size_t n) {
    for (size_t i = 0; i < n; i++) FTH_TRY(fth_command_addf(c, "--%s", pair[i]));
    return FTH_OK;
}

void fth_command_fini(fth_command *c) {
    fth_arena_fini(&c->arena);
    *c = (fth_command){0};
}
