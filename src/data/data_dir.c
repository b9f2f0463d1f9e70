/* data_dir.c: what `prepare` may replace: a folder with dataset.json, or an empty one. */
#include "data/data_dir.h"

#include <dirent.h>
#include <string.h>

#include "base/file.h"

static int is_empty(const char *path) {
    DIR *dir = opendir(path);
    if (!dir) return 0;
    int empty = 1;
    for (struct dirent *entry; empty && (entry = readdir(dir));)
        empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
    closedir(dir);
    return empty;
}

static fth_err unforced(const char *path) {
    return fth_fail(FTH_USAGE, "%s is there already; --force replaces it", path);
}

static fth_err forced(const char *path) {
    if (fth_folder_has(path, "dataset.json") || is_empty(path)) return FTH_OK;
    return fth_fail(FTH_USAGE, "%s is there and has no dataset.json: --force does not replace it",
                    path);
}

fth_err fth_data_dir_open(fth_staged_dir *d, const char *path, int force) {
    return fth_staged_dir_open(d, path, force ? forced : unforced);
}
