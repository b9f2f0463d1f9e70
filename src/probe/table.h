/* table.h: what an analysis found, row by row, and its CSV (doc/probe.md#the-columns). */
#ifndef FTH_PROBE_TABLE_H
#define FTH_PROBE_TABLE_H

#include "base/config.h"
#include "base/str.h"
#include "graph/graph.h"

enum { FTH_PROBE_NUMBERS = 3 };

typedef struct fth_probe_row {
    int32_t subject; /* which subject of the table it is about */
    fth_stack stack;
    int32_t index;
    int64_t step;
    const char *word;                 /* an own column of text, static or the table's; NULL: none */
    double number[FTH_PROBE_NUMBERS]; /* the analysis's own columns */
} fth_probe_row;

/* A model, or the checkpoints of one run. */
typedef struct fth_probe_name {
    char *label; /* for figures */
    char method[32];
    int32_t layers[2]; /* by stack, 0: it has none */
    int32_t d;
} fth_probe_name;

/* A zeroed table with `columns` is empty. */
typedef struct fth_table {
    const char *columns; /* names of the own columns, with commas; the text comes first */
    int32_t n_numbers;
    bool has_word;
    fth_probe_name *subject; /* [n_subjects] */
    int32_t n_subjects;
    fth_probe_row *row; /* [n] */
    int64_t n, capacity;
    char **word; /* [n_words] those that were read from a file */
    int32_t n_words;
} fth_table;

/* The columns that every row begins with. */
#define FTH_TABLE_HEAD "method,N,M,d,step,stack,index,"

void fth_table_fini(fth_table *t);

/* Adds a subject; its number is n_subjects - 1 from then on. */
fth_err fth_table_subject(fth_table *t, const char *label, const fth_config *c);
fth_err fth_table_add(fth_table *t, fth_probe_row row);

/* The whole CSV. */
fth_err fth_table_csv(const fth_table *t, fth_str *out);

const char *fth_stack_name(fth_stack stack);

#endif
