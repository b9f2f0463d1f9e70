/* staged_dir.c: locks the hidden folder while it is filled; commit exchanges it with the old one in
 * one step where the kernel can, else in two with NAME.old between them. */
#include "store/staged_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/unfinished.h"
#include "base/str.h"

static fth_err no_memory(const char *path) {
    return fth_fail(FTH_NO_MEMORY, "%s: no memory for its name", path);
}

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
        return no_memory(path);
    }
    if (!fth_file_exists(*out) && fth_file_exists(old)) {
        free(*out);
        *out = old;
    } else {
        free(old);
    }
    return FTH_OK;
}

/* A hidden link is there for an instant only and needs no lock. */
static fth_err remove_abandoned(const char *path) {
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) return fth_remove_tree(path);
    return fth_unfinished_clear(path);
}

/* NAME is missing: .NAME.old becomes NAME again. NAME is there: .NAME.old is superfluous. */
static fth_err settle_old(const char *old, const char *path) {
    if (fth_file_exists(path)) return fth_remove_tree(old);
    if (rename(old, path) != 0) return fail_path(path, "put the older folder back");
    return FTH_OK;
}

/* The length of NAME when entry is .NAME, suffix and then only characters of tail; 0 for entries
 * that are none of ours, or of another name than the given one. */
static size_t name_length(const char *entry, const char *suffix, const char *tail,
                          const char *name) {
    if (entry[0] != '.') return 0;
    for (const char *end = entry + 1; (end = strstr(end, suffix)); end++) {
        const char *rest = end + strlen(suffix);
        size_t length = (size_t)(end - entry - 1);
        if (rest[strspn(rest, tail)] != '\0') continue;
        if (!name || (length == strlen(name) && !strncmp(entry + 1, name, length))) return length;
    }
    return 0;
}

static fth_err clean_entry(const char *folder, const char *entry, const char *name) {
    size_t old = name_length(entry, ".old", "", name);
    size_t temp = name_length(entry, ".tmp-", "0123456789-", name);
    if (!old && !temp) return FTH_OK;
    char *path = fth_strdup_printf("%s/%s", folder, entry);
    char *final = fth_strdup_printf("%s/%.*s", folder, (int)old, entry + 1);
    fth_err err = FTH_OK;
    if (!path || !final)
        err = no_memory(entry);
    else
        err = temp ? remove_abandoned(path) : settle_old(path, final);
    free(path);
    free(final);
    return err;
}

fth_err fth_staged_dir_clean(const char *folder, const char *name) {
    DIR *dir = opendir(folder);
    if (!dir) return errno == ENOENT ? FTH_OK : fail_path(folder, "read the folder");
    fth_err err = FTH_OK;
    for (struct dirent *entry; !err && (entry = readdir(dir));)
        err = clean_entry(folder, entry->d_name, name);
    closedir(dir);
    return err;
}

static fth_err check_replaceable(const char *path, fth_may_replace *may_replace) {
    DIR *dir = opendir(path);
    if (!dir && errno == ENOENT) return FTH_OK;
    if (!dir) return fail_path(path, "replace it by a folder");
    fth_err err = FTH_OK;
    for (struct dirent *entry; !err && (entry = readdir(dir));) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") && strcmp(name, "..") && !may_replace(name))
            err = fth_fail(FTH_USAGE,
                           "%s: will not be replaced: it holds \"%s\", which is no part "
                           "of a model folder",
                           path, name);
    }
    closedir(dir);
    return err;
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
        if (!d->temp) return no_memory(d->path);
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

fth_err fth_staged_dir_open(fth_staged_dir *d, const char *path, fth_may_replace *may_replace) {
    *d = (fth_staged_dir){.lock = -1};
    d->path = clean_path(path);
    char *folder = d->path ? folder_of(d->path) : NULL;
    fth_err err;
    if (!folder) {
        err = no_memory(path);
        goto done;
    }
    const char *name = name_of(d->path);
    if (!name[0] || !strcmp(name, ".") || !strcmp(name, "..")) {
        err = fth_fail(FTH_USAGE, "%s: a folder must be given by its name", path);
        goto done;
    }
    FTH_TRY_OR(err, fth_make_dirs(folder), done);
    FTH_TRY_OR(err, fth_staged_dir_clean(folder, name), done);
    FTH_TRY_OR(err, check_replaceable(d->path, may_replace), done);
    err = make_temp(d);
done:
    free(folder);
    if (err) fth_staged_dir_fini(d);
    return err;
}

fth_err fth_staged_dir_commit(fth_staged_dir *d) {
    char *replaced = NULL, *folder = folder_of(d->path), *old = beside(d->path, ".old");
    fth_err err = folder && old ? FTH_OK : no_memory(d->path);
    if (!err) err = fth_sync_dir(d->temp);
    if (!err) err = fth_unfinished_commit(&d->temp, d->path, old, &replaced);
    if (!err) err = fth_sync_dir(folder);
    /* the new folder is safe; what cannot be removed now, the next writer clears */
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
    free(d->temp);
    free(d->path);
    *d = (fth_staged_dir){.lock = -1};
}
