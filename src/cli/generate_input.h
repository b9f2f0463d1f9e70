/* generate_input.h: the lines that generate answers, taken in as many at once as are there.
 *
 * From a pipe, no more are waited for than those that have come: so a program that writes a line
 * and waits for its answer gets it. */
#ifndef FTH_CLI_GENERATE_INPUT_H
#define FTH_CLI_GENERATE_INPUT_H

#include "base/log.h"
#include "text/lines.h"
#include "decode/generator.h"

/* What becomes of a line that is not UTF-8. */
typedef enum fth_on_bad_line {
    FTH_BAD_LINE_SKIP,
    FTH_BAD_LINE_REPLACE,
    FTH_BAD_LINE_STOP
} fth_on_bad_line;

enum { FTH_MOST_LINES = 4096 };

typedef struct fth_generate_input {
    fth_text_file text_file, prefix_file, constraint_file;
    fth_lines *text, *prefix, *constraints; /* the last two NULL: none */
    fth_on_bad_line on_bad_line;
    fth_input lines[FTH_MOST_LINES]; /* [n] the newest, their texts malloc'd */
    int64_t n, number;               /* number: lines taken so far */
    int64_t skipped, replaced;
} fth_generate_input;

/* Paths must outlive it; "-" is standard input, prefix and constraints "": none. */
fth_err fth_generate_input_open(fth_generate_input *in, const char *text, const char *prefix,
                                const char *constraints, fth_on_bad_line on_bad_line);
void fth_generate_input_fini(fth_generate_input *in);

/* Takes up to `most` lines in place of those before; n = 0 at the end. Bad lines are named in the
 * log. */
fth_err fth_generate_input_next(fth_generate_input *in, int64_t most, fth_log *log);

#endif
