/* records.h: what is to be learned from, one record after the other: a pair of texts or one text.
 *
 * Records come from two files of equal length, from one file of source<TAB>target lines, from JSON
 * lines, from a table, from tagged words, or from plain text. */
#ifndef FTH_DATA_RECORDS_H
#define FTH_DATA_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "data/columns.h"
#include "text/lines.h"

typedef enum fth_text_kind {
    FTH_TEXT_NONE, /* this split is not there */
    FTH_TEXT_PARALLEL,
    FTH_TEXT_TSV,
    FTH_TEXT_JSONL,
    FTH_TEXT_DIRECTIONS, /* pairs of many directions: files[0][i] and files[1][i] belong together */
    FTH_TEXT_PLAIN,      /* one text, for a language model */
    FTH_TEXT_COLUMNS,    /* a table: one or two texts and a label (data/columns.h) */
    FTH_TEXT_TAGGED      /* sentences with a tag for each word (data/word_tags.h) */
} fth_text_kind;

enum { FTH_MAX_REFERENCES = 64 };

/* Where the records of a split come from. Everything is borrowed. */
typedef struct fth_text_spec {
    fth_text_kind kind;
    const fth_text_file *files[2]; /* [n_files[i]]; the second list only for parallel files */
    size_t n_files[2];
    const char *keys[3]; /* JSON lines: the keys of source, target and further references */
    const fth_table_columns *columns; /* of a table */
    const int32_t *directions;        /* [n_files[0]] the direction of each pair of files */
} fth_text_spec;

/* sides is 2 for pairs (source, target; two texts of a table) and 1 for plain text. */
typedef struct fth_record {
    int sides;
    const char *text[2]; /* NUL-terminated UTF-8 on one line */
    size_t length[2];
    int n_references;
    const char *references[FTH_MAX_REFERENCES];
    const char *label; /* of a table, without blanks around it; or the tags; NULL: none */
    int32_t direction; /* of many languages */
} fth_record;

typedef struct fth_records fth_records;

fth_err fth_records_new(const fth_text_spec *spec, fth_records **out);
void fth_records_free(fth_records *r);

/* The next record, valid until the next call; sides = 0 after the last. FTH_BAD_INPUT, with file
 * and line, for what cannot be read as this kind. */
fth_err fth_records_next(fth_records *r, fth_record *record);

/* Where the newest record stands: file, line in it, lines in all; see lines.h. */
const char *fth_records_file(const fth_records *r);
int64_t fth_records_line(const fth_records *r);
int64_t fth_records_bytes(const fth_records *r);

/* The bytes of all files of a split; 0 where it cannot be known. */
int64_t fth_text_spec_size(const fth_text_spec *spec);

#endif
