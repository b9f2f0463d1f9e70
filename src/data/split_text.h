/* split_text.h: the plain text of a split beside its ids, line by line what the data set holds:
 * PREFIX.src.txt, PREFIX.tgt.txt, and PREFIX.ref1.txt, ref2.txt ... for further references (an
 * empty line where a record has fewer). Scores are taken against these. */
#ifndef FTH_DATA_SPLIT_TEXT_H
#define FTH_DATA_SPLIT_TEXT_H

#include <stdint.h>

#include "base/error.h"
#include "base/writer.h"
#include "data/records.h"

/* Zeroed: nothing is open; put must not be called, commit and fini do nothing. */
typedef struct fth_split_text {
    char *prefix;
    fth_writer sides[2];
    fth_writer references[FTH_MAX_REFERENCES]; /* [n_references] */
    int32_t n_references;
    int64_t lines;
} fth_split_text;

fth_err fth_split_text_open(fth_split_text *t, const char *prefix);

/* references: n texts, each with a NUL at its end, one behind the other. */
fth_err fth_split_text_put(fth_split_text *t, const char *const texts[2], const char *references,
                           int n);
fth_err fth_split_text_commit(fth_split_text *t);
void fth_split_text_fini(fth_split_text *t);

#endif
