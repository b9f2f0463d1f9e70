/* lines.h: reads text files line by line: plain, gzip or Zstandard, told apart by their first
 * bytes.
 *
 * Several files follow each other as one text. Lines come without their end (\n or \r\n), a byte
 * order mark at the start of a file is dropped, and every line is checked to be UTF-8. Memory is
 * bounded by the longest line. */
#ifndef FTH_TEXT_LINES_H
#define FTH_TEXT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { FTH_LONGEST_LINE = 1 << 28 }; /* bytes; more is taken for a file that is no text */

/* A file and what messages call it (a copy of standard input is "standard input"). */
typedef struct fth_text_file {
    const char *path, *name;
} fth_text_file;

typedef struct fth_lines fth_lines;

/* The files and their names must outlive the reader. */
fth_err fth_lines_new(const fth_text_file *files, size_t n, fth_lines **out);
void fth_lines_free(fth_lines *l);

/* The next line, valid until the next call, NUL-terminated; *text = NULL after the last.
 * FTH_BAD_INPUT, with file and line: not UTF-8, a NUL byte, a damaged or cut compressed file, an
 * empty file. */
fth_err fth_lines_next(fth_lines *l, const char **text, size_t *length);

/* From now on a line that is not UTF-8 or has a NUL byte is given as it is, and an empty file has
 * no lines. */
void fth_lines_lenient(fth_lines *l);

/* What is wrong with the newest line ("not UTF-8: byte 0xff at column 3"); NULL: nothing. */
const char *fth_lines_fault(const fth_lines *l);

/* Whether the next line, or the end, is there without waiting for whoever writes into a pipe. Reads
 * what has come; the newest line is no longer valid. */
fth_err fth_lines_ready(fth_lines *l, bool *ready);

/* Where the newest line stands. */
const char *fth_lines_file(const fth_lines *l);
int64_t fth_lines_number(const fth_lines *l); /* in its file, from 1 */
int64_t fth_lines_count(const fth_lines *l);  /* lines given so far, of all files */

/* Bytes of the files, as they lie on the disk, read so far: the measure of progress. */
int64_t fth_lines_bytes(const fth_lines *l);

/* How many bytes the files have in all; 0 for what cannot be known. */
int64_t fth_text_files_size(const fth_text_file *files, size_t n);

#endif
