/* nearest.c: the word with the smallest edit distance (Levenshtein), if it is close enough to be
 * what was meant. */
#include "base/nearest.h"

#include <string.h>

enum { LONGEST = 63 }; /* longer words are compared by their beginnings */

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

size_t fth_edit_distance(const char *a, const char *b) {
    size_t n = strnlen(a, LONGEST), m = strnlen(b, LONGEST);
    unsigned char rows[3][LONGEST + 1]; /* the newest three rows of the table, used in turn */
    for (size_t j = 0; j <= m; j++) rows[0][j] = (unsigned char)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned char *row = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = (unsigned char)i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = smaller(last[j], row[j - 1]) + 1u;
            best = smaller(best, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = smaller(best, before[j - 2] + 1u);
            row[j] = (unsigned char)best;
        }
    }
    return rows[n % 3][m];
}

const char *fth_nearest(const char *word, const char *const *words, size_t n) {
    size_t length = strlen(word);
    size_t least = 2 + length / 3; /* one letter of three may be wrong, and one in short words */
    size_t found = n;
    for (size_t i = 0; i < n; i++) {
        size_t distance = fth_edit_distance(word, words[i]);
        if (distance >= least || distance >= length) continue;
        least = distance;
        found = i;
    }
    for (size_t i = 0; found == n && length >= 2 && i < n; i++)
        if (strncmp(word, words[i], length) == 0) found = i;
    return found < n ? words[found] : NULL;
}
