/* staged_dir.c: locks the hidden folder while it is filled; commit exchanges it with the old one in
 * one step where the kernel can, else in two with NAME.old between them. */
#include "base/staged_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

static fth_err fail_path(const char *path, const char *doing) {
    return fth_fail(FTH_IO, "%s: cannot %s: %s", path, doing, strerror(errno));
}

/* path without slashes at its end, and behind a symbolic link what it points to; malloc'd. */
static char *clean_path(const char *path) {
    struct stat st;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    char *text = strndup(path, length);
    if (text && lstat(text, &st) == 0 && S_ISLNK(st.st_mode)) {
        char *target = realpath(text, NULL);
        if (!target) return text; /* a link to nothing: renaming over it will say so */
        free(text);
        text = target;
    }
    return text;
}

static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* FOLDER/.NAME followed by the suffix; malloc'd. */
static char *beside(const char *path, const char *suffix) {
    size_t folder = (size_t)(name_of(path) - path);
    return fth_strdup_printf("%.*s.%s%s", (int)folder, path, name_of(path), suffix);
}

static char *temp_name(const char *path, int attempt) {
    char suffix[64];
    snprintf(suffix, sizeof suffix, ".tmp-%ld-%d", (long)getpid(), attempt);
    return beside(path, suffix);
}

fth_err fth_staged_dir_resolve(const char *path, char **out) {
    *out = clean_path(path);
    char *old = *out ? beside(*out, ".old") : NULL;
    if (!old) {
        free(*out);
        *out = NULL;
        return fth_no_memory(path);
    }
    if (!fth_file_exists(*out) && fth_file_exists(old)) {
        free(*out);
        *out = old;
    } else {
        free(old);
    }
    return FTH_OK;
}

/* NAME is missing: .NAME.old becomes NAME again. NAME is there: .NAME.old is superfluous. */
static fth_err settle_old(const char *path) {
    char *old = beside(path, ".old");
    fth_err err = FTH_OK;
    if (!old)
        err = fth_no_memory(path);
    else if (fth_file_exists(path))
        err = fth_remove_tree(old);
    else if (fth_file_exists(old) && rename(old, path) != 0)
        err = fail_path(path, "put the older folder back");
    free(old);
    return err;
}

/* The length of NAME in ".NAME.old"; 0 for entries that are none of ours. */
static size_t old_name_length(const char *entry) {
    const size_t length = strlen(entry), marks = strlen("..old");
    if (length <= marks || entry[0] != '.' || strcmp(entry + length - 4, ".old")) return 0;
    return length - marks;
}

static fth_err settle_entry(const char *folder, const char *name, size_t length) {
    char *path = fth_strdup_printf("%s/%.*s", folder, (int)length, name);
    fth_err err = path ? settle_old(path) : fth_no_memory(folder);
    free(path);
    return err;
}

static fth_err settle_all(const char *folder) {
    DIR *dir = opendir(folder);
    if (!dir) return errno == ENOENT ? FTH_OK : fail_path(folder, "read the folder");
    fth_err err = FTH_OK;
    for (struct dirent *entry; !err && (entry = readdir(dir));) {
        const size_t length = old_name_length(entry->d_name);
        if (length) err = settle_entry(folder, entry->d_name + 1, length);
    }
    closedir(dir);
    return err;
}

fth_err fth_staged_dir_clean(const char *folder, const char *name) {
    char *hidden = name ? fth_strdup_printf(".%s", name) : NULL;
    fth_err err = name && !hidden ? fth_no_memory(name) : fth_unfinished_sweep(folder, hidden);
    free(hidden);
    if (err) return err;
    return name ? settle_entry(folder, name, strlen(name)) : settle_all(folder);
}

/* Makes and locks it; EEXIST: the name is taken, or was swept away before it could be locked. */
static int make_locked(fth_staged_dir *d) {
    if (mkdir(d->temp, 0777) != 0) return errno;
    d->lock = open(d->temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->lock >= 0 && fth_unfinished_claim(d->lock, d->temp)) return 0;
    const int reason = d->lock < 0 && errno != ENOENT ? errno : EEXIST;
    if (d->lock >= 0) close(d->lock);
    d->lock = -1;
    (void)rmdir(d->temp);
    return reason;
}

static fth_err make_temp(fth_staged_dir *d) {
    int reason = EEXIST;
    for (int attempt = 0; attempt < 100 && reason == EEXIST; attempt++) {
        d->temp = temp_name(d->path, attempt);
        if (!d->temp) return fth_no_memory(d->path);
        FTH_TRY(fth_unfinished_hold(d->temp));
        reason = make_locked(d);
        if (reason == 0) return FTH_OK;
        fth_unfinished_drop(d->temp);
        free(d->temp);
        d->temp = NULL;
    }
    errno = reason;
    return fail_path(d->path, "make the folder");
}

fth_err fth_holds_only(const char *path, int (*is_part)(const char *name), const char *what) {
    DIR *dir = opendir(path);
    if (!dir)
        return fth_fail(FTH_IO, "%s: cannot replace it by a folder: %s", path, strerror(errno));
    fth_err err = FTH_OK;
    for (struct dirent *entry; !err && (entry = readdir(dir));) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") && strcmp(name, "..") && !is_part(name))
            err = fth_fail(FTH_USAGE,
                           "%s: will not be replaced: it holds \"%s\", which is no part of %s",
                           path, name, what);
    }
    closedir(dir);
    return err;
}

fth_err fth_staged_dir_open(fth_staged_dir *d, const char *path, fth_may_replace *may_replace) {
    *d = (fth_staged_dir){.lock = -1};
    if (!path[0]) return fth_fail(FTH_USAGE, "the name of the folder to write is empty");
    d->path = clean_path(path);
    char *folder = d->path ? folder_of(d->path) : NULL;
    struct stat there;
    fth_err err;
    if (!folder) {
        err = fth_no_memory(path);
        goto done;
    }
    const char *name = name_of(d->path);
    if (!name[0] || !strcmp(name, ".") || !strcmp(name, "..")) {
        err = fth_fail(FTH_USAGE, "%s: a folder must be given by its name", path);
        goto done;
    }
    FTH_TRY_OR(err, fth_new_dirs_make(&d->above, folder), done);
    FTH_TRY_OR(err, fth_staged_dir_clean(folder, name), done);
    if (lstat(d->path, &there) == 0) FTH_TRY_OR(err, may_replace(d->path), done);
    err = make_temp(d);
done:
    free(folder);
    if (err) fth_staged_dir_fini(d);
    return err;
}

fth_err fth_staged_dir_commit(fth_staged_dir *d) {
    char *replaced = NULL, *folder = folder_of(d->path), *old = beside(d->path, ".old");
    fth_err err = folder && old ? FTH_OK : fth_no_memory(d->path);
    if (!err) err = fth_sync_dir(d->temp);
    if (!err) err = fth_unfinished_commit(&d->temp, d->path, old, &replaced);
    if (!err) err = fth_sync_dir(folder);
    if (!err && replaced) (void)fth_remove_tree(replaced);
    fth_unfinished_drop(replaced);
    free(replaced);
    free(folder);
    free(old);
    return err;
}

void fth_staged_dir_fini(fth_staged_dir *d) {
    if (d->path && d->temp) (void)fth_remove_tree(d->temp);
    fth_unfinished_drop(d->temp);
    if (d->path && d->lock >= 0) close(d->lock);
    fth_new_dirs_fini(&d->above);
    free(d->temp);
    free(d->path);
    *d = (fth_staged_dir){.lock = -1};
}
