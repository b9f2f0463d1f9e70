/* unfinished.h: what is temporary on the disk at this moment.
 *
 * Files and folders that have another name until they are complete are held here, so that a program
 * that a signal ends can remove them first. There is one list for the process, as there is one end
 * of it. What a process leaves that had no time for this (SIGKILL), the next one sweeps: whoever
 * makes something temporary holds a lock on it, which ends with the process, in whatever container
 * that ran. */
#ifndef FTH_BASE_UNFINISHED_H
#define FTH_BASE_UNFINISHED_H

#include <stddef.h>

#include "base/error.h"

/* Holds the name of a file, or of a folder with all in it, from before it is made until it has
 * another name or is gone. A name that is not held, and NULL, may be dropped. */
fth_err fth_unfinished_hold(const char *path);
void fth_unfinished_drop(const char *path);

/* Nothing is removed between the two, from whatever thread: for steps that belong together. Calls
 * may be nested. */
void fth_unfinished_lock(void);
void fth_unfinished_unlock(void);

/* Gives the held folder *temp the name path, in place of what is there, and lets go of it: all or
 * nothing, whatever signal comes. *replaced is what was there until now, held and malloc'd, for the
 * caller to remove: it has the name *temp had, or `old` where the file system cannot swap two
 * names; NULL: nothing was there. On success *temp is NULL. */
fth_err fth_unfinished_commit(char **temp, const char *path, const char *old, char **replaced);

/* Removes all that is held. The caller has the lock, and the process ends before it gives it
 * back. */
void fth_unfinished_remove(void);

/* Locks what was just made under a temporary name, for as long as fd is open. 0: a sweep was faster
 * and has removed it; take another name. Where a file system has no locks, nobody sweeps either. */
int fth_unfinished_claim(int fd, const char *path);

/* Removes what is at path unless somebody holds a lock on it. */
fth_err fth_unfinished_clear(const char *path);

/* Removes what processes that are gone have left in a folder: entries called NAME.tmp-, then digits
 * and dashes only, that nobody has locked. name NULL: of every NAME. A folder that is not there is
 * fine. */
fth_err fth_unfinished_sweep(const char *folder, const char *name);

/* Folders that were made to put a result into. Zeroed: none, may be freed. */
typedef struct fth_new_dirs {
    char *path;
} fth_new_dirs;

/* Makes a folder and its parents, as fth_make_dirs does. */
fth_err fth_new_dirs_make(fth_new_dirs *d, const char *path);

/* Removes those that it made and that are still empty; fth_unfinished_remove does so too. */
void fth_new_dirs_fini(fth_new_dirs *d);

#endif
