/* ct2_file.h: model.bin of CTranslate2, binary version 6: named variables and aliases of them. */
#ifndef FTH_EXCHANGE_CT2_FILE_H
#define FTH_EXCHANGE_CT2_FILE_H

#include "exchange/rows.h"

/* Writes FOLDER/model.bin. Variables of dtype BF16 have floats as their data, all others what their
 * dtype says. Every alias stands for `shared`. Sorts the variables. */
fth_err fth_ct2_write(const char *folder, fth_tensors *t, const char *const *alias, int n_aliases,
                      const char *shared);

/* What was read: a file of tensors like others; those in 8 bits are floats again. */
typedef struct fth_ct2_file {
    fth_st_file file;
    int aliases;
    fth_tensors tensors; /* owns names and what was computed */
    char *data;          /* the file's bytes */
} fth_ct2_file;

fth_err fth_ct2_open(const char *folder, fth_ct2_file *out);
void fth_ct2_close(fth_ct2_file *f);

#endif
