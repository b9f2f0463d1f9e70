/* staged_dir.h: makes a folder appear all at once.
 *
 * Its files are written into a hidden folder beside it (.NAME.tmp-PID); commit syncs that and
 * renames it. An older folder of the same name is replaced in one step where the file system can
 * swap two names; elsewhere it is first renamed to .NAME.old, so that at every moment one of the
 * names is a whole folder. What a killed process leaves behind is cleared by the next writer: a
 * writer holds a lock on its hidden folder, so an unlocked one belongs to nobody. */
#ifndef FTH_BASE_STAGED_DIR_H
#define FTH_BASE_STAGED_DIR_H

#include "base/unfinished.h"

/* Zeroed: nothing is there, may be freed. */
typedef struct fth_staged_dir {
    char *path;         /* the folder to be */
    char *temp;         /* where its files are written; NULL after commit */
    int lock;           /* open on temp while path is not NULL */
    fth_new_dirs above; /* parents that were not there */
} fth_staged_dir;

/* May what stands at path be replaced? A slip of the finger must not delete someone's files:
 * FTH_USAGE where they are not of the kind that is to be written. */
typedef fth_err fth_may_replace(const char *path);

/* For such a check: FTH_USAGE when a folder holds an entry whose name is none of what it is to
 * be. */
fth_err fth_holds_only(const char *path, int (*is_part)(const char *name), const char *what);

/* Begins a folder; parents that are missing are made. may_replace is asked when something is at
 * path already. */
fth_err fth_staged_dir_open(fth_staged_dir *d, const char *path, fth_may_replace *may_replace);

/* Syncs, renames, and removes what was there before. Its files must be synced already, as
 * fth_file_write and fth_writer do. Once the new folder is safe nothing is a failure: what cannot
 * be removed, the next writer clears. */
fth_err fth_staged_dir_commit(fth_staged_dir *d);

/* Frees everything; a folder that was not committed is removed, with those that were made above
 * it. */
void fth_staged_dir_fini(fth_staged_dir *d);

/* Which folder to read for path: path itself, or the older one when a writer was killed between
 * two renames. malloc'd. */
fth_err fth_staged_dir_resolve(const char *path, char **out);

/* Clears what killed writers left in a folder: puts .NAME.old back where NAME is missing, removes
 * hidden folders that nobody holds. name limits this to one NAME; NULL: all. */
fth_err fth_staged_dir_clean(const char *folder, const char *name);

#endif
