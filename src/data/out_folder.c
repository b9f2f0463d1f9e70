#include "data/out_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

static fth_err no_memory(const char *path) {
    return fth_fail(FTH_NO_MEMORY, "%s: no memory to write it", path);
}

/* path without slashes at its end, and the folder above it. */
static fth_err split_path(fth_out_folder *f, const char *path) {
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    if (n == 0) return fth_fail(FTH_USAGE, "the name of the folder to write is empty");
    f->path = strndup(path, n);
    if (!f->path) return no_memory(path);
    const char *slash = strrchr(f->path, '/');
    if (!slash)
        f->parent = strdup(".");
    else
        f->parent = strndup(f->path, slash == f->path ? 1 : (size_t)(slash - f->path));
    return f->parent ? FTH_OK : no_memory(path);
}

/* May what stands at path be replaced? */
static fth_err check_place(const fth_out_folder *f, int force, const char *mark) {
    struct stat info;
    if (lstat(f->path, &info) != 0) return FTH_OK;
    if (!force) return fth_fail(FTH_USAGE, "%s is there already; --force replaces it", f->path);
    char *file = fth_strdup_printf("%s/%s", f->path, mark);
    if (!file) return no_memory(f->path);
    int ours = S_ISDIR(info.st_mode) && fth_file_exists(file);
    free(file);
    if (ours || (S_ISDIR(info.st_mode) && rmdir(f->path) == 0)) return FTH_OK;
    return fth_fail(FTH_USAGE, "%s is there and has no %s: --force does not replace it", f->path,
                    mark);
}

fth_err fth_out_folder_open(fth_out_folder *f, const char *path, int force, const char *mark) {
    fth_err err;
    *f = (fth_out_folder){0};
    FTH_TRY_OR(err, split_path(f, path), fail);
    FTH_TRY_OR(err, check_place(f, force, mark), fail);
    FTH_TRY_OR(err, fth_make_dirs(f->parent), fail);
    for (int try = 0; !f->temp; try++) {
        char *temp = fth_strdup_printf("%s.tmp-%ld-%d", f->path, (long)getpid(), try);
        if (!temp) {
            err = no_memory(path);
            goto fail;
        }
        if (mkdir(temp, 0777) == 0) {
            f->temp = temp;
        } else {
            int reason = errno;
            free(temp);
            if (reason == EEXIST && try < 1000) continue;
            err = fth_fail(FTH_IO, "%s: cannot make the folder: %s", path, strerror(reason));
            goto fail;
        }
    }
    return FTH_OK;
fail:
    fth_out_folder_fini(f);
    return err;
}

fth_err fth_out_folder_commit(fth_out_folder *f) {
    fth_err err = fth_sync_dir(f->temp);
    char *old = fth_strdup_printf("%s.old", f->temp);
    if (!old) return no_memory(f->path);
    int replaced = 0;
    if (err == FTH_OK && fth_file_exists(f->path)) {
        replaced = rename(f->path, old) == 0;
        if (!replaced) err = fth_fail(FTH_IO, "%s: cannot move: %s", f->path, strerror(errno));
    }
    if (err == FTH_OK && rename(f->temp, f->path) != 0) {
        err = fth_fail(FTH_IO, "%s: cannot rename: %s", f->path, strerror(errno));
        if (replaced && rename(old, f->path) == 0) replaced = 0;
    }
    if (err == FTH_OK) {
        free(f->temp);
        f->temp = NULL;
        err = fth_sync_dir(f->parent);
        if (replaced && err == FTH_OK) err = fth_remove_tree(old);
    }
    free(old);
    return err;
}

void fth_out_folder_fini(fth_out_folder *f) {
    if (f->temp) fth_remove_tree(f->temp);
    free(f->temp);
    free(f->path);
    free(f->parent);
    *f = (fth_out_folder){0};
}
