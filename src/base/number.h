/* number.h: numbers as text that reads back as the same number. */
#ifndef FTH_BASE_NUMBER_H
#define FTH_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Returned by value, so that it can be used in place: printf("%s", fth_double_text(x).text). */
typedef struct fth_number {
    char text[32];
} fth_number;

/* The shortest of 15 to 17 digits that reads back as x: 0.1, not 0.10000000000000001. */
fth_number fth_double_text(double x);

/* Six digits, for messages; nan has no sign. */
fth_number fth_shown_number(double x);

/* A number of bytes, with a suffix where that is exact: 8G, 1536M, 1000. */
fth_number fth_size_text(uint64_t bytes);

/* Reads a finite number that is all of text. */
bool fth_parse_number(const char *text, double *out);

#endif
