/* describe.h: a data set in words, for people. */
#ifndef FTH_DATA_DESCRIBE_H
#define FTH_DATA_DESCRIBE_H

#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "data/folder.h"

typedef enum fth_show_as { FTH_SHOW_TEXT, FTH_SHOW_PIECES, FTH_SHOW_IDS } fth_show_as;

/* Appends the table of `fathom data info`: splits, sentences, tokens. */
fth_err fth_describe_folder(const fth_folder *f, fth_str *out);

/* Appends one sentence, its sides separated by a tab, with a line end. t: the tokenizer of each
 * side, both may be the same. */
fth_err fth_describe_sentence(const fth_dataset *d, int64_t i, const fth_tokenizer *const t[2],
                              fth_show_as as, fth_str *out);

/* Appends the label of a sentence or picture, with a line end: a class, a number, or a map as the
 * numbers of the pixels' classes, -1 where there is none. FTH_USAGE: there are no labels. */
fth_err fth_describe_label(const fth_folder *f, const fth_dataset *d, int64_t i, fth_str *out);

#endif
