/* nearest.h: what did the user mean? */
#ifndef FTH_BASE_NEAREST_H
#define FTH_BASE_NEAREST_H

#include <stddef.h>

/* The number of letters to insert, delete, replace or swap with their neighbour to make b of a. */
size_t fth_edit_distance(const char *a, const char *b);

/* The one of words[0..n) that word most probably stands for: the nearest by edit distance, or one
 * that begins with word. NULL when none is near enough to be worth a suggestion. */
const char *fth_nearest(const char *word, const char *const *words, size_t n);

#endif
