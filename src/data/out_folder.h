/* out_folder.h: a folder that appears whole or not at all: made under another name beside its
 * place, synced, renamed. */
#ifndef FTH_DATA_OUT_FOLDER_H
#define FTH_DATA_OUT_FOLDER_H

#include "base/unfinished.h"

/* Zeroed: nothing is there, may be freed. */
typedef struct fth_out_folder {
    char *path, *parent; /* where it will be, and the folder that will hold it */
    char *temp;          /* where it is; NULL: nowhere, or committed */
    int lock;            /* open on temp while path is not NULL */
    fth_new_dirs above;  /* parents that were not there */
} fth_out_folder;

/* Makes the temporary folder, and removes those that killed processes left for path. mark is a file
 * that every folder of this kind has: what is at path already is replaced only with force, and only
 * when it is an empty folder or has that file. */
fth_err fth_out_folder_open(fth_out_folder *f, const char *path, int force, const char *mark);

/* The content must be synced already, as fth_file_write and fth_writer do. */
fth_err fth_out_folder_commit(fth_out_folder *f);

/* Removes a folder that was not committed. */
void fth_out_folder_fini(fth_out_folder *f);

#endif
