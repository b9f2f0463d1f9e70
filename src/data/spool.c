/* spool.c: copies what is no plain file (a pipe, standard input) into a temporary folder and reads
 * the copies instead. */
#include "data/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/writer.h"

enum { COPY_BYTES = 1 << 17 };

static fth_err copy(int fd, const char *name, const char *path) {
    fth_err err;
    fth_writer out = {0};
    char *buffer = malloc(COPY_BYTES);
    if (!buffer) return fth_fail(FTH_NO_MEMORY, "%s: no memory to read it", name);
    FTH_TRY_OR(err, fth_writer_open(&out, path), fail);
    for (;;) {
        ssize_t got = read(fd, buffer, COPY_BYTES);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            err = fth_fail(FTH_IO, "%s: cannot read: %s", name, strerror(errno));
            goto fail;
        }
        if (got == 0) break;
        FTH_TRY_OR(err, fth_writer_put(&out, buffer, (size_t)got), fail);
    }
    err = fth_writer_commit(&out);
fail:
    fth_writer_fini(&out);
    free(buffer);
    return err;
}

static fth_err spool_one(const char *folder, fth_text_file *file, fth_arena *arena, int *made) {
    int standard = strcmp(file->path, "-") == 0;
    struct stat info;
    if (!standard && (stat(file->path, &info) != 0 || access(file->path, R_OK) != 0))
        return fth_fail(fth_path_error(errno), "%s: cannot open: %s", file->name, strerror(errno));
    if (!standard && !S_ISFIFO(info.st_mode)) return FTH_OK;
    if (standard) file->name = "standard input";
    char *path = fth_strdup_printf("%s/copy-%d", folder, *made);
    char *kept = path ? fth_arena_strdup(arena, path) : NULL;
    free(path);
    if (!kept) return fth_fail(FTH_NO_MEMORY, "%s: no memory to read it", file->name);
    int fd = standard ? STDIN_FILENO : open(file->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fth_fail(FTH_IO, "%s: cannot open: %s", file->name, strerror(errno));
    ++*made;
    fth_err err = copy(fd, file->name, kept);
    if (!standard) close(fd);
    file->path = kept;
    return err;
}

fth_err fth_spool(const char *folder, fth_text_file *files, size_t n, fth_arena *arena, int *made) {
    for (size_t i = 0; i < n; i++) FTH_TRY(spool_one(folder, &files[i], arena, made));
    return FTH_OK;
}

fth_err fth_spool_remove(const char *folder, int made) {
    for (int i = 0; i < made; i++) {
        char *path = fth_strdup_printf("%s/copy-%d", folder, i);
        if (!path) return fth_fail(FTH_NO_MEMORY, "%s: no memory to tidy up", folder);
        fth_err err = fth_remove_tree(path);
        free(path);
        FTH_TRY(err);
    }
    return FTH_OK;
}
