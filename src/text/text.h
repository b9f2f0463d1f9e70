/* text.h: the lines of a text file, as the scores read them.
 *
 * A line ends at LF, and only there; white space at its end (a CR too) is cut off; a last line
 * without LF counts. This is how sacreBLEU reads files. */
#ifndef FTH_TEXT_TEXT_H
#define FTH_TEXT_TEXT_H

#include <stddef.h>

#include "base/error.h"
#include "base/str.h"

/* A borrowed piece of UTF-8. It may hold NUL bytes and needs none at its end. */
typedef struct fth_text {
    const char *text; /* [length] */
    size_t length;
} fth_text;

static inline fth_text fth_str_view(const fth_str *s) {
    return (fth_text){s->text ? s->text : "", s->length};
}

typedef struct fth_text_lines {
    fth_text *line; /* [n] views into data */
    size_t n;
    char *data; /* the file */
} fth_text_lines;

/* The lines of the text of a file, which is malloc'd and becomes part of out, whatever comes of it.
 * Text that is not UTF-8 is FTH_BAD_INPUT, named with its line. A zeroed fth_text_lines, or one
 * that failed, may be given to fini. */
fth_err fth_text_lines_take(char *data, size_t size, const char *name, fth_text_lines *out);
void fth_text_lines_fini(fth_text_lines *lines);

/* What is compared: n hypotheses, each with n_refs references. All borrowed. */
typedef struct fth_text_pairs {
    const fth_text *hyp;        /* [n] */
    const fth_text *const *ref; /* [n_refs][n] */
    size_t n, n_refs;
} fth_text_pairs;

#endif
