/* columns.c: reads "2,3" or names from the first line as the columns wanted, and cuts a line at its
 * tabs. */
#include "data/columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const keys[FTH_N_COLUMNS] = {"text", "text2", "label"};

static fth_err take(fth_columns *c, const char *item, size_t length) {
    const char *equals = memchr(item, '=', length);
    if (!equals)
        return fth_fail(FTH_USAGE, "--columns: '%.*s' is not KEY=COLUMN, as text=3", (int)length,
                        item);
    const size_t key = (size_t)(equals - item), value = length - key - 1;
    for (int i = 0; i < FTH_N_COLUMNS; i++) {
        if (strlen(keys[i]) != key || strncmp(keys[i], item, key) != 0) continue;
        if (c->name[i][0]) return fth_fail(FTH_USAGE, "--columns: %s is given twice", keys[i]);
        if (value == 0 || value >= sizeof c->name[i])
            return fth_fail(FTH_USAGE, "--columns: the column of %s must have 1 to %zu bytes",
                            keys[i], sizeof c->name[i] - 1);
        memcpy(c->name[i], equals + 1, value);
        return FTH_OK;
    }
    return fth_fail(FTH_USAGE, "--columns: '%.*s' is not text, text2 or label", (int)key, item);
}

/* A whole number from 1; 0: it is none. */
static int number_of(const char *name) {
    char *end;
    const long n = strtol(name, &end, 10);
    return *end == '\0' && name[0] >= '0' && name[0] <= '9' && n >= 1 && n <= 1 << 20 ? (int)n : 0;
}

fth_err fth_columns_parse(const char *text, bool header, fth_columns *out) {
    fth_columns c = {.header = header};
    for (const char *item = text; *item;) {
        const size_t length = strcspn(item, ",");
        FTH_TRY(take(&c, item, length));
        item += length + (item[length] == ',');
    }
    if (!c.name[FTH_COLUMN_TEXT][0])
        return fth_fail(FTH_USAGE, "--columns %s: names no text, as text=3,label=1", text);
    for (int i = 0; i < FTH_N_COLUMNS; i++)
        if (c.name[i][0] && !number_of(c.name[i])) c.header = true;
    *out = c;
    return FTH_OK;
}

/* The column of a header that has a name; -1: none. */
static int find_name(const char *line, const char *name) {
    const size_t wanted = strlen(name);
    for (int at = 0;; at++) {
        const size_t length = strcspn(line, "\t");
        if (length == wanted && strncmp(line, name, length) == 0) return at;
        if (!line[length]) return -1;
        line += length + 1;
    }
}

fth_err fth_columns_find(const fth_columns *c, const char *line, const char *file,
                         fth_column_places *out) {
    for (int i = 0; i < FTH_N_COLUMNS; i++) {
        const char *name = c->name[i];
        out->at[i] = !name[0] ? -1 : number_of(name) ? number_of(name) - 1 : find_name(line, name);
        if (name[0] && out->at[i] < 0)
            return fth_fail(FTH_BAD_INPUT,
                            "%s:1: no column is called '%s', which --columns gives as %s", file,
                            name, keys[i]);
    }
    return FTH_OK;
}

int fth_columns_cut(const fth_column_places *places, char *line,
                    const char *fields[FTH_N_COLUMNS]) {
    int count = 0, missing = 0;
    for (int i = 0; i < FTH_N_COLUMNS; i++) fields[i] = NULL;
    for (char *field = line, *tab = line; tab; field = tab + 1, count++) {
        tab = strchr(field, '\t');
        if (tab) *tab = 0;
        for (int i = 0; i < FTH_N_COLUMNS; i++)
            if (places->at[i] == count) fields[i] = field;
    }
    for (int i = 0; i < FTH_N_COLUMNS; i++) missing |= places->at[i] >= 0 && !fields[i];
    return missing ? count : 0;
}
