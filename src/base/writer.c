/* writer.c: buffers, writes to NAME.tmp-PID-N beside the file, then syncs the file, renames it and
 * syncs its folder. */
#include "base/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/unfinished.h"
#include "base/str.h"

enum { HELD_BYTES = 64 << 10, WRITE_BYTES = 1 << 20 };

static fth_err fail_write(const char *path) {
    return fth_fail(fth_path_error(errno), "%s: cannot write: %s", path, strerror(errno));
}

/* The folder of a path and its last name. */
static char *folder_of(const char *path, const char **name) {
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    if (!slash) return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* What killed processes have left of this very file. Of no importance to this one. */
static void sweep(const char *path) {
    const char *name;
    char *folder = folder_of(path, &name);
    if (folder) (void)fth_unfinished_sweep(folder, name);
    free(folder);
}

/* open() and not mkstemp(), so that the user's umask decides who may read the result. */
static fth_err open_temp(fth_writer *w) {
    int reason = EEXIST;
    sweep(w->path);
    for (int attempt = 0; attempt < 100 && reason == EEXIST; attempt++) {
        w->temp = fth_strdup_printf("%s.tmp-%ld-%d", w->path, (long)getpid(), attempt);
        if (!w->temp) return fth_fail(FTH_NO_MEMORY, "%s: no memory for a temporary name", w->path);
        FTH_TRY(fth_unfinished_hold(w->temp));
        w->fd = open(w->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (w->fd >= 0 && fth_unfinished_claim(w->fd, w->temp)) return FTH_OK;
        reason = w->fd < 0 ? errno : EEXIST;
        if (w->fd >= 0) close(w->fd);
        w->fd = -1;
        fth_unfinished_drop(w->temp);
        free(w->temp);
        w->temp = NULL;
    }
    errno = reason;
    return fail_write(w->path);
}

fth_err fth_writer_open(fth_writer *w, const char *path) {
    struct stat st;
    *w = (fth_writer){.fd = -1};
    int there = stat(path, &st) == 0;
    if (there && S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return fail_write(path);
    }
    /* a link stays: what it points to is replaced */
    w->path = there && S_ISREG(st.st_mode) ? realpath(path, NULL) : strdup(path);
    w->held = malloc(HELD_BYTES);
    fth_err err = FTH_OK;
    if (!w->path || !w->held) {
        err = fth_fail(FTH_NO_MEMORY, "%s: no memory to write it", path);
    } else if (there && !S_ISREG(st.st_mode)) {
        w->fd = open(path, O_WRONLY | O_CLOEXEC);
        if (w->fd < 0) err = fail_write(path);
    } else {
        err = open_temp(w);
    }
    if (err) fth_writer_fini(w);
    return err;
}

/* In pieces that are still in the cache when the kernel copies them after the check sum. */
static fth_err write_out(fth_writer *w, const char *data, size_t size) {
    while (size) {
        size_t piece = size < WRITE_BYTES ? size : WRITE_BYTES;
        w->crc = fth_crc32(w->crc, data, piece);
        for (size_t done = 0; done < piece;) {
            ssize_t put = write(w->fd, data + done, piece - done);
            if (put < 0 && errno == EINTR) continue;
            if (put < 0) return fail_write(w->path);
            done += (size_t)put;
        }
        data += piece;
        size -= piece;
    }
    return FTH_OK;
}

static fth_err flush(fth_writer *w) {
    size_t n = w->n_held;
    w->n_held = 0;
    return write_out(w, w->held, n);
}

fth_err fth_writer_put(fth_writer *w, const void *data, size_t size) {
    w->size += size;
    if (size > HELD_BYTES - w->n_held) FTH_TRY(flush(w));
    if (size >= HELD_BYTES) return write_out(w, data, size);
    if (size) memcpy(w->held + w->n_held, data, size);
    w->n_held += size;
    return FTH_OK;
}

static fth_err sync_folder_of(const char *path) {
    const char *name;
    char *folder = folder_of(path, &name);
    if (!folder) return fth_fail(FTH_NO_MEMORY, "%s: no memory for its folder's name", path);
    fth_err err = fth_sync_dir(folder);
    free(folder);
    return err;
}

/* The lock on the temporary name ends when the file is closed: after it has its name. */
fth_err fth_writer_commit(fth_writer *w) {
    FTH_TRY(flush(w));
    if (w->temp && fsync(w->fd) != 0) return fail_write(w->path);
    if (w->temp && rename(w->temp, w->path) != 0) return fail_write(w->path);
    const bool named = w->temp;
    fth_unfinished_drop(w->temp);
    free(w->temp);
    w->temp = NULL;
    const int closed = close(w->fd);
    w->fd = -1;
    if (closed != 0) return fail_write(w->path);
    return named ? sync_folder_of(w->path) : FTH_OK;
}

void fth_writer_fini(fth_writer *w) {
    if (w->path && w->fd >= 0) close(w->fd);
    if (w->temp) unlink(w->temp);
    fth_unfinished_drop(w->temp);
    free(w->temp);
    free(w->path);
    free(w->held);
    *w = (fth_writer){.fd = -1};
}
