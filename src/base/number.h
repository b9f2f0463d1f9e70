/* number.h: numbers as text that reads back as the same number. */
#ifndef FTH_BASE_NUMBER_H
#define FTH_BASE_NUMBER_H

#include <stdint.h>

enum { FTH_NUMBER_SIZE = 32 };

/* The shortest of 15 to 17 digits that reads back as x: 0.1, not 0.10000000000000001. */
void fth_double_text(double x, char *text /* [FTH_NUMBER_SIZE] */);

/* A number of bytes, with a suffix where that is exact: 8G, 1536M, 1000. */
void fth_size_text(uint64_t bytes, char *text /* [FTH_NUMBER_SIZE] */);

#endif
