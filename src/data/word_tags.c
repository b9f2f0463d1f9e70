/* word_tags.c: gathers the lines of a sentence. */
#include "data/word_tags.h"

#include <string.h>

static const char blanks[] = " \t";

/* The first and the last field of a line; 0: there is one alone. */
static int cut(const char *line, size_t length, const char **word, size_t *word_length,
               const char **tag, size_t *tag_length) {
    while (length && strchr(blanks, line[length - 1])) length--;
    size_t first = strcspn(line, blanks), last = length;
    if (first > length) first = length;
    while (last > 0 && !strchr(blanks, line[last - 1])) last--;
    *word = line;
    *word_length = first;
    *tag = line + last;
    *tag_length = length - last;
    return last > 0 && first > 0;
}

static fth_err add(fth_str *text, const char *part, size_t length) {
    if (text->length) FTH_TRY(fth_str_add(text, " ", 1));
    return fth_str_add(text, part, length);
}

fth_err fth_tagged_next(fth_lines *lines, fth_str *words, fth_str *tags, bool *more) {
    const char *line, *word, *tag;
    size_t length, n, k;
    fth_str_clear(words);
    fth_str_clear(tags);
    for (;;) {
        FTH_TRY(fth_lines_next(lines, &line, &length));
        *more = line || words->length;
        if (!line) return FTH_OK;
        if (strspn(line, blanks) == length) { /* several blank lines are as one */
            if (words->length) return FTH_OK;
            continue;
        }
        if (!cut(line, length, &word, &n, &tag, &k))
            return fth_fail(FTH_BAD_INPUT,
                            "%s:%lld: a line must be word<TAB>tag, or blank after a sentence",
                            fth_lines_file(lines), (long long)fth_lines_number(lines));
        FTH_TRY(add(words, word, n));
        FTH_TRY(add(tags, tag, k));
    }
}

const char *fth_tagged_tag(const char **text, size_t *length) {
    const char *tag = *text + strspn(*text, " ");
    *length = strcspn(tag, " ");
    *text = tag + *length;
    return tag;
}
