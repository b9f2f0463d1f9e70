/* sample.h: a part of a text that is too large to be kept, every line with the same chance.
 *
 * A line is kept while a number drawn for it (Philox, by its place in the text) is below a bound;
 * whenever the lines kept are more than the budget, the bound is halved and the lines above it are
 * dropped. So the sample depends on the text alone, keeps the order of the lines and needs one
 * pass. A text within the budget is kept whole. */
#ifndef FTH_DATA_SAMPLE_H
#define FTH_DATA_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { FTH_SAMPLE_LINE = 16 }; /* bytes of bookkeeping of a line */

/* A zeroed sample with a budget is ready and may be freed. */
typedef struct fth_sample {
    size_t budget; /* bytes of text and bookkeeping kept at most; one line is always kept */
    char *bytes;   /* [capacity] for each line: sample_line, then its text */
    size_t size, capacity;
    uint64_t seen;   /* lines offered */
    uint64_t kept;   /* lines in bytes */
    unsigned halved; /* a line stays with probability 2^-halved */
    size_t read;     /* where fth_sample_next stands */
} fth_sample;

fth_err fth_sample_add(fth_sample *s, const char *text, size_t length);

/* The same, with what has more than `longest` characters between two blanks cut into lines of that
 * many. *cut is raised by 1 where that happened. The text is valid UTF-8. */
fth_err fth_sample_add_cut(fth_sample *s, const char *text, size_t length, size_t longest,
                           int64_t *cut);
void fth_sample_fini(fth_sample *s);

/* The lines kept, one after the other; state is the fth_sample. An fth_text_next of tokenizer.h. */
fth_err fth_sample_next(void *state, const char **text, size_t *length);

#endif
