/* values.h: the `layers` lines of log.jsonl, read fast.
 *
 * A run of a thousand layers logs hundreds of megabytes of numbers. Lines in the form in which
 * fathom writes them are read here directly; any other line is left to the JSON parser. */
#ifndef FTH_INSPECT_VALUES_H
#define FTH_INSPECT_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fth_values_line {
    int64_t update;
    char stack[16], name[48];
    const char *values; /* after the bracket that opens them */
} fth_values_line;

/* Is it such a line, and what does it speak of? */
bool fth_values_head(const char *text, size_t length, fth_values_line *out);

/* Reads the values: value[*n], which has room for half as many as the line has bytes. null becomes
 * FTH_HEAT_NONE. false: the line must be read by the JSON parser, which says what is wrong. */
bool fth_values_read(const fth_values_line *line, float *value, size_t *n);

#endif
