/* option_pages.h: what a table of options gives beside --help: a manual page, and completion for
 * shells. A verb prints them for --help=FORMAT; cli/help.c puts those of all verbs together. */
#ifndef FTH_BASE_OPTION_PAGES_H
#define FTH_BASE_OPTION_PAGES_H

#include "base/options.h"

/* "man", "bash", "zsh" or "fish". FTH_USAGE for another format. */
fth_err fth_options_page(const char *format, const fth_usage *usage, const fth_option_group *groups,
                         size_t n, fth_str *out);

/* Text of a manual page: what roff would take for a command of its own is escaped. */
fth_err fth_add_roff(const char *text, fth_str *out);
/* Text between single quotes of a shell; zsh's own signs of a description are escaped too where
 * colons is true. */
fth_err fth_add_quoted(const char *text, bool colons, fth_str *out);

#endif
