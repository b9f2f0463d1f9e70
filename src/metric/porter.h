/* porter.h: Porter's stemmer for English (1980) with the changes that NLTK made to it. */
#ifndef FTH_METRIC_PORTER_H
#define FTH_METRIC_PORTER_H

#include <stddef.h>

/* Cuts a word of a-z and 0-9 down to its stem, in place, and returns the stem's length, which is
 * not larger. */
size_t fth_porter_stem(char *word, size_t length);

#endif
