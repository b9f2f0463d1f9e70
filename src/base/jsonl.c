#include "base/jsonl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"

static fth_err fail_path(const fth_jsonl *j, const char *doing) {
    return fth_fail(FTH_IO, "%s: cannot %s: %s", j->path, doing, strerror(errno));
}

/* Cuts off what stands after the last end of line. */
static fth_err cut_broken_line(fth_jsonl *j) {
    struct stat st;
    if (fstat(j->fd, &st) != 0) return fail_path(j, "open");
    if (!S_ISREG(st.st_mode)) return FTH_OK; /* a pipe has no past */
    off_t end = st.st_size;
    char bytes[4096];
    while (end > 0) {
        size_t n = end < (off_t)sizeof bytes ? (size_t)end : sizeof bytes;
        if (pread(j->fd, bytes, n, end - (off_t)n) != (ssize_t)n) return fail_path(j, "read");
        const char *newline = memrchr(bytes, '\n', n);
        if (newline) {
            end -= (off_t)(bytes + n - newline) - 1;
            break;
        }
        end -= (off_t)n;
    }
    if (end < st.st_size && ftruncate(j->fd, end) != 0) return fail_path(j, "cut");
    return FTH_OK;
}

fth_err fth_jsonl_open(fth_jsonl *j, const char *path) {
    *j = (fth_jsonl){.fd = -1};
    j->path = strdup(path);
    if (!j->path) return fth_fail(FTH_NO_MEMORY, "%s: no memory for its name", path);
    j->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    fth_err err = j->fd < 0 ? fail_path(j, "open") : cut_broken_line(j);
    if (err) fth_jsonl_close(j);
    return err;
}

fth_err fth_jsonl_write(fth_jsonl *j, const json_t *object) {
    fth_str_clear(&j->line);
    FTH_TRY(fth_json_write(object, 0, &j->line));
    FTH_TRY(fth_str_add(&j->line, "\n", 1));
    const char *text = j->line.text;
    for (size_t left = j->line.length; left;) {
        ssize_t put = write(j->fd, text, left);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return fail_path(j, "write");
        text += put;
        left -= (size_t)put;
    }
    return FTH_OK;
}

void fth_jsonl_close(fth_jsonl *j) {
    if (j->path && j->fd >= 0) close(j->fd);
    free(j->path);
    fth_str_fini(&j->line);
    *j = (fth_jsonl){.fd = -1};
}
