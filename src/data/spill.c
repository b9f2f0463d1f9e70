/* spill.c: unlinks its temporary file at once and copies it to the end of another when asked. */
#include "data/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/str.h"

enum { BUFFER = 1 << 18 };

static fth_err write_failed(const char *path) {
    return fth_fail(FTH_IO, "%s: cannot write: %s", path, strerror(errno ? errno : EIO));
}

/* Where the file system has no files without a name, the name is removed at once. */
static int open_nameless(const char *path) {
    char *name = fth_strdup_printf("%s.part-XXXXXX", path);
    if (!name) return -1;
    char *slash = strrchr(name, '/');
    if (slash) *slash = '\0';
    int fd = open(!slash ? "." : slash == name ? "/" : name, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (slash) *slash = '/';
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        fd = mkstemp(name);
        if (fd >= 0) unlink(name);
    }
    const int reason = errno;
    free(name);
    errno = reason;
    return fd;
}

fth_err fth_spill_open(fth_spill *s, const char *path) {
    *s = (fth_spill){.path = path, .buffer = malloc(BUFFER)};
    if (!s->buffer) return fth_fail(FTH_NO_MEMORY, "%s: no memory to write it", path);
    const int fd = open_nameless(path);
    if (fd >= 0 && !(s->file = fdopen(fd, "w+"))) close(fd);
    if (!s->file) return write_failed(path);
    setvbuf(s->file, s->buffer, _IOFBF, BUFFER);
    return FTH_OK;
}

void fth_spill_fini(fth_spill *s) {
    if (s->file) fclose(s->file);
    free(s->buffer);
    *s = (fth_spill){0};
}

fth_err fth_spill_put(fth_spill *s, const void *data, size_t size) {
    if (!size) return FTH_OK;
    errno = 0;
    if (fwrite(data, 1, size, s->file) != size) return write_failed(s->path);
    s->crc = fth_crc32(s->crc, data, size);
    s->size += size;
    return FTH_OK;
}

static fth_err give(fth_spill *s, fth_spill_take *take, void *state, char *buffer) {
    errno = 0;
    if (fflush(s->file) != 0 || fseeko(s->file, 0, SEEK_SET) != 0) return write_failed(s->path);
    for (uint64_t left = s->size; left;) {
        size_t n = fread(buffer, 1, left < BUFFER ? (size_t)left : BUFFER, s->file);
        if (n == 0) return fth_fail(FTH_IO, "%s: cannot read back what was written", s->path);
        FTH_TRY(take(state, buffer, n));
        left -= n;
    }
    return FTH_OK;
}

fth_err fth_spill_give(fth_spill *s, fth_spill_take *take, void *state) {
    static const char zeros[FTH_SPILL_ALIGN];
    char *buffer = malloc(BUFFER);
    if (!buffer) return fth_fail(FTH_NO_MEMORY, "%s: no memory to write it", s->path);
    fth_err err = give(s, take, state, buffer);
    free(buffer);
    const size_t over = (size_t)(s->size % FTH_SPILL_ALIGN);
    return err || !over ? err : take(state, zeros, FTH_SPILL_ALIGN - over);
}
