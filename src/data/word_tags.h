/* word_tags.h: text with a tag for each word: a word and its tag on each line, a blank line after
 * each sentence, as CoNLL's shared tasks have it. */
#ifndef FTH_DATA_WORD_TAGS_H
#define FTH_DATA_WORD_TAGS_H

#include "base/str.h"
#include "text/lines.h"

/* The next sentence: its words and its tags, each with one blank between them; *more: false after
 * the last. Of a line of several columns the first is the word and the last the tag. FTH_BAD_INPUT,
 * with file and line: a line without a tag. */
fth_err fth_tagged_next(fth_lines *lines, fth_str *words, fth_str *tags, bool *more);

/* The next tag of a text of tags; *length 0 after the last. Moves *text behind it. */
const char *fth_tagged_tag(const char **text, size_t *length);

#endif
