/* file.h: whole files and folders.
 *
 * Writing is done under a temporary name, synced and renamed, so that a reader sees either the old
 * content or the new one, never half of it, and a crash leaves one of the two. */
#ifndef FTH_BASE_FILE_H
#define FTH_BASE_FILE_H

#include <errno.h>
#include <stddef.h>

#include "base/error.h"

/* What kind of error the errno of a path is: that there can be no such path, that a folder is in
 * the place of a file, or one of the system. */
static inline fth_err fth_path_error(int reason) {
    const int wrong =
        reason == ENOENT || reason == ENOTDIR || reason == ELOOP || reason == ENAMETOOLONG;
    return wrong ? FTH_NOT_FOUND : reason == EISDIR ? FTH_BAD_INPUT : FTH_IO;
}

/* Reads all of a file, or of a pipe without a name. *data is malloc'd and has a NUL after its size
 * bytes. FTH_NOT_FOUND when there is none, FTH_IO otherwise; the message has path and reason. */
fth_err fth_file_read(const char *path, char **data, size_t *size);

/* Replaces the content of path. A device or a pipe is written to directly. */
fth_err fth_file_write(const char *path, const void *data, size_t size);

/* Makes a folder and its parents; one that is there already is fine. */
fth_err fth_make_dirs(const char *path);

/* Waits until the names in a folder are on the disk. */
fth_err fth_sync_dir(const char *path);

/* Removes a file, or a folder with all it holds; symbolic links are removed, not followed.
 * A path that is not there is fine. */
fth_err fth_remove_tree(const char *path);

/* 1 when there is a file or folder of that name, after following links. */
int fth_file_exists(const char *path);
/* The same of a name in a folder. */
int fth_folder_has(const char *folder, const char *name);
/* The path of a file that a list names: beside the list, unless it begins with a slash. malloc'd;
 * NULL when out of memory. */
char *fth_path_beside(const char *list, const char *file);
/* 1 when both names are those of one file that is there. */
int fth_same_file(const char *a, const char *b);

#endif
