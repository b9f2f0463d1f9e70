/* unfinished.c: a list of paths behind a lock; a commit renames under the lock, so that a signal
 * sees the old name or the new one. Locks on files tell what belongs to a living process. */
#include "base/unfinished.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

/* had: for folders that go only when they are empty, the length of the part of their path that was
 * there before; WHOLE for everything else. */
#define WHOLE SIZE_MAX
typedef struct entry {
    struct entry *next;
    size_t had;
    char path[];
} entry;

/* A signal has no context that it could be given, so neither has this. */
static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static entry *newest;

void fth_unfinished_lock(void) {
    pthread_mutex_lock(&mutex);
}

void fth_unfinished_unlock(void) {
    pthread_mutex_unlock(&mutex);
}

static fth_err hold(const char *path, size_t had) {
    size_t length = strlen(path);
    entry *e = malloc(sizeof *e + length + 1);
    if (!e) return fth_fail(FTH_NO_MEMORY, "%s: no memory for its name", path);
    e->had = had;
    memcpy(e->path, path, length + 1);
    fth_unfinished_lock();
    e->next = newest;
    newest = e;
    fth_unfinished_unlock();
    return FTH_OK;
}

fth_err fth_unfinished_hold(const char *path) {
    return hold(path, WHOLE);
}

/* Takes the newest entry of that kind and name out of the list; NULL: there is none. */
static entry *take(const char *path, int whole) {
    fth_unfinished_lock();
    entry **at = &newest;
    while (*at && (((*at)->had == WHOLE) != whole || strcmp((*at)->path, path) != 0))
        at = &(*at)->next;
    entry *e = *at;
    if (e) *at = e->next;
    fth_unfinished_unlock();
    return e;
}

void fth_unfinished_drop(const char *path) {
    if (path) free(take(path, 1));
}

/* ---- putting a folder in place ---- */

static fth_err fail_path(const char *path, const char *what) {
    return fth_fail(FTH_IO, "%s: cannot %s: %s", path, what, strerror(errno));
}

/* For file systems that cannot swap two names. The older folder is called old afterwards. */
static fth_err replace_in_two_steps(const char *temp, const char *path, const char *old) {
    FTH_TRY(fth_remove_tree(old));
    if (rename(path, old) != 0) return fail_path(path, "rename the older folder");
    if (rename(temp, path) == 0) return FTH_OK;
    fth_err err = fail_path(path, "rename the new folder");
    return rename(old, path) == 0 ? err : fail_path(path, "put the older folder back");
}

/* *left is what the older folder is called now, NULL without one. */
static fth_err put_in_place(const char *temp, const char *path, const char *old,
                            const char **left) {
    *left = NULL;
    if (!fth_file_exists(path))
        return rename(temp, path) == 0 ? FTH_OK : fail_path(path, "rename the new folder");
    *left = temp;
    if (renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_EXCHANGE) == 0) return FTH_OK;
    if (errno != EINVAL && errno != ENOSYS) return fail_path(path, "swap the folders");
    *left = old;
    return replace_in_two_steps(temp, path, old);
}

fth_err fth_unfinished_commit(char **temp, const char *path, const char *old, char **replaced) {
    const char *left;
    *replaced = NULL;
    fth_unfinished_lock();
    fth_err err = put_in_place(*temp, path, old, &left);
    if (err == FTH_OK && left == *temp) {
        *replaced = *temp;
        *temp = NULL;
    } else if (err == FTH_OK) {
        if (left && !(*replaced = strdup(left)))
            err = fth_fail(FTH_NO_MEMORY, "%s: no memory", path);
        if (*replaced) err = fth_unfinished_hold(*replaced);
        fth_unfinished_drop(*temp);
        free(*temp);
        *temp = NULL;
    }
    fth_unfinished_unlock();
    return err;
}

/* ---- removing ---- */

/* From the innermost up, until one is not empty or was there before. */
static void remove_empty(entry *e) {
    for (size_t n = strlen(e->path); n > e->had;) {
        e->path[n] = '\0';
        if (rmdir(e->path) != 0 && errno != ENOENT) return;
        while (n > e->had && e->path[n - 1] != '/') n--;
        while (n > e->had && e->path[n - 1] == '/') n--;
    }
}

/* Other threads may still be making files in a folder; they come to a halt at the lock. */
static void remove_whole(const char *path) {
    for (int attempt = 0; attempt < 10; attempt++)
        if (fth_remove_tree(path) == FTH_OK) return;
}

void fth_unfinished_remove(void) {
    for (entry *e = newest; e; e = e->next) {
        if (e->had == WHOLE)
            remove_whole(e->path);
        else
            remove_empty(e);
    }
}

/* ---- what others have left ---- */

int fth_unfinished_claim(int fd, const char *path) {
    struct stat ours, named;
    (void)flock(fd, LOCK_EX | LOCK_NB);
    return fstat(fd, &ours) == 0 && stat(path, &named) == 0 && ours.st_dev == named.st_dev &&
           ours.st_ino == named.st_ino;
}

fth_err fth_unfinished_clear(const char *path) {
    struct stat st; /* a symbolic link is there for an instant only and needs no lock */
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) return fth_remove_tree(path);
    /* a pipe that somebody has called so must not be waited for */
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return FTH_OK;
    fth_err err = FTH_OK;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) err = fth_remove_tree(path);
    close(fd);
    return err;
}

/* Is a label NAME.tmp-, digits and dashes? */
static int is_temporary(const char *label, const char *name) {
    static const char mark[] = ".tmp-";
    const char *at = NULL;
    for (const char *next = label; (next = strstr(next, mark)); next++) at = next;
    if (!at || at == label) return 0;
    if (name && (strlen(name) != (size_t)(at - label) || strncmp(label, name, strlen(name)) != 0))
        return 0;
    at += strlen(mark);
    return isdigit((unsigned char)*at) && at[strspn(at, "0123456789-")] == '\0';
}

fth_err fth_unfinished_sweep(const char *folder, const char *name) {
    DIR *dir = opendir(folder);
    if (!dir && errno == ENOENT) return FTH_OK;
    if (!dir) return fth_fail(FTH_IO, "%s: cannot read the folder: %s", folder, strerror(errno));
    fth_err err = FTH_OK;
    for (struct dirent *e; !err && (e = readdir(dir));) {
        if (!is_temporary(e->d_name, name)) continue;
        char *path = fth_strdup_printf("%s/%s", folder, e->d_name);
        err = path ? fth_unfinished_clear(path) : fth_fail(FTH_NO_MEMORY, "no memory for a name");
        free(path);
    }
    closedir(dir);
    return err;
}

/* ---- folders for results ---- */

/* The length of the part of the path that is there. */
static size_t length_there(char *path) {
    size_t had = 0;
    for (char *p = path;; p++) {
        if ((*p != '/' && *p) || p == path) continue;
        char end = *p;
        *p = '\0';
        int there = fth_file_exists(path);
        *p = end;
        if (!there) return had;
        had = (size_t)(p - path);
        if (!end) return had;
    }
}

fth_err fth_new_dirs_make(fth_new_dirs *d, const char *path) {
    *d = (fth_new_dirs){strdup(path)};
    if (!d->path) return fth_fail(FTH_NO_MEMORY, "%s: no memory for its name", path);
    fth_err err = hold(d->path, length_there(d->path));
    if (err == FTH_OK) err = fth_make_dirs(path);
    if (err) fth_new_dirs_fini(d);
    return err;
}

void fth_new_dirs_fini(fth_new_dirs *d) {
    entry *e = d->path ? take(d->path, 0) : NULL;
    if (e) remove_empty(e);
    free(e);
    free(d->path);
    *d = (fth_new_dirs){0};
}
