/* out_folder.c: makes the hidden folder and locks it, so that others can tell it from one that a
 * killed process has left; commit syncs and exchanges names. */
#include "data/out_folder.h"

#include <errno.h>
#include <fcntl.h>
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

/* "NAME.tmp-" are the temporary names of NAME. */
static fth_err sweep(const fth_out_folder *f) {
    const char *slash = strrchr(f->path, '/');
    return fth_unfinished_sweep(f->parent, slash ? slash + 1 : f->path);
}

/* Makes and locks it; EEXIST: the name is taken, or was swept away before it could be locked. */
static int make_locked(fth_out_folder *f) {
    if (mkdir(f->temp, 0777) != 0) return errno;
    f->lock = open(f->temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->lock >= 0 && fth_unfinished_claim(f->lock, f->temp)) return 0;
    const int reason = f->lock < 0 && errno != ENOENT ? errno : EEXIST;
    if (f->lock >= 0) close(f->lock);
    f->lock = -1;
    (void)rmdir(f->temp);
    return reason;
}

static fth_err make_temp(fth_out_folder *f) {
    int reason = EEXIST;
    for (int try = 0; try <= 1000 && reason == EEXIST; try++) {
        f->temp = fth_strdup_printf("%s.tmp-%ld-%d", f->path, (long)getpid(), try);
        if (!f->temp) return no_memory(f->path);
        FTH_TRY(fth_unfinished_hold(f->temp));
        reason = make_locked(f);
        if (reason == 0) return FTH_OK;
        fth_unfinished_drop(f->temp);
        free(f->temp);
        f->temp = NULL;
    }
    return fth_fail(FTH_IO, "%s: cannot make the folder: %s", f->path, strerror(reason));
}

fth_err fth_out_folder_open(fth_out_folder *f, const char *path, int force, const char *mark) {
    fth_err err;
    *f = (fth_out_folder){.lock = -1};
    FTH_TRY_OR(err, split_path(f, path), fail);
    FTH_TRY_OR(err, check_place(f, force, mark), fail);
    FTH_TRY_OR(err, fth_new_dirs_make(&f->above, f->parent), fail);
    FTH_TRY_OR(err, sweep(f), fail);
    FTH_TRY_OR(err, make_temp(f), fail);
    return FTH_OK;
fail:
    fth_out_folder_fini(f);
    return err;
}

fth_err fth_out_folder_commit(fth_out_folder *f) {
    char *replaced = NULL, *old = fth_strdup_printf("%s.old", f->temp);
    fth_err err = old ? fth_sync_dir(f->temp) : no_memory(f->path);
    if (err == FTH_OK) err = fth_unfinished_commit(&f->temp, f->path, old, &replaced);
    if (err == FTH_OK) err = fth_sync_dir(f->parent);
    if (err == FTH_OK && replaced) err = fth_remove_tree(replaced);
    fth_unfinished_drop(replaced);
    free(replaced);
    free(old);
    return err;
}

void fth_out_folder_fini(fth_out_folder *f) {
    if (f->temp) fth_remove_tree(f->temp);
    fth_unfinished_drop(f->temp);
    if (f->path && f->lock >= 0) close(f->lock);
    fth_new_dirs_fini(&f->above);
    free(f->temp);
    free(f->path);
    free(f->parent);
    *f = (fth_out_folder){.lock = -1};
}
