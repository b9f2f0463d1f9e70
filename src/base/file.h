/* file.h: whole files and folders.
 *
 * Writing is done under a temporary name, synced and renamed, so that a reader sees either the old
 * content or the new one, never half of it, and a crash leaves one of the two. */
#ifndef FTH_BASE_FILE_H
#define FTH_BASE_FILE_H

#include <stddef.h>

#include "base/error.h"

/* "PATH: cannot DOING: REASON", the reason from errno. FTH_NOT_FOUND where there can be no such path, FTH_BAD_INPUT
 * for a folder in the place of a file, FTH_IO otherwise. */
fth_err fth_fail_path(const char *doing, const char *path);

/* Reads all of a file (or pipe). *data is malloc'd and has a NUL after its size bytes.
 * FTH_NOT_FOUND when there is none, FTH_IO otherwise; the message has path and reason. */
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
/* 1 when both names are those of one file that is there. */
int fth_same_file(const char *a, const char *b);

#endif
