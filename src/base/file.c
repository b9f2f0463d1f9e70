/* file.c: reads a file whole, makes and removes folders with what is in them, and syncs a folder so
 * that a rename in it lasts. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/str.h"
#include "base/writer.h"

static fth_err fail_path(const char *doing, const char *path) {
    return fth_fail(fth_path_error(errno), "%s: cannot %s: %s", path, doing, strerror(errno));
}

/* Reads to the end; the size of a regular file is known, that of a pipe is not. */
static fth_err read_all(int fd, const char *path, char **data, size_t *size) {
    struct stat st;
    size_t capacity = 4096, length = 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) capacity = (size_t)st.st_size + 1;
    char *text = malloc(capacity);
    for (;;) {
        if (!text) return fth_fail(FTH_NO_MEMORY, "%s: no memory for %zu bytes", path, capacity);
        ssize_t got = read(fd, text + length, capacity - length);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            free(text);
            return fail_path("read", path);
        }
        if (got == 0) break;
        length += (size_t)got;
        if (length < capacity) continue;
        char *more = realloc(text, capacity *= 2);
        if (!more) free(text);
        text = more;
    }
    text[length] = '\0'; /* there is always room: the loop leaves only with length < capacity */
    *data = text;
    *size = length;
    return FTH_OK;
}

/* A pipe with a name is refused: nobody may be there to write to it, and it would be waited for.
 * Those of a shell, "<(...)" and "-", have none. */
static fth_err check_kind(int fd, const char *path) {
    struct stat st;
    struct statfs fs;
    if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && fstatfs(fd, &fs) == 0 &&
        fs.f_type != PIPEFS_MAGIC)
        return fth_fail(FTH_BAD_INPUT, "%s: is a pipe and must be a file", path);
    const int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0) return FTH_OK;
    return fail_path("open", path);
}

fth_err fth_file_read(const char *path, char **data, size_t *size) {
    *data = NULL;
    *size = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fail_path("open", path);
    fth_err err = check_kind(fd, path);
    if (!err) err = read_all(fd, path, data, size);
    close(fd);
    return err;
}

fth_err fth_file_write(const char *path, const void *data, size_t size) {
    fth_writer w;
    FTH_TRY(fth_writer_open(&w, path));
    fth_err err = fth_writer_put(&w, data, size);
    if (!err) err = fth_writer_commit(&w);
    fth_writer_fini(&w);
    return err;
}

static fth_err make_dir(const char *path) {
    struct stat st;
    if (mkdir(path, 0777) == 0) return FTH_OK;
    int reason = errno;
    if (reason == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) return FTH_OK;
    return fth_fail(FTH_IO, "%s: cannot make the folder: %s", path, strerror(reason));
}

fth_err fth_make_dirs(const char *path) {
    char *part = strdup(path);
    if (!part) return fth_fail(FTH_NO_MEMORY, "%s: no memory for its name", path);
    fth_err err = FTH_OK;
    for (char *p = part; *p && !err; p++) {
        if (*p != '/' || p == part) continue;
        *p = '\0';
        err = make_dir(part);
        *p = '/';
    }
    if (!err) err = make_dir(part);
    free(part);
    return err;
}

fth_err fth_sync_dir(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail_path("open the folder", path);
    fth_err err = FTH_OK;
    /* some file systems cannot sync a folder, and say so with EINVAL */
    if (fsync(fd) != 0 && errno != EINVAL) err = fail_path("sync the folder", path);
    close(fd);
    return err;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where) {
    (void)st, (void)kind, (void)where;
    if (remove(path) == 0 || errno == ENOENT) return 0;
    return fth_fail(FTH_IO, "%s: cannot remove: %s", path, strerror(errno));
}

fth_err fth_remove_tree(const char *path) {
    struct stat st;
    if (lstat(path, &st) != 0) return errno == ENOENT ? FTH_OK : fail_path("remove", path);
    int result = nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (result < 0) return fth_fail(FTH_IO, "%s: cannot remove: %s", path, strerror(errno));
    return (fth_err)result;
}

int fth_file_exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

int fth_folder_has(const char *folder, const char *name) {
    char path[PATH_MAX]; /* on the stack: no memory would look like no file */
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n < (int)sizeof path && fth_file_exists(path);
}

char *fth_path_beside(const char *list, const char *file) {
    const char *slash = strrchr(list, '/');
    if (file[0] == '/' || !slash) return strdup(file);
    return fth_strdup_printf("%.*s/%s", (int)(slash - list), list, file);
}

int fth_same_file(const char *a, const char *b) {
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}
