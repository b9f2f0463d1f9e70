/* rows.h: a table of names says how the tensors of another program are made of fathom's
 * parameters. Read one way it writes them, read the other way it takes them back. */
#ifndef FTH_EXCHANGE_ROWS_H
#define FTH_EXCHANGE_ROWS_H

#include <stdbool.h>

#include "base/arena.h"
#include "model/model.h"
#include "store/safetensors.h"

/* One tensor, or many: in all names an asterisk stands for the number of the layer, and an at-sign
 * at the end for "weight" and "bias". A name of ours that ends with a dot stands for all that begin
 * so: theirs takes the place of it. */
typedef struct fth_row {
    const char *theirs;
    const char *ours[3]; /* one below the other; rows whose first is no parameter of the model do
                            not count */
    bool turned;         /* a matrix is [in, out] in place of [out, in] */
    int32_t skip;        /* rows before ours, 0 in exports, left out by imports */
    bool reading;        /* another name that a file may have: never written */
} fth_row;

typedef struct fth_tensors {
    fth_arena arena;
    fth_st_tensor *tensors; /* [n] */
    size_t n, capacity;
} fth_tensors;

void fth_tensors_fini(fth_tensors *t);

/* A tensor whose numbers are the caller's, or (data NULL) zeroed room for floats, given back. */
fth_err fth_tensors_add(fth_tensors *t, const char *name, fth_st_dtype dtype, int rank,
                        const int64_t *shape, const void *data, float **room);

/* The tensors of a model by a table that ends with a NULL name; they may point into flat. Of rows
 * for the same tensor the first counts. */
fth_err fth_rows_out(const fth_row *rows, const fth_model *m, const float *flat, fth_tensors *out);

/* Makes a parameter that a file has not; false: it must be there. */
typedef bool fth_make_param(const fth_model *m, const fth_param *p, float *out);

/* How parameters are taken from a file. Where several rows give a parameter, the first that the
 * file has counts. */
typedef struct fth_rows_in {
    const fth_row *rows;
    const char *prefix;         /* of their names, which a file may lack; NULL: none */
    const char *const *ignored; /* patterns of names that carry nothing, ended by NULL */
    const char *const *zeros;   /* patterns of what fathom has not: all numbers must be 0 */
    fth_make_param *make;       /* NULL: nothing is made */
    /* Words that the file does not have: rows at the end of vocabularies, copies of `copied`, or 0
     * where it is -1. */
    int32_t more_words, copied;
} fth_rows_in;

/* Every parameter must be in the file, with its shape, and every tensor of it be known. */
fth_err fth_rows_in_read(const fth_rows_in *in, const fth_st_file *file, const fth_model *m,
                         float *flat);

#endif
