/* option_value.h: the value of one option, from text and to text. Used by the files
 * that make up options.h and option_uses.h only. */
#ifndef FTH_BASE_OPTION_VALUE_H
#define FTH_BASE_OPTION_VALUE_H

#include "base/options.h"

/* warmup_updates -> warmup-updates. */
enum { FTH_OPTION_NAME_SIZE = 64 };
void fth_option_name(const fth_option *o, char *name /* [FTH_OPTION_NAME_SIZE] */);

/* Makes the value 0, false, "" or an empty list. */
void fth_option_clear(const fth_option *o, void *field);

/* Reads text as the value of o into *field; an item of a LIST is appended. The strings of the value
 * are copied into the arena. On a value that is not allowed: FTH_USAGE, and the message is the rule
 * alone ("must be a whole number of at least 1"). */
fth_err fth_option_set(const fth_option *o, void *field, const char *text, fth_arena *arena);

/* The word that stands for the value in texts, NULL for a BOOL. */
const char *fth_option_word(const fth_option *o);
/* Appends what the option does, with its bounds and default. */
fth_err fth_option_about(const fth_option *o, fth_str *out);

/* Appends the bounds or choices as words: "at least 1", "from 0 to 10", "one of a, b"; or
 * nothing. */
fth_err fth_option_add_bounds(const fth_option *o, fth_str *out);

#endif
