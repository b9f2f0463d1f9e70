/* direction_table.h: the scores of all directions as a table, with the means that papers print. */
#ifndef FTH_RUN_DIRECTION_TABLE_H
#define FTH_RUN_DIRECTION_TABLE_H

#include "run/direction_scores.h"

typedef enum fth_table_format {
    FTH_TABLE_TEXT,
    FTH_TABLE_CSV,
    FTH_TABLE_MARKDOWN,
    FTH_TABLE_LATEX,
    FTH_TABLE_JSON
} fth_table_format;

/* A row for each direction with sentences, then the means over directions: from the centre
 * ("en-X"), into it ("X-en"), of all that were trained ("all"), and of those that were not
 * ("zero-shot"). A mean over no direction has no row. */
fth_err fth_direction_table(const fth_direction_scores *s, const fth_languages *l,
                            const char *centre, fth_table_format format, fth_str *out);

#endif
