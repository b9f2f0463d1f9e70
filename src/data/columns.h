/* columns.h: tables of text: lines of columns between tabs, of which one or two are text and one is
 * a label.
 *
 * A column is a number, counted from 1, or a name of the first line, which is a header then. */
#ifndef FTH_DATA_COLUMNS_H
#define FTH_DATA_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* What is read of a line, in this order. */
enum { FTH_COLUMN_TEXT, FTH_COLUMN_TEXT2, FTH_COLUMN_LABEL, FTH_N_COLUMNS };

typedef struct fth_table_columns {
    char name[FTH_N_COLUMNS][64]; /* as asked for; "": not wanted */
    bool header; /* the first line of each file names the columns, or is passed over */
} fth_table_columns;

/* "text=3,label=1", "text=sentence,text2=other,label=label". header: there is one though columns
 * are numbers. FTH_USAGE names what is wrong. */
fth_err fth_columns_parse(const char *text, bool header, fth_table_columns *out);

/* Where the columns of a file stand, from 0; -1: not wanted. */
typedef struct fth_column_places {
    int at[FTH_N_COLUMNS];
} fth_column_places;

/* line: the first line of the file, its header if it has one; file: for messages. */
fth_err fth_columns_find(const fth_table_columns *c, const char *line, const char *file,
                         fth_column_places *out);

/* Cuts a line at its tabs, in place: fields[i] is column i of FTH_COLUMN_*, NULL: not wanted. Where
 * a column is missing it returns the number of columns that the line has, else 0. */
int fth_columns_cut(const fth_column_places *places, char *line, const char *fields[FTH_N_COLUMNS]);

#endif
