/* table_read.h: reads back a CSV that fathom probe wrote, so that it can be drawn elsewhere. */
#ifndef FTH_PROBE_TABLE_READ_H
#define FTH_PROBE_TABLE_READ_H

#include "probe/table.h"

/* Adds the rows of a file to a table with `columns`; `series`: a subject's rows have many steps.
 * Subjects are told apart by the columns that all rows begin with, and where the rows begin again.
 * Errors name the file and the line. */
fth_err fth_table_read(fth_table *t, const char *file, bool series);

/* Names the subjects by what tells them apart: method and layers, then width, step and number. */
fth_err fth_table_name_subjects(fth_table *t, bool series);

#endif
