/* tail.c: remembers an offset and the file's identity; a file that was cut or replaced is read from
 * its beginning. */
#include "inspect/tail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

fth_err fth_tail_init(fth_tail *t, const char *path) {
    *t = (fth_tail){.path = strdup(path)};
    return t->path ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a name");
}

void fth_tail_fini(fth_tail *t) {
    free(t->path);
    fth_str_fini(&t->rest);
    *t = (fth_tail){0};
}

static fth_err fail_path(const fth_tail *t, const char *doing) {
    return fth_fail(fth_path_error(errno), "%s: cannot %s: %s", t->path, doing, strerror(errno));
}

/* One line is complete: rest and text together. */
static fth_err hand_out(fth_tail *t, const fth_tail_reader *reader, char *text, size_t length) {
    t->line++;
    if (t->skipping) {
        t->skipping = false;
        t->skipped++;
        return FTH_OK;
    }
    if (t->rest.length == 0) return reader->line(reader->context, text, length);
    FTH_TRY(fth_str_add(&t->rest, text, length));
    fth_err err = reader->line(reader->context, t->rest.text, t->rest.length);
    fth_str_clear(&t->rest);
    return err;
}

/* text[size] is a byte that may be overwritten. */
static fth_err take(fth_tail *t, const fth_tail_reader *reader, char *text, size_t size) {
    char *end;
    while ((end = memchr(text, '\n', size))) {
        size_t length = (size_t)(end - text);
        *end = '\0';
        FTH_TRY(hand_out(t, reader, text, length));
        text += length + 1;
        size -= length + 1;
    }
    if (t->skipping || size == 0) return FTH_OK;
    if (t->rest.length + size > FTH_TAIL_LINE) {
        fth_str_fini(&t->rest);
        t->skipping = true;
        return FTH_OK;
    }
    return fth_str_add(&t->rest, text, size);
}

/* Begins anew when the file is not the one that was read before, or is shorter than it was. */
static void compare(fth_tail *t, const struct stat *st, const fth_tail_reader *reader) {
    bool known = t->inode != 0;
    bool same = st->st_ino == t->inode && st->st_dev == t->device && st->st_size >= t->offset;
    if (known && !same) {
        fth_str_clear(&t->rest);
        t->offset = 0;
        t->line = t->skipped = 0;
        t->skipping = false;
        reader->restart(reader->context);
    }
    t->inode = st->st_ino;
    t->device = st->st_dev;
    t->modified = (double)st->st_mtim.tv_sec + 1e-9 * (double)st->st_mtim.tv_nsec;
}

static fth_err read_new(fth_tail *t, int fd, const fth_tail_reader *reader, bool *changed) {
    enum { PIECE = 1 << 16 };
    char *piece = malloc(PIECE + 1);
    if (!piece) return fth_fail(FTH_NO_MEMORY, "no memory for a piece of %s", t->path);
    fth_err err = FTH_OK;
    while (err == FTH_OK) {
        ssize_t n = pread(fd, piece, PIECE, t->offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) err = fail_path(t, "read");
        if (n <= 0) break;
        *changed = true;
        t->offset += n;
        err = take(t, reader, piece, (size_t)n);
    }
    free(piece);
    return err;
}

fth_err fth_tail_poll(fth_tail *t, const fth_tail_reader *reader, bool *changed) {
    struct stat st;
    *changed = false;
    int fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fail_path(t, "open");
    fth_err err = FTH_OK;
    if (fstat(fd, &st) != 0)
        err = fail_path(t, "open");
    else if (!S_ISREG(st.st_mode))
        err = fth_fail(FTH_BAD_INPUT, "%s: must be a plain file", t->path);
    if (err == FTH_OK) {
        compare(t, &st, reader);
        err = read_new(t, fd, reader, changed);
    }
    close(fd);
    return err;
}
